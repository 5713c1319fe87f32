import { createHash } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import ssh2 from 'ssh2'
import { sftp } from '../../src/connectors/sftp.ts'
import { startClosingServer } from '../support/busy-server.ts'
import { startSshd } from '../support/sshd.ts'
import { describeConnector } from './conformance.ts'

describeConnector('sftp', async () => {
  const server = await startSshd()
  const stranger = ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 })
  const target = (port = server.port, config: object = {}, credentials: object = {}) => ({
    config: sftp.config.parse({ host: '127.0.0.1', port, host_key_sha256: server.hostKeyFingerprint, ...config }),
    credentials: sftp.credentials.parse({ username: server.username, private_key: server.privateKey, ...credentials }),
  })
  const files = async () => {
    const entries = await readdir(server.directory, { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map((entry) => entry.name)
  }
  return {
    connector: sftp,
    port: server.port,
    target,
    wrongCredentials: target(server.port, {}, { private_key: stranger.private }),
    busy: startClosingServer,
    neverSaysUntilWhen: true,
    missingPlace: { target: target(server.port, { directory: 'not-there' }), code: 'directory_missing' },
    secrets: [stranger.private.split('\n')[1] ?? '', server.privateKey],
    keepsContentType: false,
    read: async (_parcel, { path }) => {
      const prefix = `sftp://127.0.0.1:${server.port}/~/`
      if (!path.startsWith(prefix)) throw new Error(`unexpected path ${path}`)
      const bytes = await readFile(join(server.directory, path.slice(prefix.length)))
      return { sha256: createHash('sha256').update(bytes).digest('hex'), sizeBytes: bytes.length }
    },
    documents: async () => (await files()).filter((name) => !name.endsWith('.part')),
    leftovers: async () => (await files()).filter((name) => name.endsWith('.part')),
    reset: async () => {
      for (const name of await readdir(server.directory)) await rm(join(server.directory, name), { recursive: true })
    },
    stop: server.stop,
  }
})
