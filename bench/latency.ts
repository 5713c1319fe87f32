// Measures the time from the answer to a create until the document is at the target, at light load: one document at a time. The baseline
// is the time from the start of an equally shaped workflow until its activity has sent a request to the same target. Both are measured
// alternately. The goal is 1.1 times the baseline plus 20 ms.
import { setTimeout as delay } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import { newId } from '../src/base/ids.ts'
import { documentWorkflowId } from '../workflows/ids.ts'
import { startArrivals } from './support/arrivals.ts'
import { withInstallation } from './support/installation.ts'
import { commonOptions, readOptions, temporalOption } from './support/options.ts'
import { printResult, say } from './support/report.ts'
import { createByPut, createRequests } from './support/requests.ts'
import { quantile, rangeOf } from './support/statistics.ts'
import { createConnectedWorkspace } from './support/workspace.ts'

const options = readOptions('latency', { ...commonOptions, ...temporalOption, documents: { type: 'string' }, rounds: { type: 'string' } })
const documents = Number(options.documents ?? (options.quick ? 5 : 100))
const rounds = Number(options.rounds ?? (options.quick ? 1 : 5))
const body = Buffer.alloc(10 * 1024, 'x')
// A pause of changing length, so that documents do not keep step with a timer of the relay or of Temporal.
const pauseMaxMs = 100
const quantiles = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 }

await withInstallation(async (installation) => {
  const server = await installation.startRelay('server')
  const target = await startArrivals()
  await installation.startModule('baseline worker', new URL('./baseline/worker.ts', import.meta.url), { ARRIVAL_URL: target.url })
  const connection = await Connection.connect(installation.config.temporal.connectionOptions)
  const client = new Client({ connection, namespace: installation.config.temporal.namespace ?? 'default' })
  const requests = createRequests(1)
  const name = 'bench/latency'
  const receiverUrl = await createConnectedWorkspace(installation, server.baseUrl, { name, targetUrls: [target.url] })

  const runRelay = async (): Promise<number> => {
    const docId = newId()
    const arrival = target.arrival(docId)
    await requests.send(createByPut(receiverUrl, docId, body), 201)
    const answeredAt = performance.now()
    const { atMs, documentId } = await arrival
    await client.workflow.getHandle(documentWorkflowId({ documentId, workspace: name, repoId: 'Z1', docId, compId: 'data' })).result()
    return atMs - answeredAt
  }
  const runBaseline = async (): Promise<number> => {
    const arrival = target.arrival('baseline')
    const handle = await client.workflow.start('bareDocument', { workflowId: `baseline/${newId()}`, taskQueue: 'baseline', args: [1] })
    const startedAt = performance.now()
    const { atMs } = await arrival
    await handle.result()
    return atMs - startedAt
  }

  const measured: { ours: number[]; floor: number[] }[] = []
  // Round 0 is a warm-up and not counted.
  for (let round = 0; round <= rounds; round += 1) {
    const times = { ours: [] as number[], floor: [] as number[] }
    for (let sent = 0; sent < documents; sent += 1) {
      times.floor.push(await runBaseline())
      await delay(Math.random() * pauseMaxMs)
      times.ours.push(await runRelay())
      await delay(Math.random() * pauseMaxMs)
    }
    const [ours, floor] = [quantile(times.ours, 0.5), quantile(times.floor, 0.5)]
    say(`${round === 0 ? 'warm-up' : `round ${round}`}: relay ${ours.toFixed(0)} ms, baseline ${floor.toFixed(0)} ms (medians)`)
    if (round > 0) measured.push(times)
  }
  const rows = Object.entries(quantiles).map(([label, part]) => ({
    case: label,
    ours_ms: rangeOf(measured.map(({ ours }) => quantile(ours, part))),
    floor_ms: rangeOf(measured.map(({ floor }) => quantile(floor, part))),
    goal_ms: 1.1 * rangeOf(measured.map(({ floor }) => quantile(floor, part))).median + 20,
  }))
  const lines = rows.map(
    ({ case: label, ours_ms: ours, floor_ms: floor, goal_ms: goal }) =>
      `${label}: ${ours.median.toFixed(0)} ms (${ours.min.toFixed(0)} to ${ours.max.toFixed(0)}), baseline ${floor.median.toFixed(0)} ms ` +
      `(${floor.min.toFixed(0)} to ${floor.max.toFixed(0)}), goal ${goal.toFixed(0)} ms`,
  )
  printResult(
    options.json,
    { name: 'latency', settings: { rounds, documents, bytes: body.length, temporal: installation.temporalName }, rows },
    lines,
  )
  await Promise.all([requests.close(), target.stop(), connection.close()])
}, options)
