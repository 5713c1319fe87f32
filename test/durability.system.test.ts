import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { deliveryWorkflowId, documentWorkflowId } from '../workflows/ids.ts'
import { documentKeyOf } from './support/factories.ts'
import { createInstallation } from './support/installation.ts'
import { routeToWebhook, type RelayProcess } from './support/relay-process.ts'
import { repeatJob } from './support/repeat-job.ts'
import { share } from './support/share.ts'
import { until } from './support/until.ts'

// Kills processes of the relay at critical moments. Every acknowledged document must be delivered, once.

const heartbeatTimeoutMs = 5_000

interface ReceivedRequest {
  deliveryId: string
  sha256: string
}

/** Starts a target. It reads the rest of a body when the promise of `onFirstBytes` resolves. */
const startTarget = async (onFirstBytes = async () => {}) => {
  const requests: ReceivedRequest[] = []
  const handleRequest = async (request: IncomingMessage, response: ServerResponse) => {
    const hash = createHash('sha256')
    let first = true
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        if (first) await onFirstBytes()
        first = false
        hash.update(chunk)
      }
    } catch {
      return
    }
    requests.push({ deliveryId: String(request.headers['webhook-id']), sha256: hash.digest('hex') })
    response.end()
  }
  const server = createServer((request, response) => void handleRequest(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const installation = share(await createInstallation({ DELIVERY_HEARTBEAT_TIMEOUT_MS: String(heartbeatTimeoutMs) }))
const { database, env } = installation
await repeatJob(env.client, 'sweep-outbox', 1_000)

/** The process of each kind that runs, which the next test uses as well: a start takes a second of processor time. */
const processes = new Map<'api' | 'worker', RelayProcess>()

const start = async (verb: 'api' | 'worker', variables?: Record<string, string>) => {
  const started = await installation.start(verb, variables)
  processes.set(verb, started)
  return started
}

const running = async (verb: 'api' | 'worker') => processes.get(verb) ?? start(verb)

const stop = async (verb: 'api' | 'worker', how: 'kill' | 'stop' = 'kill') => {
  const process = processes.get(verb)
  processes.delete(verb)
  return process?.[how]()
}

// The default is 10 seconds.
const settings = { retry_initial_interval_seconds: 1 }
const createRouteTo = ({ url }: { url: string }) => routeToWebhook(database, url, settings)

const untilCompleted = async (documentIds: string[]) =>
  Promise.all(
    documentIds.map(async (id) => env.client.workflow.getHandle(documentWorkflowId(await documentKeyOf(database.db, id))).result()),
  )

describe('an acknowledged document', () => {
  test('is delivered once if the api is killed between its answer and the start of the workflow', async () => {
    await using target = await startTarget()
    const { workspaceId, send, untilDelivered } = await createRouteTo(target)
    await stop('api')
    await stop('worker')
    // No server listens at this address, so the workflow cannot be started after the answer.
    const api = await start('api', { TEMPORAL_ADDRESS: '127.0.0.1:1' })
    const bodies = Array.from({ length: 5 }, () => randomBytes(300_000))
    for (const [index, body] of bodies.entries()) await send(api, `DOC${index}`, body)
    await stop('api')
    expect(await database.db('deliveries').where({ workspace_id: workspaceId }).whereNotNull('begin_at')).toHaveLength(bodies.length)
    // Each was captured with its body in the transaction of its document.
    expect(await database.db('captured_bodies').where({ workspace_id: workspaceId, kind: 'request' })).toHaveLength(bodies.length)

    await start('api')
    await start('worker')
    await untilCompleted(await untilDelivered(bodies.length))
    const sent = bodies.map((body) => createHash('sha256').update(body).digest('hex')).toSorted()
    expect(target.requests.map(({ sha256 }) => sha256).toSorted()).toEqual(sent)
    expect(await database.db('deliveries').whereNotNull('begin_at')).toEqual([])
  })

  test('is delivered once if the worker is killed during a delivery, and the interrupted attempt is recorded', async () => {
    let isHalfSent = false
    await using target = await startTarget(async () => {
      if (isHalfSent) return
      isHalfSent = true
      await new Promise(() => {})
    })
    const { workspaceId, destinationId, send, untilDelivered } = await createRouteTo(target)
    const api = await running('api')
    await running('worker')
    const body = randomBytes(8 * 1024 * 1024)
    await send(api, 'HALF', body)
    await until('the target received the first bytes', () => isHalfSent)
    const { id } = await database.db('documents').where({ workspace_id: workspaceId }).first('id')
    const delivery = env.client.workflow.getHandle(deliveryWorkflowId(await documentKeyOf(database.db, id), destinationId))
    await until('a heartbeat reported the attempt', async () =>
      (await delivery.describe()).raw.pendingActivities?.some(({ heartbeatDetails }) => heartbeatDetails?.payloads?.length),
    )
    await stop('worker')
    expect(target.requests).toEqual([])

    await start('worker')
    const [documentId] = await untilDelivered(1)
    await untilCompleted([documentId!])
    expect(target.requests).toEqual([
      { deliveryId: expect.stringContaining(documentId!), sha256: createHash('sha256').update(body).digest('hex') },
    ])
    expect(await database.db('delivery_attempts').where({ document_id: documentId }).orderBy('number').select('outcome')).toEqual([
      { outcome: 'interrupted' },
      { outcome: 'delivered' },
    ])
  })

  test('lets api and worker exit with status 0 on SIGTERM once it is delivered', async () => {
    await using target = await startTarget()
    const { send, untilDelivered } = await createRouteTo(target)
    const api = await running('api')
    await running('worker')
    await send(api, 'LAST', 'bye')
    await untilDelivered(1)
    expect(await stop('api', 'stop')).toBe(0)
    expect(await stop('worker', 'stop')).toBe(0)
  })
})
