import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ContainerClient, StorageSharedKeyCredential } from '@azure/storage-blob'
import { freePort, listening } from './free-port.ts'

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
  const port = await freePort()
  const [accountName, accountKey] = ['relaytest', Buffer.from('the key of the test account').toString('base64')]
  const options = ['--blobHost', '127.0.0.1', '--blobPort', String(port), '--inMemoryPersistence', '--silent']
  if (tls) {
    await writeFile(join(root, 'key.pem'), tls.key)
    await writeFile(join(root, 'cert.pem'), tls.cert)
    options.push('--cert', join(root, 'cert.pem'), '--key', join(root, 'key.pem'), '--oauth', 'basic')
  }
  // The SDK may use a newer API version than the emulator knows.
  const server = spawn(program, [...options, '--skipApiVersionCheck', '--disableTelemetry'], {
    env: { ...process.env, AZURITE_ACCOUNTS: `${accountName}:${accountKey}` },
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  for (const output of [server.stdout, server.stderr]) {
    output.on('data', (chunk: Buffer) => {
      log += chunk.toString()
    })
  }
  await Promise.race([listening(port), once(server, 'exit').then(() => Promise.reject(new Error('azurite exited')))]).catch(() => {
    throw new Error(`azurite did not start: ${log}`)
  })
  const accountUrl = `${tls ? 'https' : 'http'}://127.0.0.1:${port}/${accountName}`
  const container = 'documents'
  const client = new ContainerClient(`${accountUrl}/${container}`, new StorageSharedKeyCredential(accountName, accountKey), {
    retryOptions: { maxTries: 1 },
    ...(tls && { tlsOptions: { ca: tls.authority } }),
  })
  await client.create()
  const stop = async () => {
    const ended = once(server, 'exit')
    server.kill()
    await ended
    await rm(root, { recursive: true, force: true })
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
