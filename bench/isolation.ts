// Measures how far a destination and a workspace are affected by others: the time from the answer to a create until the document is at a
// healthy target, while documents are sent to it at a constant rate; alone, beside two destinations of the same workspace that accept,
// beside two that hang and fail, and beside a workspace that floods the relay. All cases take turns. The goal is that the 95th percentile
// is at most 1.5 times that alone.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { newId } from '../src/base/ids.ts'
import { openDatabase } from '../src/db/database.ts'
import { createKey } from '../src/workspace/administration.ts'
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
const settleMs = options.quick ? 0 : 5_000
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
  const otherTargets = { GOOD: [accepting.url], FINE: [accepting.url], HANG: [hanging.url], FAIL: [failing.url] }
  /** Creates a workspace with a healthy destination and four others. */
  const createHealthy = (name: string) =>
    createConnectedWorkspace(installation, server.baseUrl, { name, targetUrls: [healthy.url], others: otherTargets })
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
  const probe = async (receiverUrl: string): Promise<number[]> => {
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
  const sendTo = (receiverUrl: string, repoIds: string[]) =>
    sendAtRate(othersPerSecond, () =>
      Promise.all(
        repoIds.map(async (repoId) => {
          await delay((Math.random() * 1_000) / othersPerSecond)
          await requests.send(createByPut(receiverUrl, newId(), body, repoId), 201)
        }),
      ),
    )
  const flood = () => sendAtRate(floodPerSecond, () => requests.send(createByPut(floodUrl, newId(), body), 201))
  const untilNothingIsOpen = async () => {
    while (await db('documents').where({ status: 'pending' }).first('id')) await delay(500)
    // Workflows end after their documents.
    await delay(settleMs)
  }
  /** Deletes the bad destinations, so that their documents are no longer retried. */
  const endRetries = async (workspace: string) => {
    const { key } = await createKey(db, { workspace, level: 'admin' })
    const bad = await db('destinations')
      .join('workspaces', 'workspaces.id', 'workspace_id')
      .where({ workspace_slug: workspace.split('/')[1] })
      .whereIn('destinations.name', ['HANG target 0', 'FAIL target 0'])
      .select<{ id: string }[]>('destinations.id')
    for (const { id } of bad) {
      const url = `${server.baseUrl}/api/${workspace}/destinations/${id}`
      await requests.send({ method: 'DELETE', url, headers: { authorization: `Bearer ${key}` } }, 204)
    }
  }

  const p95 = (times: number[]) => quantile(times, 0.95)
  const cases: { name: string; disturb?(receiverUrl: string): Promise<unknown> }[] = [
    { name: 'alone' },
    { name: 'beside two destinations that accept', disturb: (receiverUrl) => sendTo(receiverUrl, ['GOOD', 'FINE']) },
    { name: 'beside a workspace that floods', disturb: flood },
    { name: 'beside a destination that hangs and one that fails', disturb: (receiverUrl) => sendTo(receiverUrl, ['HANG', 'FAIL']) },
  ]
  const measured = new Map(cases.map(({ name }) => [name, [] as number[][]]))
  // Round 0 is a warm-up and not counted.
  for (let round = options.quick ? 1 : 0; round <= rounds; round += 1) {
    // New bad destinations in each round: their circuits are closed at first.
    const workspace = `bench/healthy-${round}`
    const receiverUrl = await createHealthy(workspace)
    for (const { name, disturb } of cases) {
      const [times] = await Promise.all([probe(receiverUrl), disturb?.(receiverUrl)])
      say(`${round === 0 ? 'warm-up' : `round ${round}`}: p95 ${p95(times).toFixed(0)} ms ${name}`)
      if (round > 0) measured.get(name)!.push(times)
      // The bad ones, which are the last, are open until they are deleted.
      if (name !== cases.at(-1)!.name) await untilNothingIsOpen()
    }
    await endRetries(workspace)
    await untilNothingIsOpen()
  }

  const alone = measured.get('alone')!.map(p95)
  const rows = [...measured].map(([name, times]) => ({
    case: name,
    p50_ms: quantile(times.flat(), 0.5),
    p95_ms: rangeOf(times.map(p95)),
    p95_to_alone: rangeOf(times.map((ofRound, round) => p95(ofRound) / alone[round]!)),
  }))
  const lines = rows.map(
    ({ case: name, p50_ms: p50, p95_ms: range, p95_to_alone: ratio }) =>
      `${name}: p50 ${p50.toFixed(0)} ms, p95 ${range.median.toFixed(0)} ms (${range.min.toFixed(0)} to ${range.max.toFixed(0)}), ` +
      `to alone ${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)})`,
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
