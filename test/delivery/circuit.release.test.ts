import { randomUUID } from 'node:crypto'
import { closeCircuit } from '../../src/delivery/circuit.ts'
import { openClient } from '../support/client.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { createInstallation } from '../support/installation.ts'
import { routeToWebhook, type RelayProcess } from '../support/relay-process.ts'
import { repeatJob } from '../support/repeat-job.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

// A target that is down and returns, behind the circuit of its destination.

const maxFailures = 5
const maxConcurrent = 4
const documents = 20
const minute = 60_000

const target = share(await startHttpTarget())
const { database, env, start } = share(
  await createInstallation({
    DELIVERY_MAX_CONCURRENT_PER_DESTINATION: String(maxConcurrent),
    DELIVERY_CIRCUIT_FAILURES: String(maxFailures),
  }),
)
await repeatJob(env.client, 'sweep-outbox', 1_000)

/** Creates a workspace with a route to the target, whose retries follow soon. */
const createRoute = async () => {
  const { db } = database
  const settings = { retry_initial_interval_seconds: 1, retry_max_interval_seconds: 1, max_retries: 100 }
  const { workspaceId, workspaceSlug, destinationId, send, untilDelivered } = await routeToWebhook(
    database,
    `${target.origin}/in`,
    settings,
  )
  return {
    destinationId,
    workspace: { id: workspaceId, name: `acme/${workspaceSlug}` },
    gate: () => db('destination_gates').where({ destination_id: destinationId }).first(),
    send: async (api: RelayProcess, count: number) => {
      for (let index = 0; index < count; index += 1) await send(api, randomUUID())
    },
    untilDelivered,
    /** Waits until each open delivery stands in line. @returns their number */
    untilInLine: async () => {
      const open = await until(
        'each open delivery is in line',
        () =>
          db('deliveries')
            .where({ destination_id: destinationId })
            .whereNot({ status: 'delivered' })
            .select<{ waiting: string | null }[]>('waiting'),
        (rows) => rows.every(({ waiting }) => waiting === 'in_line'),
        120_000,
      )
      return open.length
    },
  }
}

test('a target that is down gets one request per pause, and everything once it is back', async () => {
  const { db } = database
  const { destinationId, gate, send, untilDelivered } = await createRoute()
  target.answerWith((_, response) => response.writeHead(503).end())
  const pauses = { DELIVERY_CIRCUIT_PAUSE_MS: '400' }
  const api = await start('api', pauses)
  const worker = await start('worker', pauses)
  const startedAt = performance.now()
  await send(api, documents)
  await until('three trials have failed', gate, (row) => row?.pause_ms === 2_400 && row.failures >= maxFailures + 3, 120_000)
  // What was under way when the circuit opened, and one trial in each pause. The pauses are 0.4, 0.8, 1.6, 2.4, 2.4, ... seconds long.
  const trials = 3 + (performance.now() - startedAt - 2_800) / 2_400
  expect(target.arrivals.length).toBeLessThanOrEqual(maxFailures + maxConcurrent - 1 + trials + 1)
  // No delivery has failed, and those that wait have made no attempt.
  const deliveries = await db('deliveries').where({ destination_id: destinationId }).select<{ status: string; attempts: number }[]>()
  expect(new Set(deliveries.map(({ status }) => status))).toEqual(new Set(['pending', 'retrying']))
  expect(deliveries.reduce((sum, { attempts }) => sum + attempts, 0)).toBeLessThanOrEqual(target.arrivals.length)

  target.answerWith((_, response) => response.end())
  await untilDelivered(documents)
  expect(await gate()).toMatchObject({ circuit: 'closed', failures: 0 })
  await worker.stop()
  await api.stop()
}, 400_000)

test('deliveries in line are called when the circuit closes, even if the process that closes it is lost', async () => {
  const { db } = database
  const { destinationId, workspace, gate, send, untilInLine, untilDelivered } = await createRoute()
  target.answerWith((_, response) => response.writeHead(503).end())
  const pauses = { DELIVERY_CIRCUIT_PAUSE_MS: String(20 * minute) }
  const api = await start('api', pauses)
  const worker = await start('worker', pauses)
  await send(api, 25)
  expect(await untilInLine()).toBe(25)
  expect(await gate()).toMatchObject({ circuit: 'open' })

  // A change of the destination calls the first in line for a trial, and its success calls the others.
  target.answerWith((_, response) => response.end())
  const { change } = await openClient(db, api.baseUrl, workspace)
  await change('PATCH', `/destinations/${destinationId}`, { config: { headers: { 'x-repaired': 'yes' } } })
  await untilDelivered(25)
  expect(await gate()).toMatchObject({ circuit: 'closed', failures: 0 })

  target.answerWith((_, response) => response.writeHead(503).end())
  await send(api, 10)
  expect(await untilInLine()).toBe(10)
  // What a process has done that was killed right after its commit, while no worker runs.
  await worker.kill()
  target.answerWith((_, response) => response.end())
  await closeCircuit(db, destinationId)
  await start('worker', pauses)
  await untilDelivered(35)
}, 600_000)
