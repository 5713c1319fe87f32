import { createHash } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import ssh2 from 'ssh2'
import { sftp } from '../../../src/connectors/sftp/index.ts'
import { findFreePort } from '../../../src/programs/ports.ts'
import { startClosingServer } from '../../support/busy-server.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { startPlainSftpServer, type PlainSftpServer } from '../../support/plain-sftp-server.ts'
import { startSshd } from '../../support/sshd.ts'
import type { Rig, RunningTarget, Step } from '../rig.ts'

const { PERMISSION_DENIED } = ssh2.utils.sftp.STATUS_CODE
const inPlace = { write: 'in_place' }
const forbidFolders = (server: PlainSftpServer) => server.forbidFolders(PERMISSION_DENIED)

// OpenSSH refuses what the file system refuses. This server refuses one kind of request.
const steps: Record<string, Step & { refuse(server: PlainSftpServer): void; config?: object }> = {
  'a new file': { refuse: (server) => server.forbid(), operation: /^open of \S+\.part to write it: / },
  'a new file in place': { refuse: (server) => server.forbid(), config: inPlace, operation: /^open of \S+ to write it: / },
  'the bytes': { refuse: (server) => server.failWritesAfter(0), operation: /^write to \S+\.part: / },
  'a rename': { refuse: (server) => server.failRenames(PERMISSION_DENIED, false), operation: /^rename of \S+\.part to \S+: / },
  'a folder': { refuse: forbidFolders, operation: /^creation of the folder \S+: / },
  'a folder in place': {
    refuse: forbidFolders,
    config: inPlace,
    operation: /^creation of the folder \S+: /,
    untried: /cannot create folders/,
  },
}

export const rig: Rig = {
  kind: 'sftp',
  usesNetwork: true,
  connectorIn: () => sftp,

  start: async (): Promise<RunningTarget> => {
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
    const fileAt = ({ path }: { path: string }) => {
      const prefix = `sftp://127.0.0.1:${server.port}/~/`
      if (!path.startsWith(prefix)) throw new Error(`Unexpected path ${path}`)
      return join(server.directory, path.slice(prefix.length))
    }
    return {
      connector: sftp,
      target,
      network: {
        port: server.port,
        wrongCredentials: target(server.port, {}, { private_key: stranger.private }),
        secrets: [stranger.private.split('\n')[1] ?? '', server.privateKey],
        busy: startClosingServer,
        hasNoRetryAfter: true,
      },
      refusing: {
        steps,
        start: async (step) => {
          const plain = await startPlainSftpServer('right-password')
          const { refuse, config } = steps[step]!
          refuse(plain)
          const own = { host_key_sha256: undefined, ...config }
          return { target: target(plain.port, own, { private_key: undefined, password: 'right-password' }), stop: plain.stop }
        },
      },
      missingLocation: { target: target(server.port, { directory: 'not-there' }), code: 'directory_missing' },
      keepsContentType: false,
      properties: {
        names: ['Vendor', 'Rechnung: Nummer'],
        read: async (_payload, result) => JSON.parse(await readFile(`${fileAt(result)}.meta.json`, 'utf8')) as Record<string, string>,
      },
      read: async (_payload, result) => {
        const bytes = await readFile(fileAt(result))
        return { sha256: createHash('sha256').update(bytes).digest('hex'), sizeBytes: bytes.length }
      },
      documents: async () => (await files()).filter((name) => !name.endsWith('.part')),
      leftovers: async () => (await files()).filter((name) => name.endsWith('.part')),
      reset: async () => {
        for (const name of await readdir(server.directory)) await rm(join(server.directory, name), { recursive: true })
      },
      stop: server.stop,
    }
  },

  hostSettings: [
    {
      name: 'the host of sftp',
      destination: (host, port) => ({
        connector: sftp,
        config: { host: host.replace(/^\[|\]$/g, ''), port },
        credentials: { username: 'relay', password: 'secret' },
      }),
    },
  ],
  addressField: { key: 'host', form: 'host', config: {}, connector: sftp },
  tlsCases: [],

  startProbeTarget: async () => {
    const { port, username, privateKey, hostKeyFingerprint, stop } = await startSshd()
    const web = await startHttpTarget()
    return {
      connector: sftp,
      config: { host: '127.0.0.1', port, host_key_sha256: hostKeyFingerprint },
      credentials: { username, private_key: privateKey },
      mistakes: [
        ['a password', {}, { private_key: undefined, password: 'canary-password' }, /refused the user name or the password or key/],
        ['a missing folder', { directory: 'not-there' }, {}, /not-there/],
        ['another host key', { host_key_sha256: 'ab'.repeat(32) }, {}, /host key SHA256:.*host_key_sha256/],
        ['a port of another protocol', { port: web.port }, {}, /SSH/],
        ['another port', { port: await findFreePort() }, {}, /nothing listens/],
      ],
      stop: async () => {
        await web.stop()
        await stop()
      },
    }
  },

  secretSamples: [[{ username: 'relay', password: 'canary' }, ['canary']]],
}
