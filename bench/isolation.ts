// Measures how far a destination and a workspace are affected by others: the time from the answer to a create until the document is at a
// healthy target, while documents are sent to it at a constant rate; alone, beside two destinations of the same workspace that accept,
// beside two that hang and fail, and beside another workspace that floods the relay, releases what a connection has held, or retries failed
// documents in bulk. The floor is the time from the start of an equally shaped workflow until its activity has sent a request, alone and beside
// the flood: with a task queue and a worker of its own, it waits for the processors and for the server of Temporal only. All cases take turns.
// The goal is that the 95th percentile is at most 1.5 times that alone, with no fewer documents delivered per second.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import pLimit from 'p-limit'
import { newId } from '../src/base/ids.ts'
import { openDatabase } from '../src/db/database.ts'
import { createKey } from '../src/workspace/administration.ts'
import { startArrivals } from './support/arrivals.ts'
import { withInstallation } from './support/installation.ts'
import { commonOptions, readOptions, temporalOption } from './support/options.ts'
import { printResult, say } from './support/report.ts'
import { createByPut, createRequests } from './support/requests.ts'
import { quantile, rangeOf } from './support/statistics.ts'
import { createConnectedWorkspace } from './support/workspace.ts'

const options = readOptions('isolation', {
  ...commonOptions,
  ...temporalOption,
  seconds: { type: 'string' },
  rounds: { type: 'string' },
  flood: { type: 'string' },
  only: { type: 'string' },
})
const seconds = Number(options.seconds ?? (options.quick ? 5 : 30))
const rounds = Number(options.rounds ?? (options.quick ? 1 : 3))
// Three times of what such a machine delivers.
const floodPerSecond = Number(options.flood ?? 60)
const probesPerSecond = 2
// More than are delivered meanwhile.
const released = options.quick ? 5 : 900
const retried = options.quick ? 5 : 2_000
// The others have a backlog by then.
const leadMs = options.quick ? 0 : 5_000
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
  const bare = await startArrivals()
  await installation.startModule('baseline worker', new URL('./baseline/worker.ts', import.meta.url), { ARRIVAL_URL: bare.url })
  const temporal = await Connection.connect(installation.config.temporal.connectionOptions)
  const client = new Client({ connection: temporal, namespace: installation.config.temporal.namespace ?? 'default' })
  const hanging = await startBadTarget('never')
  const failing = await startBadTarget(503)
  const otherTargets = { GOOD: [accepting.url], FINE: [accepting.url], HANG: [hanging.url], FAIL: [failing.url] }
  /** Creates a workspace with a healthy destination and four others. */
  const createHealthy = (name: string) =>
    createConnectedWorkspace(installation, server.baseUrl, { name, targetUrls: [healthy.url], others: otherTargets })
  const others = { flood: 'bench/flood', release: 'bench/release', retry: 'bench/retry' }
  const urlOf = new Map<string, string>()
  for (const name of Object.values(others)) {
    const isActive = name === others.flood
    urlOf.set(name, await createConnectedWorkspace(installation, server.baseUrl, { name, targetUrls: [flooded.url], isActive }))
  }

  /** Sends documents at a constant rate, whatever becomes of the earlier ones. */
  const sendAtRate = async (perSecond: number, send: () => Promise<unknown>, forSeconds = seconds) => {
    const sent: Promise<unknown>[] = []
    const startedAt = performance.now()
    for (let number = 0; number < forSeconds * perSecond; number += 1) {
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
  /** Returns the times from the start of bare workflows to their requests. They take turns: their requests look the same. */
  const probeFloor = async (): Promise<number[]> => {
    const timesMs: number[] = []
    const takeTurns = pLimit(1)
    await sendAtRate(probesPerSecond, () =>
      takeTurns(async () => {
        const arrival = bare.arrival('baseline')
        const handle = await client.workflow.start('bareDocument', { workflowId: `baseline/${newId()}`, taskQueue: 'baseline', args: [1] })
        const startedAt = performance.now()
        timesMs.push((await arrival).atMs - startedAt)
        await handle.result()
      }),
    )
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
  const flood = () => {
    const send = () => requests.send(createByPut(urlOf.get(others.flood)!, newId(), body), 201)
    return sendAtRate(floodPerSecond, send, seconds + leadMs / 1_000)
  }
  /** Sends a request to the API of a workspace. */
  const call = async (workspace: string, method: 'PATCH' | 'POST' | 'DELETE', path: string, json: object | undefined, status: number) => {
    const { key } = await createKey(db, { workspace, level: 'admin' })
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const url = `${server.baseUrl}/api/${workspace}${path}`
    await requests.send({ method, url, headers, ...(json && { body: Buffer.from(JSON.stringify(json)) }) }, status)
  }
  const inWorkspace = (table: string, workspace: string) =>
    db(table)
      .join('workspaces', 'workspaces.id', `${table}.workspace_id`)
      .where({ workspace_slug: workspace.split('/')[1] })
  const setActive = async (workspace: string, isActive: boolean) => {
    const connection: { id: string } = await inWorkspace('connections', workspace).first('connections.id')
    await call(workspace, 'PATCH', `/connections/${connection.id}`, { is_active: isActive }, 200)
  }
  /** Has documents that wait for a release or a bulk retry. */
  const hold = async (workspace: string, count: number) => {
    await setActive(workspace, false)
    await pLimit(10).map(Array.from({ length: count }), () => requests.send(createByPut(urlOf.get(workspace)!, newId(), body), 201))
  }
  const countDelivered = async () =>
    Number((await db('deliveries').where({ status: 'delivered' }).count<{ total: string }[]>({ total: '*' }))[0]!.total)
  const untilNothingIsOpen = async () => {
    while (await db('documents').whereIn('status', ['pending', 'retrying']).first('id')) await delay(500)
    // Workflows end after their documents.
    await delay(settleMs)
  }
  /** Deletes the bad destinations, so that their documents are no longer retried. */
  const endRetries = async (workspace: string) => {
    const bad = await db('destinations')
      .join('workspaces', 'workspaces.id', 'workspace_id')
      .where({ workspace_slug: workspace.split('/')[1] })
      .whereIn('destinations.name', ['HANG target 0', 'FAIL target 0'])
      .select<{ id: string }[]>('destinations.id')
    for (const { id } of bad) await call(workspace, 'DELETE', `/destinations/${id}`, undefined, 204)
  }

  const p95 = (times: number[]) => quantile(times, 0.95)
  interface Case {
    name: string
    /** Takes no part in the measurement. */
    prepare?(): Promise<unknown>
    disturb?(receiverUrl: string): Promise<unknown>
    isFloor?: true
  }
  const all: Case[] = [
    { name: 'alone' },
    { name: 'beside two destinations that accept', disturb: (receiverUrl) => sendTo(receiverUrl, ['GOOD', 'FINE']) },
    { name: 'beside a workspace that floods', disturb: flood },
    { name: 'floor, alone', isFloor: true },
    { name: 'floor, beside a workspace that floods', isFloor: true, disturb: flood },
    {
      name: `beside a release of ${released} documents`,
      prepare: () => hold(others.release, released),
      disturb: () => setActive(others.release, true),
    },
    {
      name: `beside a bulk retry of ${retried} documents`,
      prepare: async () => {
        await hold(others.retry, retried)
        const { id }: { id: string } = await db('workspaces').where({ workspace_slug: 'retry' }).first('id')
        // As if the target had refused them.
        await db('deliveries').where({ workspace_id: id, status: 'held' }).update({ status: 'failed', last_error: 'refused' })
        await setActive(others.retry, true)
      },
      disturb: () => call(others.retry, 'POST', '/documents/retry', {}, 202),
    },
    { name: 'beside a destination that hangs and one that fails', disturb: (receiverUrl) => sendTo(receiverUrl, ['HANG', 'FAIL']) },
  ]
  const cases = all.filter(({ name }) => name === 'alone' || (options.only ?? name).split(',').some((part) => name.includes(part)))
  const measured = new Map(cases.map(({ name }) => [name, { times: [] as number[][], perSecond: [] as number[] }]))
  // Round 0 is a warm-up and not counted.
  for (let round = options.quick ? 1 : 0; round <= rounds; round += 1) {
    // New bad destinations in each round: their circuits are closed at first.
    const workspace = `bench/healthy-${round}`
    const receiverUrl = await createHealthy(workspace)
    for (const { name, prepare, disturb, isFloor } of cases) {
      if (prepare) await prepare()
      const disturbing = disturb?.(receiverUrl)
      if (disturbing) await delay(leadMs)
      const [before, startedAt] = [await countDelivered(), performance.now()]
      const times = isFloor ? await probeFloor() : await probe(receiverUrl)
      const perSecond = ((await countDelivered()) - before) / ((performance.now() - startedAt) / 1_000)
      await disturbing
      say(
        `${round === 0 ? 'warm-up' : `round ${round}`}: p95 ${p95(times).toFixed(0)} ms, ${perSecond.toFixed(1)} delivered per second, ${name}`,
      )
      if (round > 0) {
        measured.get(name)!.times.push(times)
        measured.get(name)!.perSecond.push(perSecond)
      }
      // The bad ones, which are the last, are open until they are deleted.
      if (name !== all.at(-1)!.name) await untilNothingIsOpen()
    }
    await endRetries(workspace)
    await untilNothingIsOpen()
  }

  const alone = measured.get('alone')!.times.map(p95)
  const rows = [...measured].map(([name, { times, perSecond }]) => ({
    case: name,
    p50_ms: quantile(times.flat(), 0.5),
    p95_ms: rangeOf(times.map(p95)),
    p95_to_alone: rangeOf(times.map((ofRound, round) => p95(ofRound) / alone[round]!)),
    delivered_per_second: rangeOf(perSecond),
  }))
  const lines = rows.map(
    ({ case: name, p50_ms: p50, p95_ms: range, p95_to_alone: ratio, delivered_per_second: rate }) =>
      `${name}: p50 ${p50.toFixed(0)} ms, p95 ${range.median.toFixed(0)} ms (${range.min.toFixed(0)} to ${range.max.toFixed(0)}), ` +
      `to alone ${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)}); ` +
      `${rate.median.toFixed(1)} documents delivered per second`,
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
  await Promise.all([
    requests.close(),
    healthy.stop(),
    flooded.stop(),
    hanging.stop(),
    failing.stop(),
    accepting.stop(),
    bare.stop(),
    temporal.close(),
    db.destroy(),
  ])
}, options)
