// Measures how many documents per second are accepted, with nothing to deliver and while more arrive than can be delivered. The ratio of
// the two shows whether acceptance depends on delivery. The floor is a plain program that commits the same bytes to the same PostgreSQL.
// All cases take turns, because the speed of a machine drifts: compare the ratios.
import { setTimeout as delay } from 'node:timers/promises'
import { newId } from '../src/base/ids.ts'
import { startWebhookSink } from '../src/dev/demo/webhook-sink.ts'
import { startOutpost } from './peer/outpost.ts'
import { withInstallation, type Installation } from './support/installation.ts'
import { runClients, type Answered, type Load } from './support/load.ts'
import { measure, summarize, type Measured, type Summary } from './support/measure.ts'
import { commonOptions, readOptions } from './support/options.ts'
import { formatCpu, formatRange, printResult, say } from './support/report.ts'
import { createByPut, createRequests, type BenchRequest, type Requests } from './support/requests.ts'
import { rangeOf, type Range } from './support/statistics.ts'
import { createConnectedWorkspace } from './support/workspace.ts'

const options = readOptions('accept', {
  ...commonOptions,
  clients: { type: 'string', default: '16' },
  seconds: { type: 'string' },
  rounds: { type: 'string' },
  // Runs `relay server`, whose worker has a lower priority than the API, instead of an API and a worker of the same priority.
  server: { type: 'boolean', default: false },
  // Comma-separated, of those below.
  sizes: { type: 'string' },
  // `held`: measures what needs no delivery only, in a fraction of the time.
  only: { type: 'string' },
  // Path of an Outpost program. Redis and RabbitMQ are started from PATH.
  peer: { type: 'string' },
  // Options of Node for the process with the API, for example --cpu-prof.
  'node-option': { type: 'string', multiple: true, default: [] },
})
const KiB = 1024
const bytesOf: Record<string, number> = { '1 KiB': KiB, '100 KiB': 100 * KiB, '1 MiB': KiB * KiB }
const sizes = options.sizes?.split(',') ?? (options.quick ? ['1 KiB'] : Object.keys(bytesOf))
const delivers = options.only !== 'held'
const rounds = Number(options.rounds ?? (options.quick ? 1 : 3))
const seconds = Number(options.seconds ?? (options.quick ? 0.5 : 2))
const busy: Load = { clients: Number(options.clients), seconds }
// Creates per second grow for so long, while V8 compiles what runs often.
const warmUp: Load = { ...busy, seconds: 10 }
// One source system that sends a document now and then. Its 99th percentile needs hundreds of requests.
const paced: Load = { clients: 1, seconds: 5 * seconds, pauseMs: () => 50 }

/** The rounds of one size. */
interface Rounds {
  idle: Measured[]
  held: Measured[]
  floor: Measured[]
  peer: Measured[]
  delivering: Measured[]
  pacedWhileDelivering: Measured[]
  deliveredPerSecond: number[]
}

interface Targets {
  /** Returns the request that creates a new document. */
  held(body: Buffer): BenchRequest
  delivering(body: Buffer): BenchRequest
  floor(body: Buffer): BenchRequest
  peer: Awaited<ReturnType<typeof startOutpost>> | undefined
  /** The number of documents that have arrived at the webhook. */
  arrived(): number
}

const untilArrived = async (arrived: () => number, count: number) => {
  while (arrived() < count) await delay(50)
}

/** Waits until these programs use less than a twentieth of a processor, for at most a minute. */
const untilIdle = async ({ cpuTimes }: Installation, programs: string[]) => {
  const usedMs = () => {
    const times = cpuTimes()
    return programs.reduce((sum, program) => sum + (times[program] ?? 0), 0)
  }
  for (let waited = 0; waited < 60; waited += 1) {
    const before = usedMs()
    await delay(1_000)
    if (usedMs() - before < 50) return
  }
}

const runRound = async (installation: Installation, { send }: Requests, targets: Targets, body: Buffer, rows: Rounds) => {
  const run: Run = (load, request, status = 201) => runClients(load, () => send(request(body), status))

  rows.idle.push(await measure(installation, () => run(paced, targets.held)))
  rows.held.push(await measure(installation, () => run(busy, targets.held)))
  rows.floor.push(await measure(installation, () => run(busy, targets.floor)))
  if (delivers) await runDelivering(run, installation, targets, rows)
  // Last, because it goes on working for a while.
  const { peer } = targets
  if (!peer) return
  const before = peer.arrived()
  const published = await measure(installation, () => run(busy, peer.publish, 202))
  rows.peer.push(published)
  await untilArrived(peer.arrived, before + published.requests)
  await untilIdle(installation, peer.programs)
}

type Run = (load: Load, request: (body: Buffer) => BenchRequest, status?: number) => Promise<Answered>

const runDelivering = async (run: Run, installation: Installation, targets: Targets, rows: Rounds) => {
  const before = targets.arrived()
  const startedAt = performance.now()
  // More arrive than can be delivered, so that all parts of delivery have work when the measurement begins.
  const first = await run({ ...busy, seconds: seconds / 2 }, targets.delivering)
  const delivering = await measure(installation, () => run(busy, targets.delivering))
  const pacedWhileDelivering = await measure(installation, () => run(paced, targets.delivering))
  const sent = first.requests + delivering.requests + pacedWhileDelivering.requests
  await untilArrived(targets.arrived, before + sent)
  rows.delivering.push(delivering)
  rows.pacedWhileDelivering.push(pacedWhileDelivering)
  rows.deliveredPerSecond.push((sent * 1_000) / (performance.now() - startedAt))
}

const ratiosOf = (ours: Measured[], others: Measured[]): Range =>
  rangeOf(ours.map(({ requests, seconds: took }, round) => requests / took / (others[round]!.requests / others[round]!.seconds)))

const summarizeDelivering = (rows: Rounds) => {
  const pacedWhileDelivering = summarize(rows.pacedWhileDelivering)
  return {
    delivering: summarize(rows.delivering),
    paced_while_delivering: pacedWhileDelivering,
    delivered_per_second: rangeOf(rows.deliveredPerSecond),
    delivering_to_held: ratiosOf(rows.delivering, rows.held),
    p99_while_delivering_to_idle: pacedWhileDelivering.p99_ms / summarize(rows.idle).p99_ms,
  }
}

const summarizePeer = (rows: Rounds) => ({
  peer: summarize(rows.peer),
  held_to_peer: ratiosOf(rows.held, rows.peer),
  ...(delivers && { delivering_to_peer: ratiosOf(rows.delivering, rows.peer) }),
})

const summarizeRounds = (name: string, rows: Rounds) => ({
  case: name,
  idle: summarize(rows.idle),
  held: summarize(rows.held),
  floor: summarize(rows.floor),
  held_to_floor: ratiosOf(rows.held, rows.floor),
  ...(delivers && summarizeDelivering(rows)),
  ...(rows.peer.length > 0 && summarizePeer(rows)),
})

const formatLatency = ({ median_ms, p99_ms }: Summary) => `median ${median_ms.toFixed(1)} ms, p99 ${p99_ms.toFixed(1)} ms`
const formatCase = (name: string, summary: Summary) =>
  `  ${name}: ${summary.per_second.median.toFixed(1)}/s, ${formatLatency(summary)}, ${formatCpu(summary.cpu_ms)}`

const formatRow = (row: ReturnType<typeof summarizeRounds>) => [
  `${row.case}, ${busy.clients} clients:`,
  `  one client, idle: ${formatLatency(row.idle)}`,
  formatCase('nothing to deliver', row.held),
  formatCase('floor', row.floor),
  ...(row.peer ? [formatCase('peer', row.peer)] : []),
  ...(row.delivering ? [formatCase('while delivering', row.delivering)] : []),
  ...(row.paced_while_delivering ? [`  one client, while delivering: ${formatLatency(row.paced_while_delivering)}`] : []),
  ...Object.entries({
    'delivered per second': row.delivered_per_second,
    'nothing to deliver to floor': row.held_to_floor,
    'while delivering to nothing to deliver': row.delivering_to_held,
    'nothing to deliver to peer': row.held_to_peer,
    'while delivering to peer': row.delivering_to_peer,
  }).flatMap(([name, range]) => (range ? [`  ${name}: ${formatRange(range)}`] : [])),
  ...(row.p99_while_delivering_to_idle
    ? [`  p99 of one client, while delivering to idle: ${row.p99_while_delivering_to_idle.toFixed(1)}`]
    : []),
]

await withInstallation(async (installation) => {
  const api = await installation.startRelay(options.server ? 'server' : 'api', options['node-option'])
  if (!options.server && delivers) await installation.startRelay('worker')
  const { url: floorUrl } = await installation.startModule<{ url: string }>('floor', new URL('./floor/receiver.ts', import.meta.url))
  const sink = await startWebhookSink()
  const targetUrls = [sink.url]
  const heldUrl = await createConnectedWorkspace(installation, api.baseUrl, { name: 'bench/held', targetUrls, isActive: false })
  const deliveringUrl = await createConnectedWorkspace(installation, api.baseUrl, { name: 'bench/delivering', targetUrls })
  const peer = options.peer === undefined ? undefined : await startOutpost(installation, options.peer)
  const requests = createRequests(busy.clients)
  const targets: Targets = {
    held: (body) => createByPut(heldUrl, newId(), body),
    delivering: (body) => createByPut(deliveringUrl, newId(), body),
    floor: (body) => createByPut(floorUrl, newId(), body),
    peer,
    arrived: () => sink.calls.length,
  }

  const rows: ReturnType<typeof summarizeRounds>[] = []
  for (const name of sizes) {
    const body = Buffer.alloc(bytesOf[name]!, 'x')
    const newRounds = (): Rounds => ({
      idle: [],
      held: [],
      floor: [],
      peer: [],
      delivering: [],
      pacedWhileDelivering: [],
      deliveredPerSecond: [],
    })
    // What warms up is not counted.
    if (!options.quick) {
      for (const target of [targets.held, targets.floor]) await runClients(warmUp, () => requests.send(target(body), 201))
      await runRound(installation, requests, targets, body, newRounds())
    }
    const measured = newRounds()
    for (let round = 1; round <= rounds; round += 1) {
      await runRound(installation, requests, targets, body, measured)
      say(`${name}, round ${round} of ${rounds}`)
    }
    rows.push(summarizeRounds(name, measured))
  }
  const settings = { rounds, seconds, clients: busy.clients, processes: options.server ? 'relay server' : 'relay api, relay worker' }
  printResult(options.json, { name: 'accept', settings, rows }, rows.flatMap(formatRow))
  await Promise.all([requests.close(), sink.stop(), peer?.stop()])
})
