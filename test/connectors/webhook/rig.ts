import { createWebhook } from '../../../src/connectors/webhook/index.ts'
import { findFreePort } from '../../../src/programs/ports.ts'
import { startBusyServer } from '../../support/busy-server.ts'
import { startHttpTarget, type Arrival } from '../../support/http-target.ts'
import type { Rig, RunningTarget } from '../rig.ts'

const webhook = createWebhook()

export const rig: Rig = {
  kind: 'webhook',
  usesNetwork: true,
  connectorIn: () => webhook,

  start: async (): Promise<RunningTarget> => {
    const server = await startHttpTarget()
    server.answerWith(({ url, headers }, response) => {
      if (headers.authorization !== 'Bearer right-token') return response.writeHead(401).end(`you are not ${headers.authorization}`)
      return response.writeHead(url === '/documents' ? 200 : 404).end(JSON.stringify({ id: headers['webhook-id'] }))
    })
    const target = (port = server.port, config: object = {}, credentials: object = {}) => ({
      config: webhook.config.parse({ url: `http://127.0.0.1:${port}/documents`, ...config }),
      credentials: webhook.credentials.parse({ bearer_token: 'right-token', secret: 'signing-secret', ...credentials }),
    })
    // A receiver that drops what has an id that it has seen, as docs/connectors/webhook.md says.
    const documents = () => {
      const accepted = server.arrivals.filter(
        ({ headers, body }) => headers.authorization === 'Bearer right-token' && !body.toString().includes('"ping"'),
      )
      return new Map(accepted.toReversed().map((arrival): [string, Arrival] => [String(arrival.headers['webhook-id']), arrival]))
    }
    return {
      connector: webhook,
      target,
      network: {
        port: server.port,
        wrongCredentials: target(server.port, {}, { bearer_token: 'wrong-token' }),
        secrets: ['right-token', 'wrong-token', 'signing-secret'],
        busy: (load, retryAfter) => startBusyServer(load, { 'retry-after': retryAfter }, 'later'),
      },
      refusing: {
        steps: {
          'every request': { operation: /^POST of \S+ to http:\/\/127\.0\.0\.1:\d+: / },
          // What takes a document may do something with it.
          'a document': { operation: /^POST of R1\/\S+\/data to http:\/\/127\.0\.0\.1:\d+: /, untried: /No document was sent/ },
        },
        start: async (step) => {
          const other = await startHttpTarget()
          other.answerWith(({ body }, response) =>
            response.writeHead(step === 'a document' && body.toString().includes('"ping"') ? 200 : 422).end('not for you'),
          )
          return { target: target(other.port), stop: other.stop }
        },
      },
      missingLocation: { target: target(server.port, { url: `${server.origin}/nowhere` }), code: 'http_404' },
      keepsContentType: true,
      read: async (payload) => {
        const arrival = documents().get(payload.messageId)
        // A path that is too long for a header has none.
        const { 'x-relay-path': path } = arrival?.headers ?? {}
        if (!arrival || (path !== undefined && decodeURIComponent(String(path)) !== payload.path)) return undefined
        return { sha256: arrival.sha256, sizeBytes: arrival.sizeBytes, contentType: arrival.headers['content-type'] }
      },
      readByNames: async ({ id }) => documents().get(String(id)),
      documents: async () => [...documents().keys()],
      leftovers: async () => [],
      reset: async () => {
        server.arrivals.length = 0
      },
      stop: server.stop,
    }
  },

  hostSettings: [
    {
      name: 'the url of webhook',
      destination: (host, port) => ({ connector: webhook, config: { url: `http://${host}:${port}/` }, credentials: {} }),
    },
  ],
  addressField: { key: 'url', form: 'url', config: {}, connector: webhook },
  tlsCases: [
    {
      name: 'webhook',
      destination: (port) => ({
        connector: webhook,
        config: { url: `https://127.0.0.1:${port}/` },
        credentials: { bearer_token: 'right-token' },
      }),
      listen: startHttpTarget,
      isHttp: true,
    },
  ],

  startProbeTarget: async () => {
    const server = await startHttpTarget()
    server.answerWith(({ url, headers }, response) => {
      const status = headers.authorization === 'Bearer right-token' ? (url === '/in' ? 200 : 404) : 401
      response.writeHead(status).end(`you said ${headers.authorization}`)
    })
    return {
      connector: webhook,
      config: { url: `${server.origin}/in` },
      credentials: { bearer_token: 'right-token' },
      mistakes: [
        ['another token', {}, { bearer_token: 'canary-token' }, /401.*refuses the credentials/],
        ['another path', { url: `${server.origin}/out` }, {}, /404/],
        ['https at an http server', { url: `https://127.0.0.1:${server.port}/in` }, {}, /TLS/],
        ['another port', { url: `http://127.0.0.1:${await findFreePort()}/` }, {}, /nothing listens/],
        ['an unknown host name', { url: 'http://no-such-host.invalid/' }, {}, /host name does not exist|name server did not answer/],
      ],
      stop: server.stop,
    }
  },

  secretSamples: [[{ username: 'relay', password: 'canary', secret: 'canary-2' }, ['canary', 'canary-2']]],
}
