// Measures what a page of each list of the management API takes in a workspace with a million rows, as a ratio to the same page in a
// workspace with a thousand. Each is the only workspace of its database; both databases are on one PostgreSQL server and are read
// alternately, through an API of their own, over HTTP. The goal is a ratio of at most 1.5. Then, the jobs that ask about everything run on both.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../src/base/log.ts'
import { readConfig } from '../src/config/config.ts'
import { openDatabase } from '../src/db/database.ts'
import { startPostgres } from '../src/dev/postgres-server.ts'
import { listCases } from './lists/cases.ts'
import { fill, workspaceName, type Filled } from './lists/fill.ts'
import { jobs } from './support/jobs.ts'
import { commonOptions, readOptions } from './support/options.ts'
import { formatRange, printResult, say } from './support/report.ts'
import { databaseConfig, openSide, type Side } from './support/side.ts'
import { median, rangeOf } from './support/statistics.ts'

const options = readOptions('lists', {
  ...commonOptions,
  rows: { type: 'string' },
  /** One of so many documents has captured requests and audit entries in the large workspace, so that the disk is large enough. */
  'log-share': { type: 'string', default: '1' },
  rounds: { type: 'string' },
  requests: { type: 'string', default: '10' },
  only: { type: 'string', default: '' },
  /** Keeps the filled databases, so that the next run does not fill them again. Retention has removed the rows of some hours. */
  data: { type: 'string' },
})
const smallRows = 1_000
const largeRows = Number(options.rows ?? (options.quick ? 10_000 : 1_000_000))
const rounds = Number(options.rounds ?? (options.quick ? 1 : 5))
const requestsPerRound = Number(options.requests)
const goal = 1.5
const runsOfJob = 4
const hourMs = 3_600_000

const askFor = ({ ask, baseUrl, facts }: Side<Filled>, path: (facts: Filled) => string) =>
  ask(`${baseUrl}/api/${workspaceName}${path(facts)}`, facts.key)

const measure = async (small: Side<Filled>, large: Side<Filled>) => {
  const cases = listCases.filter(({ name }) => name.includes(options.only))
  const measured = cases.map(({ name, path }) => ({ name, path, ratios: [] as number[], smallMs: [] as number[], largeMs: [] as number[] }))
  // Round 0 is a warm-up and not counted.
  for (let round = 0; round <= rounds; round += 1) {
    for (const { path, ratios, smallMs, largeMs } of measured) {
      const times = { small: [] as number[], large: [] as number[] }
      for (let asked = 0; asked < requestsPerRound; asked += 1) {
        times.small.push(await askFor(small, path))
        times.large.push(await askFor(large, path))
      }
      if (round === 0) continue
      smallMs.push(median(times.small))
      largeMs.push(median(times.large))
      ratios.push(median(times.large) / median(times.small))
    }
  }
  return measured.map(({ name, ratios, smallMs, largeMs }) => ({
    case: name,
    small_ms: median(smallMs),
    large_ms: median(largeMs),
    ratio: rangeOf(ratios),
  }))
}

/** Runs each job on both, each time as if an hour later, so that retention has the rows of an hour to remove. */
const measureJobs = async (small: Side<Filled>, large: Side<Filled>) => {
  const rows = []
  for (const [job, run] of Object.entries(jobs)) {
    const name = `job ${job}`
    if (!name.includes(options.only)) continue
    const timesOf = async (side: Side<Filled>) => {
      const times: number[] = []
      for (let ran = 0; ran < runsOfJob; ran += 1) {
        const startedAt = performance.now()
        await run(side, new Date(Date.now() + ran * hourMs))
        times.push(performance.now() - startedAt)
      }
      return times
    }
    rows.push({ case: name, small_ms: rangeOf(await timesOf(small)), large_ms: rangeOf(await timesOf(large)) })
  }
  return rows
}

const dataDir = options.data ?? mkdtempSync(join(tmpdir(), 'relay-bench-'))
mkdirSync(dataDir, { recursive: true })
const postgres = await startPostgres({ dataDir, config: readConfig(), log: createLog('warn'), say, fast: true })
const admin = openDatabase(databaseConfig(postgres.adminUrl), 'bench admin')
const sides: Side<Filled>[] = []
try {
  for (const rowCount of [smallRows, largeRows]) {
    const logShare = rowCount === smallRows ? 1 : Number(options['log-share'])
    const side = { admin, adminUrl: postgres.adminUrl, dataDir, name: `lists_${rowCount}` }
    sides.push(await openSide({ ...side, fill: (db) => fill(db, { rowCount, logShare, say }) }))
  }
  const rows = await measure(sides[0]!, sides[1]!)
  const lines = rows.map(
    ({ case: name, small_ms: smallMs, large_ms: largeMs, ratio }) =>
      `${ratio.median > goal ? '!' : ' '} ${name}: ${smallMs.toFixed(1)} ms, ${largeMs.toFixed(1)} ms, ratio ${formatRange(ratio)}`,
  )
  const jobRows = await measureJobs(sides[0]!, sides[1]!)
  const jobLines = jobRows.map(
    ({ case: name, small_ms: smallMs, large_ms: largeMs }) => `  ${name}: ${formatRange(smallMs)} ms, ${formatRange(largeMs)} ms`,
  )
  const settings = { rounds, requests: requestsPerRound, smallRows, largeRows }
  printResult(options.json, { name: 'lists', settings, rows: [...rows, ...jobRows] }, [...lines, ...jobLines])
} finally {
  for (const side of sides) await side.stop()
  await admin.destroy()
  await postgres.stop()
  if (options.data === undefined) rmSync(dataDir, { recursive: true, force: true })
}
