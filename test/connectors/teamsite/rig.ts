import { createEntraTokens } from '../../../src/connectors/shared/entra-tokens.ts'
import { createTeamsite } from '../../../src/connectors/teamsite/index.ts'
import { microsoftClouds } from '../../../src/connectors/teamsite/schema.ts'
import { statusOf } from '../../support/busy-server.ts'
import { createAuthority } from '../../support/certificates.ts'
import { refuseStep } from '../../support/double.ts'
import { startGraphDouble } from '../../support/graph-double.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { pagesOf } from '../../support/pages.ts'
import type { Destination, Rig, RunningTarget, Step } from '../rig.ts'

/** Creates the connector with other hosts in place of Microsoft's. */
const teamsiteAt = (root: string, scope: string) => {
  const cloud = { authorityHost: root, graphRoot: root, scope }
  const clouds = Object.fromEntries(Object.keys(microsoftClouds).map((name) => [name, cloud])) as typeof microsoftClouds
  return createTeamsite(createEntraTokens(), clouds)
}

/** Starts the double of Graph and Entra. */
export const startTeamsite = async () => {
  const authority = await createAuthority()
  const double = await startGraphDouble(await authority.issue('DNS:localhost,IP:127.0.0.1'))
  const connectorAt = (port?: number) => teamsiteAt(double.rootAt(port), double.scope)
  const connector = connectorAt()
  const target = (config: object = {}, credentials: object = {}) => ({
    config: connector.config.parse({
      site_url: double.siteUrl,
      document_library: 'Documents',
      folder: 'From the relay',
      ca_certificate: authority.certificate,
      ...config,
    }),
    credentials: connector.credentials.parse({
      tenant_id: double.application.tenantId,
      client_id: double.application.clientId,
      client_secret: double.application.clientSecret,
      ...credentials,
    }),
  })
  return {
    double,
    connector,
    connectorAt,
    target,
    reset: () => {
      double.items.clear()
      double.sessions.clear()
      double.faults.length = 0
      double.requests.length = 0
    },
    stop: async () => {
      await double.stop()
      await authority.remove()
    },
  }
}

const at = (root: string): Destination => ({
  connector: teamsiteAt(root, 'https://graph.example/.default'),
  config: { site_url: 'https://contoso.sharepoint.com/sites/Finance', document_library: 'Documents' },
  credentials: { tenant_id: 'contoso.example', client_id: 'client-1', client_secret: 'the-secret' },
})

// The rest of what a delivery asks for is cached for ten minutes.
const steps: Record<string, Step & { request: RegExp }> = {
  'the content': { request: /:\/content$/, operation: /^upload of \/From the relay\/.+: / },
  'the upload session': { request: /:\/createUploadSession$/, operation: /^creation of an upload session for \/From the relay\/.+: / },
  'the upload host': { request: /^PUT \/up\//, operation: /^upload of bytes 0 to \d+ of \/From the relay\/.+: / },
}

export const rig: Rig = {
  kind: 'teamsite',
  isDouble: true,
  usesNetwork: true,
  demandsEvidence: true,
  connectorIn: (settings) => {
    const { root, scope } = settings as { root: string; scope: string }
    return teamsiteAt(root, scope)
  },

  start: async (): Promise<RunningTarget> => {
    const { double, connector, connectorAt, target, reset, stop } = await startTeamsite()
    const itemAt = ({ path }: { path: string }) => {
      const prefix = `${double.siteUrl}/Documents/`
      if (!path.startsWith(`${prefix}From%20the%20relay/`)) throw new Error(`Unexpected path ${path}`)
      return double.find('Documents', path.slice(prefix.length).split('/').map(decodeURIComponent).join('/'))
    }
    return {
      connector,
      processSettings: { root: double.rootAt(), scope: double.scope },
      target: () => target(),
      network: {
        connectorAt,
        port: double.port,
        pages: async (status, which) => pagesOf(double, status, which),
        wrongCredentials: target({}, { client_secret: 'not-the-secret' }),
        secrets: ['not-the-secret', double.application.clientSecret],
        busy: async (load, retryAfter) => {
          const status = statusOf(load)
          const response = {
            status,
            headers: { 'retry-after': retryAfter },
            json: { error: { code: 'activityLimitReached', message: 'The request has been throttled' } },
          }
          double.faults.push({ match: /^PUT /, response, times: 1 })
          return { port: double.port, code: `http_${status}`, stop: async () => {} }
        },
      },
      missingLocation: { target: target({ document_library: 'Nowhere' }), code: 'library_missing' },
      refusing: {
        steps,
        start: async (step) => ({ target: target(), ...refuseStep(double, steps[step]!.request, 403) }),
      },
      keepsContentType: false,
      properties: {
        names: ['Vendor', 'InvoiceNumber'],
        foreign: 'CheckedBy',
        read: async (_payload, result) => (itemAt(result)?.columns ?? {}) as Record<string, string>,
        add: async (_payload, result, properties) => void Object.assign(itemAt(result)!.columns, properties),
      },
      read: async (_payload, result) => itemAt(result),
      readByNames: async ({ item_id: id, etag }) => [...double.items.values()].find((item) => item.id === id && typeof etag === 'string'),
      documents: async () => [...double.items.keys()],
      leftovers: async () => [...double.sessions.keys()],
      reset: async () => reset(),
      stop,
    }
  },

  hostSettings: [
    {
      // No member of a workspace can name this host. The test covers the forms of an address in a URL.
      name: 'the authority where teamsite signs in',
      destination: (host, port) => at(new URL(`https://${host}:${port}`).origin),
    },
  ],
  addressField: {
    key: 'site_url',
    form: 'url',
    config: { document_library: 'Documents' },
    connector: teamsiteAt('https://graph.example', 's'),
  },
  tlsCases: [
    { name: 'teamsite, where it signs in', destination: (port) => at(`https://127.0.0.1:${port}`), listen: startHttpTarget, isHttp: true },
  ],

  startProbeTarget: async () => {
    const { connector, target, stop } = await startTeamsite()
    const { config, credentials } = target()
    return {
      connector,
      config: { ...config },
      credentials: { ...credentials },
      mistakes: [
        ['another secret', {}, { client_secret: 'canary-secret' }, /client_secret is wrong; enter the value of a secret/],
        ['another application', {}, { client_id: 'client-2' }, /client_id is no application/],
        [
          'another site',
          { site_url: 'https://contoso.sharepoint.com/sites/Nowhere' },
          {},
          /site .*Nowhere does not exist.*correct site_url/,
        ],
        ['another library', { document_library: 'Nowhere' }, {}, /no document library Nowhere; it has: Documents/],
        ['no authority', { ca_certificate: undefined }, {}, /certificate is not trusted/],
      ],
      stop,
    }
  },

  startResumable: async () => {
    const { double, connector, target, stop } = await startTeamsite()
    return {
      connector,
      target: target(),
      stored: async () => [...double.items.values()].at(-1)?.sha256,
      expected: ({ sha256 }) => sha256,
      documentCount: async () => double.items.size,
      unfinished: () => double.sessions.size,
      forget: async () => double.sessions.clear(),
      stop,
    }
  },

  secretSamples: [[{ tenant_id: 'acme.example', client_id: 'client', client_secret: 'canary' }, ['canary']]],
}
