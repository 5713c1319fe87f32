// Measures the first read of a document that only the upstream of a repository has. The floor is the old content server itself, read in the
// same way. Both take turns. This process sends all requests; the API and the old content servers have processes of their own. The goal is
// a p95 of at most 2 times the floor.
import { setTimeout as delay } from 'node:timers/promises'
import { openDatabase } from '../src/db/database.ts'
import { createWorkspaceClient } from '../test/support/client.ts'
import { withInstallation } from './support/installation.ts'
import { measure, summarize, type Measured } from './support/measure.ts'
import { commonOptions, readOptions } from './support/options.ts'
import { formatCpu, printResult, say } from './support/report.ts'
import { commandUrl, createRequests } from './support/requests.ts'
import { rangeOf } from './support/statistics.ts'

const options = readOptions('first-read', {
  ...commonOptions,
  delays: { type: 'string', default: '0,20,50' },
  readers: { type: 'string', default: '1,8' },
  documents: { type: 'string' },
  rounds: { type: 'string' },
  // Options of Node for the API, for example --cpu-prof.
  'node-option': { type: 'string', multiple: true, default: [] },
})
const delaysMs = options.delays.split(',').map(Number)
const readerCounts = options.readers.split(',').map(Number)
const documents = Number(options.documents ?? (options.quick ? 8 : 100))
const rounds = Number(options.rounds ?? (options.quick ? 1 : 5))
const bytes = 100 * 1024
// A person or a program that opens one document after the other.
const pauseMs = 20

/** Reads documents, each once. @returns how long each read took */
const read = async (readers: number, urls: string[]) => {
  const { send, close } = createRequests(readers)
  const latenciesMs: number[] = []
  const startedAt = performance.now()
  const runReader = async () => {
    for (let url = urls.pop(); url !== undefined; url = urls.pop()) {
      const sentAt = performance.now()
      await send({ method: 'GET', url }, 200)
      latenciesMs.push(performance.now() - sentAt)
      await delay(pauseMs)
    }
  }
  await Promise.all(Array.from({ length: readers }, runReader))
  await close()
  return { requests: latenciesMs.length, seconds: (performance.now() - startedAt) / 1_000, latenciesMs }
}

interface Case {
  delayMs: number
  readers: number
  floorUrl: string
  receiverUrl: string
  /** Returns ids of documents that were not read yet. */
  next(): string[]
  ours: Measured[]
  floor: Measured[]
}

await withInstallation(async (installation) => {
  const api = await installation.startRelay('api', options['node-option'])
  const db = openDatabase(installation.config, 'bench')
  const cases: Case[] = []
  for (const delayMs of delaysMs) {
    const { url } = await installation.startModule<{ url: string }>('old server', new URL('./first-read/old-server.ts', import.meta.url), {
      DELAY_MS: String(delayMs),
      DOCUMENTS: String(documents * (rounds + 1) * readerCounts.length),
      BYTES: String(bytes),
    })
    const name = `bench/after-${delayMs}`
    const client = await createWorkspaceClient(db, api.baseUrl, name)
    await client.call('POST', '/repositories', { repo_id: 'Z1', name: 'Z1', upstream: { url, cont_rep: 'Z1' } })
    let used = 0
    const next = () => Array.from({ length: documents }, () => `D${used++}`)
    for (const readers of readerCounts) {
      cases.push({ delayMs, readers, floorUrl: url, receiverUrl: `${api.baseUrl}/receiver/${name}`, next, ours: [], floor: [] })
    }
  }
  await db.destroy()

  // Round 0 is a warm-up and not counted.
  for (let round = options.quick ? 1 : 0; round <= rounds; round += 1) {
    for (const { readers, floorUrl, receiverUrl, next, ours, floor } of cases) {
      const docIds = next()
      const urlsOf = (url: string) => docIds.map((docId) => commandUrl(url, 'get', docId))
      const measured = [
        await measure(installation, () => read(readers, urlsOf(floorUrl))),
        await measure(installation, () => read(readers, urlsOf(receiverUrl))),
      ] as const
      if (round === 0) continue
      floor.push(measured[0])
      ours.push(measured[1])
    }
  }
  const rows = cases.map(({ delayMs, readers, ours, floor }) => {
    const [ourSummary, floorSummary] = [summarize(ours), summarize(floor)]
    const ratios = ours.map((one, round) => summarize([one]).p95_ms / summarize([floor[round]!]).p95_ms)
    return {
      case: `${delayMs} ms, ${readers} ${readers === 1 ? 'reader' : 'readers'}`,
      ours: ourSummary,
      floor: floorSummary,
      p95_ratio: ourSummary.p95_ms / floorSummary.p95_ms,
      p95_ratio_of_rounds: rangeOf(ratios),
    }
  })
  const lines = rows.map(
    ({ case: name, ours, floor, p95_ratio: ratio, p95_ratio_of_rounds: range }) =>
      `${name}: median ${ours.median_ms.toFixed(1)} ms, p95 ${ours.p95_ms.toFixed(1)} ms, ${formatCpu(ours.cpu_ms)}; ` +
      `old server median ${floor.median_ms.toFixed(1)} ms, p95 ${floor.p95_ms.toFixed(1)} ms; ` +
      `p95 ${ratio.toFixed(2)} times (rounds ${range.min.toFixed(2)} to ${range.max.toFixed(2)})`,
  )
  for (const line of lines) say(line)
  printResult(options.json, { name: 'first-read', settings: { documents, rounds, bytes, pauseMs }, rows }, lines)
})
