import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ContainerClient, newPipeline, StorageSharedKeyCredential } from '@azure/storage-blob'
import { findFreePort } from '../../src/programs/ports.ts'
import { startServer } from './server-program.ts'

export interface Azurite extends AsyncDisposable {
  port: number
  /** Address of the account. */
  accountUrl: string
  accountName: string
  accountKey: string
  container: string
  /** Connects directly to the server, without the code under test. */
  client: ContainerClient
  stop(): Promise<void>
}

/**
 * Starts Azurite, Microsoft's emulator of Blob storage, with one container in memory.
 * @param tls makes the server use https and accept tokens of Entra; it checks their form but not their signature
 */
export const startAzurite = async (tls?: { key: string; cert: string; authority: string }): Promise<Azurite> => {
  const program = process.env.TEST_AZURITE_BIN
  if (!program) throw new Error('TEST_AZURITE_BIN is not set: azurite was not found, see the output of the set-up')
  const root = await mkdtemp(join(tmpdir(), 'relay-azurite-'))
  const port = await findFreePort()
  const [accountName, accountKey] = ['relaytest', Buffer.from('the key of the test account').toString('base64')]
  const options = ['--blobHost', '127.0.0.1', '--blobPort', String(port), '--inMemoryPersistence', '--silent']
  if (tls) {
    await writeFile(join(root, 'key.pem'), tls.key)
    await writeFile(join(root, 'cert.pem'), tls.cert)
    options.push('--cert', join(root, 'cert.pem'), '--key', join(root, 'key.pem'), '--oauth', 'basic')
  }
  const server = await startServer(program, [...options, '--disableTelemetry'], {
    name: 'Azurite',
    port,
    logFile: join(root, 'log'),
    env: { AZURITE_ACCOUNTS: `${accountName}:${accountKey}` },
  })
  const accountUrl = `${tls ? 'https' : 'http'}://127.0.0.1:${port}/${accountName}`
  const container = 'documents'
  const pipeline = newPipeline(new StorageSharedKeyCredential(accountName, accountKey), {
    retryOptions: { maxTries: 1 },
    ...(tls && { tlsOptions: { ca: tls.authority } }),
  })
  // The SDK names an API version that the emulator does not know yet.
  pipeline.factories.unshift({
    create: (next) => ({
      sendRequest: (request) => {
        request.headers.set('x-ms-version', '2021-12-02')
        return next.sendRequest(request)
      },
    }),
  })
  const client = new ContainerClient(`${accountUrl}/${container}`, pipeline)
  await client.create()
  const stop = async () => {
    await server.stop()
    await rm(root, { recursive: true })
  }
  return {
    port,
    accountUrl,
    accountName,
    accountKey,
    container,
    client,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
