import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { readConfig } from '../../src/config/config.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { startServer } from './server-program.ts'
import { findMinio } from './tools.ts'

export interface Minio extends AsyncDisposable {
  endpoint: string
  accessKeyId: string
  secretAccessKey: string
  /** A bucket with Object Lock. */
  bucket: string
  /** Connects directly to the server, without the code under test. */
  client: S3Client
}

/** Starts MinIO, which unlike versitygw runs the rules of a lifecycle: here about once a second. */
export const startMinio = async (): Promise<Minio> => {
  const program = await findMinio({ config: readConfig(), say: (line) => void process.stderr.write(`${line}\n`) })
  const root = await mkdtemp(join(tmpdir(), 'relay-minio-'))
  const [port, consolePort] = [await findFreePort(), await findFreePort()]
  const [bucket, accessKeyId, secretAccessKey] = ['documents', 'testkey', 'testsecret123']
  const server = await startServer(
    program,
    ['server', '--address', `127.0.0.1:${port}`, '--console-address', `127.0.0.1:${consolePort}`, join(root, 'data')],
    {
      name: 'MinIO',
      port,
      logFile: join(root, 'log'),
      env: {
        MINIO_ROOT_USER: accessKeyId,
        MINIO_ROOT_PASSWORD: secretAccessKey,
        MINIO_BROWSER: 'off',
        MINIO_SCANNER_SPEED: 'fastest',
        MINIO_CONFIG_DIR: join(root, 'config'),
      },
    },
  )
  const endpoint = `http://127.0.0.1:${port}`
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: { accessKeyId, secretAccessKey } })
  await client.send(new CreateBucketCommand({ Bucket: bucket, ObjectLockEnabledForBucket: true }))
  return {
    endpoint,
    accessKeyId,
    secretAccessKey,
    bucket,
    client,
    [Symbol.asyncDispose]: async () => {
      client.destroy()
      await server.stop()
      await rm(root, { recursive: true })
    },
  }
}
