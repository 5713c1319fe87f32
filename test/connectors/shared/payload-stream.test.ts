import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { createWebhook } from '../../../src/connectors/webhook/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { contextOf, failure, largePayload, MiB, payloadOf } from '../payloads.ts'

const webhook = createWebhook()

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
afterAll(() => outbound.close())
const to = (port: number) => ({ config: webhook.config.parse({ url: `http://127.0.0.1:${port}/` }), credentials: {} })

test('a target that answers after the last byte, before the source has ended, has read the whole document', async () => {
  const target = await startHttpTarget()
  const bytes = Buffer.from('all there is')
  const lateEnd = async function* () {
    yield bytes
    await pause(200)
  }
  const payload = payloadOf(bytes, { open: () => Readable.from(lateEnd(), { objectMode: false }) })

  await webhook.deliver(payload, to(target.port), contextOf(outbound))

  expect(target.arrivals).toHaveLength(1)
  await target.stop()
})

test('a success before the target has read the document is a failure', async () => {
  const server = http.createServer((_request, response) => response.end('fine')).listen(0, '127.0.0.1')
  await once(server, 'listening')

  const error = await failure(webhook.deliver(largePayload(64 * MiB), to((server.address() as AddressInfo).port), contextOf(outbound)))

  expect(['answered_early', 'connection_lost']).toContain(error.code)
  server.closeAllConnections()
  server.close()
})
