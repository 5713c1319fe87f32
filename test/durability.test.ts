import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { deliveryWorkflowId, documentWorkflowId } from '../workflows/messages.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { relayVariables, startRelayProcess, wireToWebhook, type RelayProcess } from './support/relay-process.ts'
import { startTemporalDevServer } from './support/temporal.ts'
import { until } from './support/until.ts'

// Processes of the relay are killed in the worst moments; what was acknowledged must arrive all the same, once.

const heartbeatTimeoutMs = 2_000

interface Call {
  deliveryId: string
  sha256: string
}

let env: TestWorkflowEnvironment
let database: TestDatabase
let target: Server
let calls: Call[] = []
/** Called when the first bytes of a body have come; what it returns is waited for before the rest is read. */
let onFirstBytes: () => Promise<void> = async () => {}
const processes: RelayProcess[] = []

const take = async (request: IncomingMessage, response: ServerResponse) => {
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
  calls.push({ deliveryId: String(request.headers['webhook-id']), sha256: hash.digest('hex') })
  response.end()
}

beforeAll(async () => {
  database = await createTestDatabase()
  env = await startTemporalDevServer()
  target = createServer((request, response) => void take(request, response)).listen(0, '127.0.0.1')
  await once(target, 'listening')
})

afterAll(async () => {
  target.closeAllConnections()
  target.close()
  await env.teardown()
  await database.drop()
})

beforeEach(() => {
  calls = []
  onFirstBytes = async () => {}
})

afterEach(async () => {
  for (const running of processes.splice(0)) await running.kill().catch(() => undefined)
})

const start = async (verb: 'api' | 'worker', temporalAddress = env.address) => {
  const running = await startRelayProcess(verb, {
    ...relayVariables(database, temporalAddress),
    OUTBOX_SWEEP_AGE_MS: '0',
    OUTBOX_SWEEP_INTERVAL_MS: '1000',
    DELIVERY_HEARTBEAT_TIMEOUT_MS: String(heartbeatTimeoutMs),
  })
  processes.push(running)
  return running
}

const wireToTarget = () => wireToWebhook(database, `http://127.0.0.1:${(target.address() as AddressInfo).port}/`)

const create = async (api: RelayProcess, workspaceSlug: string, docId: string, body: Buffer) => {
  const response = await fetch(`${api.baseUrl}/receiver/acme/${workspaceSlug}?create&pVersion=0045&contRep=Z1&docId=${docId}&compId=data`, {
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream' },
    body: new Uint8Array(body),
  })
  return response.status
}

const untilDelivered = async (workspaceId: string, count: number) => {
  const documents = () =>
    database.db('documents').where({ workspace_id: workspaceId }).select<{ id: string; status: string }[]>('id', 'status')
  const areDelivered = (rows: { status: string }[]) => rows.length === count && rows.every(({ status }) => status === 'delivered')
  return (await until('all are delivered', documents, areDelivered)).map(({ id }) => id)
}

const closedWell = async (documentIds: string[]) =>
  Promise.all(documentIds.map(async (id) => env.client.workflow.getHandle(documentWorkflowId(id)).result()))

describe('what was acknowledged', () => {
  it('is delivered once, though the process died between the answer and the start of the workflow', async () => {
    const { workspaceId, workspaceSlug } = await wireToTarget()
    // nobody listens there: the answer is given, the workflow cannot be started
    const api = await start('api', '127.0.0.1:1')
    const bodies = Array.from({ length: 5 }, () => randomBytes(300_000))
    for (const [index, body] of bodies.entries()) expect(await create(api, workspaceSlug, `DOC${index}`, body)).toBe(201)
    await api.kill()
    expect(await database.db('outbox').select('key')).toHaveLength(bodies.length)

    await start('api')
    await start('worker')
    await closedWell(await untilDelivered(workspaceId, bodies.length))
    const sent = bodies.map((body) => createHash('sha256').update(body).digest('hex')).toSorted()
    expect(calls.map((call) => call.sha256).toSorted()).toEqual(sent)
    expect(await database.db('outbox').select('key')).toEqual([])
  })

  it('is delivered once, though the worker died in mid-delivery; the lost attempt is on record', async () => {
    const { workspaceId, workspaceSlug, destinationId } = await wireToTarget()
    const api = await start('api')
    const first = await start('worker')
    let isHalfSent = false
    onFirstBytes = async () => {
      onFirstBytes = async () => {}
      isHalfSent = true
      await new Promise(() => {})
    }
    const body = randomBytes(8 * 1024 * 1024)
    expect(await create(api, workspaceSlug, 'HALF', body)).toBe(201)
    await until('the first bytes', () => isHalfSent)
    const { id } = await database.db('documents').where({ workspace_id: workspaceId }).first('id')
    const delivery = env.client.workflow.getHandle(deliveryWorkflowId(id, destinationId))
    await until('a heartbeat has told that the attempt is under way', async () =>
      (await delivery.describe()).raw.pendingActivities?.some(({ heartbeatDetails }) => heartbeatDetails?.payloads?.length),
    )
    await first.kill()
    expect(calls).toEqual([])

    await start('worker')
    const [documentId] = await untilDelivered(workspaceId, 1)
    await closedWell([documentId!])
    expect(calls).toEqual([{ deliveryId: expect.stringContaining(documentId!), sha256: createHash('sha256').update(body).digest('hex') }])
    expect(await database.db('delivery_attempts').where({ document_id: documentId }).orderBy('number').select('outcome')).toEqual([
      { outcome: 'interrupted' },
      { outcome: 'delivered' },
    ])
  })

  it('leaves no process and no open work where both are asked to stop', async () => {
    const { workspaceId, workspaceSlug } = await wireToTarget()
    const api = await start('api')
    const worker = await start('worker')
    expect(await create(api, workspaceSlug, 'LAST', Buffer.from('bye'))).toBe(201)
    await untilDelivered(workspaceId, 1)
    expect(await api.stop()).toBe(0)
    expect(await worker.stop()).toBe(0)
  })
})
