// Measures the API as the content server of a source system: a published mix of commands, and the two commands that source systems send
// most. Nothing is delivered. This process sends all requests, and the API has a process of its own. The floor is a plain web server that
// answers the same bytes from memory; it takes turns with the API.
import { setTimeout as delay } from 'node:timers/promises'
import pLimit from 'p-limit'
import { messageOf } from '../src/base/errors.ts'
import { createClient, operationNames, seedBytes, seeds, thinkTimeMs, type Operation } from './content-server/mix.ts'
import { withInstallation, type Installation, type RelayProcess } from './support/installation.ts'
import { runClients } from './support/load.ts'
import { cpuMsPerUnit, measure, summarize, type Measured } from './support/measure.ts'
import { commonOptions, readOptions } from './support/options.ts'
import { memoryOf, resetPeakMemory, type CpuTimes } from './support/processes.ts'
import { formatCpu, printResult, say } from './support/report.ts'
import { commandUrl, createRequests } from './support/requests.ts'
import { median, mediansOf, quantile, rangeOf } from './support/statistics.ts'
import { createConnectedWorkspace } from './support/workspace.ts'

const options = readOptions('content-server', {
  ...commonOptions,
  clients: { type: 'string' },
  seconds: { type: 'string' },
  rounds: { type: 'string' },
  // Runs one part only: mix, get or info.
  only: { type: 'string' },
  // Options of Node for the API, for example --cpu-prof.
  'node-option': { type: 'string', multiple: true, default: [] },
})
const runs = (part: string) => options.only === undefined || options.only === part
const clientCounts = (options.clients ?? (options.quick ? '4' : '25,100')).split(',').map(Number)
const mixSeconds = Number(options.seconds ?? (options.quick ? 1 : 20))
const readSeconds = Number(options.seconds ?? (options.quick ? 0.5 : 5))
const rounds = Number(options.rounds ?? (options.quick ? 1 : 5))
const readingClients = 16

interface MixRound {
  requestsPerSecond: number
  errors: number
  latenciesMs: Record<Operation, number[]>
  cpuMs: CpuTimes
  loadGeneratorCpuMs: number
  apiPeakMiB: number
}

/** Runs the published mix once. */
const runMix = async (
  installation: Installation,
  api: RelayProcess,
  receiverUrl: string,
  seedIds: string[],
  clients: number,
): Promise<MixRound> => {
  const { send, close } = createRequests(clients)
  const latenciesMs = Object.fromEntries(operationNames.map((name) => [name, [] as number[]])) as Record<Operation, number[]>
  const errors: string[] = []
  resetPeakMemory(api.pid)
  const cpuBefore = installation.cpuTimes()
  const loadBefore = process.cpuUsage()
  const startedAt = performance.now()
  const runClient = async () => {
    const client = createClient(receiverUrl, seedIds)
    // Clients that all begin at once would meet in each of their first requests.
    await delay(thinkTimeMs())
    while (performance.now() - startedAt < mixSeconds * 1_000) {
      const step = client.next()
      if (!step) continue
      const sentAt = performance.now()
      try {
        await send(step.request, step.expectedStatus)
        step.done?.()
        latenciesMs[step.operation].push(performance.now() - sentAt)
      } catch (thrown) {
        errors.push(messageOf(thrown))
      }
      await delay(thinkTimeMs())
    }
  }
  await Promise.all(Array.from({ length: clients }, runClient))
  const seconds = (performance.now() - startedAt) / 1_000
  const { user, system } = process.cpuUsage(loadBefore)
  const requests = Object.values(latenciesMs).reduce((sum, { length }) => sum + length, 0)
  const cpuMs = cpuMsPerUnit(cpuBefore, installation.cpuTimes(), requests)
  await close()
  for (const message of new Set(errors)) say(`error: ${message}`)
  return {
    requestsPerSecond: requests / seconds,
    errors: errors.length,
    latenciesMs,
    cpuMs,
    loadGeneratorCpuMs: (user + system) / 1_000 / requests,
    apiPeakMiB: memoryOf(api.pid).peakMiB,
  }
}

/** Summarizes the rounds of the mix. Latencies of all rounds count together. */
const mixRowOf = (clients: number, measured: MixRound[]) => ({
  case: `mix, ${clients} clients`,
  requests_per_second: rangeOf(measured.map(({ requestsPerSecond }) => requestsPerSecond)),
  errors: measured.reduce((sum, { errors }) => sum + errors, 0),
  operations: Object.fromEntries(
    operationNames.map((name) => {
      const latenciesMs = measured.flatMap((round) => round.latenciesMs[name])
      return [name, { requests: latenciesMs.length, median_ms: quantile(latenciesMs, 0.5), p95_ms: quantile(latenciesMs, 0.95) }]
    }),
  ),
  cpu_ms_per_request: mediansOf(measured.map(({ cpuMs }) => cpuMs)),
  load_generator_cpu_ms_per_request: median(measured.map(({ loadGeneratorCpuMs }) => loadGeneratorCpuMs)),
  api_peak_mib: Math.max(...measured.map(({ apiPeakMiB }) => apiPeakMiB)),
})

/** Runs one reading command, and the floor that answers as many bytes. */
const runReads = async (installation: Installation, urls: { name: string; ours: () => string; floor: string }) => {
  const { send, close } = createRequests(readingClients)
  const read = (urlOf: () => string) =>
    measure(installation, () =>
      runClients({ clients: readingClients, seconds: readSeconds }, () => send({ method: 'GET', url: urlOf() }, 200)),
    )
  const ours: Measured[] = []
  const floor: Measured[] = []
  // Round 0 is a warm-up and not counted.
  for (let round = options.quick ? 1 : 0; round <= rounds; round += 1) {
    const measured = [await read(urls.ours), await read(() => urls.floor)] as const
    if (round === 0) continue
    ours.push(measured[0])
    floor.push(measured[1])
  }
  await close()
  const ratios = ours.map(({ requests, seconds }, round) => requests / seconds / (floor[round]!.requests / floor[round]!.seconds))
  return { case: `${urls.name}, ${readingClients} clients`, ours: summarize(ours), floor: summarize(floor), ratio: rangeOf(ratios) }
}

const formatMix = ({ case: name, operations, requests_per_second: rate, ...row }: ReturnType<typeof mixRowOf>) => [
  `${name}: ${rate.median.toFixed(1)} requests/s (${rate.min.toFixed(1)} to ${rate.max.toFixed(1)}), ${row.errors} errors, ${formatCpu(row.cpu_ms_per_request)} a request, ` +
    `API at most ${row.api_peak_mib.toFixed(0)} MiB, load generator ${row.load_generator_cpu_ms_per_request.toFixed(1)} CPU-ms a request`,
  ...Object.entries(operations).map(
    ([operation, { median_ms, p95_ms, requests }]) =>
      `  ${operation}: median ${median_ms.toFixed(0)} ms, p95 ${p95_ms.toFixed(0)} ms (${requests} requests)`,
  ),
]

const formatReads = ({ case: name, ours, floor, ratio }: Awaited<ReturnType<typeof runReads>>) =>
  `${name}: ${ours.per_second.median.toFixed(0)}/s, median ${ours.median_ms.toFixed(1)} ms, p99 ${ours.p99_ms.toFixed(1)} ms, ` +
  `${formatCpu(ours.cpu_ms)}; floor ${floor.per_second.median.toFixed(0)}/s, ${formatCpu(floor.cpu_ms)}; ` +
  `ratio ${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)})`

await withInstallation(async (installation) => {
  const api = await installation.startRelay('api', options['node-option'])
  const { url: floorUrl } = await installation.startModule<{ url: string }>('floor', new URL('./floor/reader.ts', import.meta.url))
  // The connection is inactive: contents are stored, and nothing is delivered.
  const receiverUrl = await createConnectedWorkspace(installation, api.baseUrl, {
    name: 'bench/content',
    targetUrls: ['http://127.0.0.1:9/'],
    isActive: false,
  })
  const { docIds, requests } = seeds(receiverUrl)
  const seeding = createRequests(4)
  await pLimit(4).map(requests, (request) => seeding.send(request, 201))
  const anySeed = () => docIds[Math.floor(Math.random() * docIds.length)]!
  const infoBytes = await seeding.send({ method: 'GET', url: commandUrl(receiverUrl, 'info', anySeed()) }, 200)
  await seeding.close()

  const rows: object[] = []
  const lines: string[] = []
  const add = (row: object, formatted: string[]) => {
    rows.push(row)
    lines.push(...formatted)
    say(formatted[0]!)
  }
  const reads = [
    { part: 'get', name: 'get of 200 KiB', bytes: seedBytes, ours: () => commandUrl(receiverUrl, 'get', anySeed(), '&compId=data') },
    { part: 'info', name: 'info', bytes: infoBytes, ours: () => commandUrl(receiverUrl, 'info', anySeed()) },
  ]
  for (const { name, bytes, ours } of reads.filter(({ part }) => runs(part))) {
    const row = await runReads(installation, { name, ours, floor: `${floorUrl}?bytes=${bytes}` })
    add(row, [formatReads(row)])
  }
  if (runs('mix')) {
    const mixes = new Map(clientCounts.map((clients) => [clients, [] as MixRound[]]))
    // Round 0 is a warm-up and not counted.
    for (let round = options.quick ? 1 : 0; round <= rounds; round += 1) {
      for (const [clients, measured] of mixes) {
        const mix = await runMix(installation, api, receiverUrl, docIds, clients)
        if (round > 0) measured.push(mix)
      }
    }
    for (const [clients, measured] of mixes) {
      const row = mixRowOf(clients, measured)
      add(row, formatMix(row))
    }
  }
  printResult(options.json, { name: 'content-server', settings: { mixSeconds, readSeconds, rounds }, rows }, lines)
})
