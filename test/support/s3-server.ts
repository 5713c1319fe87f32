import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { findFreePort } from '../../src/programs/ports.ts'
import { startServer } from './server-program.ts'

export interface S3Server extends AsyncDisposable {
  port: number
  endpoint: string
  accessKeyId: string
  secretAccessKey: string
  bucket: string
  /** Folder that holds the objects of the bucket. */
  folder: string
  /** Connects directly to the server, without the code under test. */
  client: S3Client
  stop(): Promise<void>
}

/**
 * Starts versitygw over a folder, with one bucket. Unlike simpler emulators, it checks signatures.
 * @param options.isLocked keeps versions of objects in the bucket, and enforces Object Lock
 */
export const startS3Server = async ({ isLocked = false } = {}): Promise<S3Server> => {
  const binary = process.env.TEST_VERSITYGW_BIN ?? join(homedir(), '.cache/document-relay/bin/versitygw')
  const root = await mkdtemp(join(tmpdir(), 'relay-s3-'))
  const bucket = 'documents'
  const buckets = join(root, 'buckets')
  await mkdir(isLocked ? buckets : join(buckets, bucket), { recursive: true })
  const versions = join(root, 'versions')
  if (isLocked) await mkdir(versions)
  const port = await findFreePort()
  const [accessKeyId, secretAccessKey] = ['testkey', 'testsecret123']
  const server = await startServer(
    binary,
    [
      '--quiet',
      '--port',
      `127.0.0.1:${port}`,
      '--access',
      accessKeyId,
      '--secret',
      secretAccessKey,
      'posix',
      ...(isLocked ? ['--versioning-dir', versions] : []),
      buckets,
    ],
    { name: 'versitygw', port, logFile: join(root, 'log') },
  )
  const endpoint = `http://127.0.0.1:${port}`
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: { accessKeyId, secretAccessKey } })
  if (isLocked) await client.send(new CreateBucketCommand({ Bucket: bucket, ObjectLockEnabledForBucket: true }))
  const stop = async () => {
    client.destroy()
    await server.stop()
    await rm(root, { recursive: true })
  }
  return {
    port,
    endpoint,
    accessKeyId,
    secretAccessKey,
    bucket,
    folder: join(buckets, bucket),
    client,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
