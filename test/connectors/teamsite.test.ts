import { statusOf } from '../support/busy-server.ts'
import { describeConnector } from './conformance.ts'
import { startTeamsiteRig } from './teamsite-rig.ts'

describeConnector('teamsite (against a double)', async () => {
  const { double, connector, connectorAt, target, reset, stop } = await startTeamsiteRig()
  return {
    connector,
    connectorAt,
    double: { root: double.rootAt(), scope: double.scope },
    port: double.port,
    target: () => target(),
    wrongCredentials: target({}, { client_secret: 'not-the-secret' }),
    busy: async (load, retryAfter) => {
      const status = statusOf(load)
      const say = {
        status,
        headers: { 'retry-after': retryAfter },
        json: { error: { code: 'activityLimitReached', message: 'The request has been throttled' } },
      }
      double.faults.push({ match: /^PUT /, say, times: 1 })
      return { port: double.port, code: `http_${status}`, stop: async () => {} }
    },
    missingPlace: { target: target({ document_library: 'Nowhere' }), code: 'library_missing' },
    secrets: ['not-the-secret', double.application.clientSecret],
    keepsContentType: false,
    read: async (_parcel, { path }) => {
      const prefix = `${double.siteUrl}/Documents/`
      if (!path.startsWith(`${prefix}From%20the%20relay/`)) throw new Error(`unexpected path ${path}`)
      return double.find('Documents', path.slice(prefix.length).split('/').map(decodeURIComponent).join('/'))
    },
    documents: async () => [...double.items.keys()],
    leftovers: async () => [...double.sessions.keys()],
    reset: async () => reset(),
    stop,
  }
})
