import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { relayVariables, routeToWebhook, startRelayProcess, type RelayProcess } from '../support/relay-process.ts'
import { startTemporalDevServer } from '../support/temporal.ts'
import { until } from '../support/until.ts'

// A target that is down and returns, behind the circuit of its destination.

const maxFailures = 5
const maxConcurrent = 4
const documents = 40

let env: TestWorkflowEnvironment
let database: TestDatabase
let target: HttpTarget
const processes: RelayProcess[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  env = await startTemporalDevServer()
  target = await startHttpTarget()
}, 300_000)
afterAll(async () => {
  for (const running of processes) await running.kill()
  await target.stop()
  await env.teardown()
  await database.drop()
})

const start = async (verb: 'api' | 'worker') => {
  const running = await startRelayProcess(verb, {
    ...relayVariables(database, env.address),
    OUTBOX_SWEEP_INTERVAL_MS: '1000',
    DELIVERY_MAX_CONCURRENT_PER_DESTINATION: String(maxConcurrent),
    DELIVERY_CIRCUIT_FAILURES: String(maxFailures),
    DELIVERY_CIRCUIT_PAUSE_MS: '2000',
    DELIVERY_CIRCUIT_MAX_PAUSE_MS: '4000',
    // So that the deliveries come back soon after the target.
    DELIVERY_BUSY_MAX_WAIT_MS: '10000',
  })
  processes.push(running)
  return running
}

test('a target that is down gets one request per pause, and everything once it is back', async () => {
  const { db } = database
  const { workspaceId, workspaceSlug, destinationId } = await routeToWebhook(database, `${target.origin}/in`)
  await db('workspaces')
    .where({ id: workspaceId })
    .update({ settings: JSON.stringify({ retry_initial_interval_seconds: 1, retry_max_interval_seconds: 1, max_retries: 100 }) })
  target.answerWith((_, response) => response.writeHead(503).end())
  const api = await start('api')
  await start('worker')
  const gate = () => db('destination_gates').where({ destination_id: destinationId }).first()
  const startedAt = performance.now()
  for (let index = 0; index < documents; index += 1) {
    const response = await fetch(
      `${api.baseUrl}/receiver/acme/${workspaceSlug}?create&pVersion=0045&contRep=Z1&docId=DOC${index}&compId=data`,
      { method: 'PUT', headers: { 'content-type': 'application/octet-stream' }, body: 'hello' },
    )
    expect(response.status).toBe(201)
  }
  await until('three trials have failed', gate, (row) => row?.pause_ms === 4_000 && row.failures >= maxFailures + 3, 120_000)
  // What was under way when the circuit opened, and one trial in each pause. The pauses are 2, 4, 4, ... seconds long.
  const pauses = 1 + (performance.now() - startedAt - 2_000) / 4_000
  expect(target.arrivals.length).toBeLessThanOrEqual(maxFailures + maxConcurrent - 1 + pauses + 1)
  // No delivery has failed, and those that wait have made no attempt.
  const deliveries = await db('deliveries').where({ destination_id: destinationId }).select<{ status: string; attempts: number }[]>()
  expect(new Set(deliveries.map(({ status }) => status))).toEqual(new Set(['pending', 'retrying']))
  expect(deliveries.reduce((sum, { attempts }) => sum + attempts, 0)).toBeLessThanOrEqual(target.arrivals.length)

  target.answerWith((_, response) => response.end())
  await until(
    'all documents are delivered',
    () => db('documents').where({ workspace_id: workspaceId }).select<{ status: string }[]>('status'),
    (rows) => rows.length === documents && rows.every(({ status }) => status === 'delivered'),
    240_000,
  )
  expect(await gate()).toMatchObject({ circuit: 'closed', failures: 0 })
}, 400_000)
