import { generateKeyPairSync } from 'node:crypto'
import { createDrive } from '../../../src/connectors/drive/index.ts'
import { statusOf } from '../../support/busy-server.ts'
import { createAuthority } from '../../support/certificates.ts'
import { refuseStep } from '../../support/double.ts'
import { startDriveDouble } from '../../support/drive-double.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { pagesOf } from '../../support/pages.ts'
import type { Destination, Rig, RunningTarget, Step } from '../rig.ts'

/** Starts the double of Google Drive. */
export const startDrive = async () => {
  const authority = await createAuthority()
  const double = await startDriveDouble(await authority.issue('DNS:localhost,IP:127.0.0.1'))
  const connectorAt = (port?: number) => createDrive(double.rootAt(port))
  const connector = connectorAt()
  const target = ({ config = {}, account = {}, port = double.port }: { config?: object; account?: object; port?: number } = {}) => ({
    config: connector.config.parse({ folder_id: double.folders.shared, ca_certificate: authority.certificate, ...config }),
    credentials: connector.credentials.parse({ service_account: { ...double.keyFile(port), ...account } }),
  })
  return {
    double,
    connector,
    connectorAt,
    target,
    reset: () => {
      double.files.clear()
      double.sessions.clear()
      double.unsearchable.clear()
      double.faults.length = 0
      double.requests.length = 0
    },
    stop: async () => {
      await double.stop()
      await authority.remove()
    },
  }
}

const newPrivateKey = () =>
  generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const privateKey = newPrivateKey()

const at = (root: string, tokenUri: string): Destination => ({
  connector: createDrive(root),
  config: { folder_id: 'folder' },
  credentials: {
    service_account: {
      type: 'service_account',
      client_email: 'relay@project.example',
      private_key: privateKey,
      token_uri: tokenUri,
    },
  },
})

// The rest of what a delivery asks for is cached for ten minutes.
const steps: Record<string, Step & { request: RegExp }> = {
  'the search': { request: /^GET \/drive\/v3\/files$/, operation: /^search for the file of the delivery in the folder \S+: / },
  'an id': { request: /generateIds/, operation: /^request of an id for a new file: / },
  'the upload session': { request: /^(POST|PATCH) \/upload/, operation: /^creation of an upload session for .+ in the folder \S+: / },
  'the upload': { request: /^PUT \/upload/, operation: /^upload of bytes 0 to \d+ of .+ in the folder \S+: / },
}

export const rig: Rig = {
  kind: 'drive',
  isDouble: true,
  usesNetwork: true,
  demandsEvidence: true,
  connectorIn: (settings) => createDrive((settings as { root: string }).root),

  start: async (): Promise<RunningTarget> => {
    const { double, connector, connectorAt, target, reset, stop } = await startDrive()
    const otherKey = newPrivateKey()
    const fileAt = ({ path }: { path: string }) =>
      double.files.get(/^https:\/\/drive\.google\.com\/file\/d\/([^/]+)\/view$/.exec(path)?.[1] ?? '')
    return {
      connector,
      processSettings: { root: double.rootAt() },
      target: (port) => target({ ...(port !== undefined && { port }) }),
      network: {
        connectorAt,
        port: double.port,
        pages: async (status, which) => pagesOf(double, status, which),
        wrongCredentials: target({ account: { private_key: otherKey } }),
        secrets: [otherKey, double.keyFile().private_key ?? '', 'drive-token'],
        busy: async (load, retryAfter) => {
          const status = statusOf(load)
          const response = {
            status,
            headers: { 'retry-after': retryAfter },
            json: { error: { code: statusOf(load), message: 'Rate Limit Exceeded', errors: [{ reason: 'rateLimitExceeded' }] } },
          }
          double.faults.push({ match: /^POST \/upload/, response, times: 1 })
          return { port: double.port, code: `http_${status}`, stop: async () => {} }
        },
      },
      missingLocation: { target: target({ config: { folder_id: 'not-there' } }), code: 'folder_missing' },
      refusing: {
        steps,
        start: async (step) => ({ target: target(), ...refuseStep(double, steps[step]!.request, 403) }),
      },
      // Drive stores the media type only, without its parameters.
      keepsContentType: false,
      properties: {
        names: ['Vendor', 'Invoice number'],
        foreign: 'CheckedBy',
        read: async (_payload, result) => fileAt(result)?.properties ?? {},
        add: async (_payload, result, properties) => void Object.assign(fileAt(result)!.properties, properties),
      },
      read: async ({ deliveryId }, result) => {
        const file = fileAt(result)
        return file?.appProperties.relay_delivery === deliveryId ? { sha256: file.sha256, sizeBytes: file.sizeBytes } : undefined
      },
      readByNames: async ({ file_id: id }) => double.files.get(String(id)),
      documents: async () => [...double.files.keys()],
      leftovers: async () => [...double.sessions.values()].filter(({ done }) => !done).map(({ fileId }) => fileId),
      reset: async () => reset(),
      stop,
    }
  },

  hostSettings: [
    {
      name: 'the token_uri of drive',
      destination: (host, port) => at('https://www.googleapis.com', `https://${host}:${port}/token`),
    },
  ],
  tlsCases: [
    {
      name: 'drive, where it signs in',
      destination: (port) => at(`https://127.0.0.1:${port}`, `https://127.0.0.1:${port}/token`),
      listen: startHttpTarget,
      isHttp: true,
    },
  ],

  startProbeTarget: async () => {
    const { double, connector, target, stop } = await startDrive()
    const { config, credentials } = target()
    const account = credentials.service_account
    return {
      connector,
      config: { ...config },
      credentials: { ...credentials },
      mistakes: [
        ['another key', {}, { service_account: { ...account, private_key: newPrivateKey() } }, /create a new key file/],
        [
          'an account that does not exist',
          {},
          { service_account: { ...account, client_email: 'gone@project.example' } },
          /does not exist or is disabled/,
        ],
        ['a missing folder', { folder_id: 'not-there' }, {}, /folder not-there does not exist, or is not shared.*share it/],
        ['a read-only folder', { folder_id: double.folders.readOnly }, {}, /not add files to it; make it a contributor/],
        ['a personal folder', { folder_id: double.folders.personal }, {}, /owns no storage.*shared drive/],
        ['a user without delegation', { subject: 'other@contoso.example' }, {}, /is not permitted to act for other@contoso\.example/],
      ],
      stop,
    }
  },

  startResumable: async () => {
    const { double, connector, target, stop } = await startDrive()
    return {
      connector,
      target: target(),
      stored: async () => [...double.files.values()].at(-1)?.sha256,
      expected: ({ sha256 }) => sha256,
      documentCount: async () => double.files.size,
      unfinished: () => [...double.sessions.values()].filter(({ done }) => !done).length,
      forget: async () => double.sessions.clear(),
      stop,
    }
  },

  secretSamples: [
    [
      { service_account: { type: 'service_account', client_email: 'relay@project.example', private_key: privateKey, project_id: 'p' } },
      [privateKey],
    ],
  ],
}
