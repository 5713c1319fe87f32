import { generateKeyPairSync } from 'node:crypto'
import { statusOf } from '../support/busy-server.ts'
import { describeConnector } from './conformance.ts'
import { startDriveRig } from './drive-rig.ts'

describeConnector('drive (against a double)', async () => {
  const { double, connector, connectorAt, target, reset, stop } = await startDriveRig()
  const otherKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return {
    connector,
    connectorAt,
    double: { root: double.rootAt() },
    port: double.port,
    target: (port) => target({ ...(port !== undefined && { port }) }),
    wrongCredentials: target({ account: { private_key: otherKey } }),
    busy: async (load, retryAfter) => {
      const status = statusOf(load)
      const say = {
        status,
        headers: { 'retry-after': retryAfter },
        json: { error: { code: statusOf(load), message: 'Rate Limit Exceeded', errors: [{ reason: 'rateLimitExceeded' }] } },
      }
      double.faults.push({ match: /^POST \/upload/, say, times: 1 })
      return { port: double.port, code: `http_${status}`, stop: async () => {} }
    },
    missingPlace: { target: target({ config: { folder_id: 'not-there' } }), code: 'folder_missing' },
    secrets: [otherKey, double.keyFile().private_key ?? '', 'drive-token'],
    // its media type only, without parameters
    keepsContentType: false,
    read: async ({ deliveryId }, { path }) => {
      const file = double.files.get(/^https:\/\/drive\.google\.com\/file\/d\/([^/]+)\/view$/.exec(path)?.[1] ?? '')
      return file?.appProperties.relay_delivery === deliveryId ? { sha256: file.sha256, sizeBytes: file.sizeBytes } : undefined
    },
    documents: async () => [...double.files.keys()],
    leftovers: async () => [...double.sessions.values()].filter(({ done }) => !done).map(({ fileId }) => fileId),
    reset: async () => reset(),
    stop,
  }
})
