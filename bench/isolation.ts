// Measures how far a destination and a workspace are affected by others: the time from the answer to a create until the document is at a
// healthy target, while documents are sent to it at a constant rate; alone, beside destinations of the same workspace that hang and
// fail, and beside a workspace that floods the relay. The goal is that its 95th percentile is at most 1.5 times that alone.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openDatabase } from '../src/db/database.ts'
import { newId } from '../src/ids.ts'
import { startArrivals } from './support/arrivals.ts'
import { temporalOption, withInstallation } from './support/installation.ts'
import { commonOptions, printResult, say } from './support/report.ts'
import { createByPut, createRequests } from './support/requests.ts'
import { quantile, rangeOf } from './support/statistics.ts'
import { createConnectedWorkspace } from './support/workspace.ts'

const { values: options } = parseArgs({
  options: { ...commonOptions, ...temporalOption, seconds: { type: 'string' }, rounds: { type: 'string' }, flood: { type: 'string' } },
})
const seconds = Number(options.seconds ?? (options.quick ? 5 : 30))
const rounds = Number(options.rounds ?? (options.quick ? 1 : 3))
// Three times of what such a machine delivers.
const floodPerSecond = Number(options.flood ?? 60)
const probesPerSecond = 2
// Documents per second to each of the two other destinations.
const othersPerSecond = 1
const body = Buffer.alloc(10 * 1024, 'x')

/** Starts a target that never answers, or that answers 503. */
const startBadTarget = async (answer: 'never' | 503) => {
  const server = createServer((request, response) => {
    request.resume()
    if (answer === 503) response.writeHead(503).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, stop }
}

await withInstallation(async (installation) => {
  const server = await installation.startRelay('server')
  const db = openDatabase(installation.config, 'bench')
  const requests = createRequests(50)
  const healthy = await startArrivals()
  const flooded = await startArrivals()
  const accepting = await startArrivals()
  const hanging = await startBadTarget('never')
  const failing = await startBadTarget(503)
  const receiverUrl = await createConnectedWorkspace(installation, server.baseUrl, {
    name: 'bench/healthy',
    targetUrls: [healthy.url],
    others: { HANG: [hanging.url], FAIL: [failing.url], GOOD: [accepting.url], FINE: [accepting.url] },
  })
  const floodUrl = await createConnectedWorkspace(installation, server.baseUrl, { name: 'bench/flood', targetUrls: [flooded.url] })

  /** Sends documents at a constant rate, whatever becomes of the earlier ones. */
  const sendAtRate = async (perSecond: number, send: () => Promise<unknown>) => {
    const sent: Promise<unknown>[] = []
    const startedAt = performance.now()
    for (let number = 0; number < seconds * perSecond; number += 1) {
      await delay(Math.max(0, startedAt + (number * 1_000) / perSecond - performance.now()))
      sent.push(send())
    }
    await Promise.all(sent)
  }
  /** Returns the times from the answer to the arrival at the healthy target. */
  const probe = async (): Promise<number[]> => {
    const timesMs: number[] = []
    await sendAtRate(probesPerSecond, async () => {
      const docId = newId()
      const arrival = healthy.arrival(docId)
      await requests.send(createByPut(receiverUrl, docId, body), 201)
      const answeredAt = performance.now()
      timesMs.push((await arrival).atMs - answeredAt)
    })
    return timesMs
  }
  /** Sends documents to each of these repositories: at a constant rate, each at a random moment of its interval. */
  const sendTo = (repoIds: string[]) =>
    sendAtRate(othersPerSecond, () =>
      Promise.all(
        repoIds.map(async (repoId) => {
          await delay((Math.random() * 1_000) / othersPerSecond)
          await requests.send(createByPut(receiverUrl, newId(), body, repoId), 201)
        }),
      ),
    )
  const flood = () => sendAtRate(floodPerSecond, () => requests.send(createByPut(floodUrl, newId(), body), 201))
  const untilFloodIsDelivered = async () => {
    const isOpen = () =>
      db('documents')
        .join('workspaces', 'workspaces.id', 'workspace_id')
        .where({ workspace_slug: 'flood', status: 'pending' })
        .first('documents.id')
    while (await isOpen()) await delay(500)
  }

  const alone: number[][] = []
  const floods: number[][] = []
  const p95 = (times: number[]) => quantile(times, 0.95).toFixed(0)
  const nameOf = (round: number) => (round === 0 ? 'warm-up' : `round ${round}`)
  // Round 0 is a warm-up and not counted.
  for (let round = 0; round <= rounds; round += 1) {
    const timesAlone = await probe()
    const [timesInFlood] = await Promise.all([probe(), flood()])
    await untilFloodIsDelivered()
    say(`${nameOf(round)}: p95 ${p95(timesAlone)} ms alone, ${p95(timesInFlood)} ms beside a flood`)
    if (round === 0) continue
    alone.push(timesAlone)
    floods.push(timesInFlood)
  }
  const besideOthers = async (what: string, repoIds: string[]): Promise<number[][]> => {
    const measured: number[][] = []
    for (let round = 0; round <= rounds; round += 1) {
      const [times] = await Promise.all([probe(), sendTo(repoIds)])
      say(`${nameOf(round)}: p95 ${p95(times)} ms beside ${what}`)
      if (round > 0) measured.push(times)
    }
    return measured
  }
  const [good, bad] = ['two destinations that accept', 'a destination that hangs and one that fails']
  // The bad ones last, because their documents go on being retried. The circuits open meanwhile, as they would in production.
  const beside = {
    [good]: await besideOthers(good, ['GOOD', 'FINE']),
    [bad]: await besideOthers(bad, ['HANG', 'FAIL']),
    'a workspace that floods': floods,
  }

  const aloneP95 = rangeOf(alone.map((times) => quantile(times, 0.95)))
  const rows = Object.entries(beside).map(([what, measured]) => {
    const p95Range = rangeOf(measured.map((times) => quantile(times, 0.95)))
    return {
      case: `beside ${what}`,
      p50_ms: quantile(measured.flat(), 0.5),
      p95_ms: p95Range,
      alone_p95_ms: aloneP95,
      ratio: p95Range.median / aloneP95.median,
    }
  })
  const lines = rows.map(
    ({ case: what, p50_ms: p50, p95_ms: range, ratio }) =>
      `${what}: p50 ${p50.toFixed(0)} ms, p95 ${range.median.toFixed(0)} ms (${range.min.toFixed(0)} to ${range.max.toFixed(0)}), alone ` +
      `${aloneP95.median.toFixed(0)} ms (${aloneP95.min.toFixed(0)} to ${aloneP95.max.toFixed(0)}), ratio ${ratio.toFixed(2)}`,
  )
  const settings = {
    rounds,
    seconds,
    probesPerSecond,
    othersPerSecond,
    floodPerSecond,
    bytes: body.length,
    temporal: installation.temporalName,
  }
  printResult(options.json, { name: 'isolation', settings, rows }, lines)
  await Promise.all([requests.close(), healthy.stop(), flooded.stop(), hanging.stop(), failing.stop(), accepting.stop(), db.destroy()])
}, options)
