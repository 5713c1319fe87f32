import { webhook } from '../../src/connectors/webhook.ts'
import { startBusyServer } from '../support/busy-server.ts'
import { startHttpTarget, type Arrival } from '../support/http-target.ts'
import { describeConnector } from './conformance.ts'

describeConnector('webhook', async () => {
  const server = await startHttpTarget()
  server.answerWith(({ url, headers }, response) => {
    if (headers.authorization !== 'Bearer right-token') return response.writeHead(401).end(`you are not ${headers.authorization}`)
    return response.writeHead(url === '/documents' ? 200 : 404).end('taken')
  })
  const target = (port = server.port, config: object = {}, credentials: object = {}) => ({
    config: webhook.config.parse({ url: `http://127.0.0.1:${port}/documents`, ...config }),
    credentials: webhook.credentials.parse({ bearer_token: 'right-token', secret: 'signing-secret', ...credentials }),
  })
  // a receiver that knows a repetition by its id, as docs/connectors/webhook.md asks of it
  const documents = () => {
    const taken = server.arrivals.filter(
      ({ headers, body }) => headers.authorization === 'Bearer right-token' && !body.toString().includes('"ping"'),
    )
    return new Map(taken.map((arrival): [string, Arrival] => [String(arrival.headers['webhook-id']), arrival]))
  }
  return {
    connector: webhook,
    port: server.port,
    target,
    wrongCredentials: target(server.port, {}, { bearer_token: 'wrong-token' }),
    busy: (load, retryAfter) => startBusyServer(load, { 'retry-after': retryAfter }, 'later'),
    missingPlace: { target: target(server.port, { url: `${server.origin}/nowhere` }), code: 'http_404' },
    secrets: ['right-token', 'wrong-token', 'signing-secret'],
    keepsContentType: true,
    read: async (parcel) => {
      const arrival = documents().get(parcel.deliveryId)
      if (!arrival || decodeURIComponent(String(arrival.headers['x-relay-path'])) !== parcel.path) return undefined
      return { sha256: arrival.sha256, sizeBytes: arrival.sizeBytes, contentType: arrival.headers['content-type'] }
    },
    documents: async () => [...documents().keys()],
    leftovers: async () => [],
    reset: async () => {
      server.arrivals.length = 0
    },
    stop: server.stop,
  }
})
