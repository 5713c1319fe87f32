import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ContainerClient, StorageSharedKeyCredential } from '@azure/storage-blob'
import { freePort, listening } from './free-port.ts'

export interface Azurite {
  port: number
  /** Address of the account. */
  accountUrl: string
  accountName: string
  accountKey: string
  container: string
  /** Straight to the server, past everything under test. */
  client: ContainerClient
  stop(): Promise<void>
}

/**
 * An azurite, Microsoft's own emulator of Blob storage, with one container that is kept in memory.
 * @param tls with it, the server speaks https and takes the tokens of Entra, whose form it checks and not whose signature
 */
export const startAzurite = async (tls?: { key: string; cert: string; authority: string }): Promise<Azurite> => {
  const program = process.env.TEST_AZURITE_BIN
  if (!program) throw new Error('TEST_AZURITE_BIN is not set: azurite was not found, see what the set-up said')
  const root = await mkdtemp(join(tmpdir(), 'relay-azurite-'))
  const port = await freePort()
  const [accountName, accountKey] = ['relaytest', Buffer.from('the key of the test account').toString('base64')]
  const options = ['--blobHost', '127.0.0.1', '--blobPort', String(port), '--inMemoryPersistence', '--silent']
  if (tls) {
    await writeFile(join(root, 'key.pem'), tls.key)
    await writeFile(join(root, 'cert.pem'), tls.cert)
    options.push('--cert', join(root, 'cert.pem'), '--key', join(root, 'key.pem'), '--oauth', 'basic')
  }
  // the SDK may speak a newer dialect than the emulator knows by name
  const server = spawn(program, [...options, '--skipApiVersionCheck', '--disableTelemetry'], {
    env: { ...process.env, AZURITE_ACCOUNTS: `${accountName}:${accountKey}` },
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const output of [server.stdout, server.stderr]) {
    output.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
  }
  await Promise.race([listening(port), once(server, 'exit').then(() => Promise.reject(new Error('it ended')))]).catch(() => {
    throw new Error(`azurite did not start: ${said}`)
  })
  const accountUrl = `${tls ? 'https' : 'http'}://127.0.0.1:${port}/${accountName}`
  const container = 'documents'
  const client = new ContainerClient(`${accountUrl}/${container}`, new StorageSharedKeyCredential(accountName, accountKey), {
    retryOptions: { maxTries: 1 },
    ...(tls && { tlsOptions: { ca: tls.authority } }),
  })
  await client.create()
  return {
    port,
    accountUrl,
    accountName,
    accountKey,
    container,
    client,
    stop: async () => {
      const ended = once(server, 'exit')
      server.kill()
      await ended
      await rm(root, { recursive: true, force: true })
    },
  }
}
