// Measures what grows with the number of workspaces and destinations: rounds of the dispatcher, jobs, lists and metrics. One database has
// a thousand workspaces, of which one has two thousand destinations; the other has a hundredth of both. Both are on one PostgreSQL server
// and are measured alternately. A ratio of 1 does not depend on the number, and a ratio of 100 grows as it does.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { createReadVersions } from '../src/api/console/changes.ts'
import { createLog } from '../src/base/log.ts'
import { readConfig } from '../src/config/config.ts'
import { openDatabase } from '../src/db/database.ts'
import { createOutbox } from '../src/db/outbox.ts'
import { createRelease } from '../src/delivery/release.ts'
import { createLook, createToBegin } from '../src/delivery/to-begin.ts'
import { createCallLines } from '../src/delivery/wake.ts'
import { startPostgres } from '../src/dev/postgres-server.ts'
import { createAggregateMetrics } from '../src/observe/aggregates.ts'
import {
  createHeldBackMetric,
  createWaitingMetrics,
  createOverdueMetric,
  createRepositoryMetrics,
  createStorageMetrics,
} from '../src/observe/metrics.ts'
import { fill, workspaceName, type BreadthSize, type Filled } from './breadth/fill.ts'
import { jobs } from './support/jobs.ts'
import { commonOptions, readOptions } from './support/options.ts'
import { printResult, say } from './support/report.ts'
import { databaseConfig, openSide, type Side } from './support/side.ts'
import { median, rangeOf } from './support/statistics.ts'

const options = readOptions('breadth', {
  ...commonOptions,
  workspaces: { type: 'string' },
  destinations: { type: 'string' },
  rounds: { type: 'string' },
  only: { type: 'string', default: '' },
  /** Keeps the filled databases, so that the next run does not fill them again. */
  data: { type: 'string' },
})
const factor = options.quick ? 2 : 100
const large: BreadthSize = {
  workspaces: Number(options.workspaces ?? (options.quick ? 20 : 1_000)),
  destinations: Number(options.destinations ?? (options.quick ? 40 : 2_000)),
}
const small: BreadthSize = { workspaces: large.workspaces / factor, destinations: large.destinations / factor }
const rounds = Number(options.rounds ?? (options.quick ? 1 : 7))

// What one round of the dispatcher begins at most, as long as the window has not grown.
const turnsMax = 16

const work: Record<string, (side: Side<Filled>) => Promise<unknown>> = {
  'dispatcher: find queues': ({ db }) => createLook(db)(),
  'dispatcher: find documents': async ({ db }) => {
    const { queues } = await createLook(db)()
    await createToBegin(db).findOldest(
      queues.slice(0, turnsMax).map((queue) => ({ ...queue, documents: 1 })),
      [],
    )
  },
  'job sweep-outbox: call the lines': ({ db, config }) => createCallLines(db, config, () => {})(),
  'job reconcile: release': ({ db }) => createRelease(db).releaseOverdue(),
  'job compute-metrics': (side) => jobs['compute-metrics'](side),
  'job check-incidents': (side) => jobs['check-incidents'](side),
  'job apply-retention, nothing expired': (side) => jobs['apply-retention'](side),
  // All that ask the database.
  '/metrics': ({ db, config }) => {
    const registry = new Registry()
    const metrics = [
      ...createWaitingMetrics(db, createOutbox(db)),
      ...createStorageMetrics(db, config),
      ...createRepositoryMetrics(db),
      createHeldBackMetric(db),
      ...createAggregateMetrics(db),
      createOverdueMetric(db, config),
    ]
    for (const metric of metrics) registry.registerMetric(metric)
    return registry.metrics()
  },
  'console: look for changes': ({ db, facts }) => createReadVersions(db, { read: () => ({ status: 'working' }) })([facts.workspaceId]),
}
const lists = [
  '/destinations',
  '/repositories',
  '/connections',
  '/connections?page=1',
  '/documents',
  '/documents?status=failed',
  '/documents/search?connector_type=sftp',
  '/documents/search?delivery_status=failed',
  '/failures',
  '/stats',
  '/stats?connector_type=sftp',
  '/stats/destinations',
]
const cases: { name: string; run(side: Side<Filled>): Promise<unknown> }[] = [
  ...Object.entries(work).map(([name, run]) => ({ name, run })),
  ...lists.map((path) => ({
    name: path,
    run: ({ ask, baseUrl, facts }: Side<Filled>) => ask(`${baseUrl}/api/${workspaceName}${path}`, facts.key),
  })),
]

const timed = async (run: () => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now()
  await run()
  return performance.now() - startedAt
}

const measure = async (sides: { small: Side<Filled>; large: Side<Filled> }) => {
  const rows = []
  for (const { name, run } of cases.filter((each) => each.name.includes(options.only))) {
    say(`${name} ...`)
    const times = { small: [] as number[], large: [] as number[] }
    // Round 0 is a warm-up and not counted.
    for (let round = 0; round <= rounds; round += 1) {
      for (const size of ['small', 'large'] as const) {
        const ms = await timed(() => run(sides[size]))
        if (round > 0) times[size].push(ms)
      }
    }
    rows.push({
      case: name,
      small_ms: rangeOf(times.small),
      large_ms: rangeOf(times.large),
      ratio: median(times.large) / median(times.small),
    })
  }
  return rows
}

const dataDir = options.data ?? mkdtempSync(join(tmpdir(), 'relay-bench-'))
mkdirSync(dataDir, { recursive: true })
const postgres = await startPostgres({ dataDir, config: readConfig(), log: createLog('warn'), say, fast: true })
const admin = openDatabase(databaseConfig(postgres.adminUrl), 'bench admin')
const sides: Side<Filled>[] = []
const open = async (size: BreadthSize) => {
  const name = `breadth_${size.workspaces}_${size.destinations}`
  const side = await openSide({ admin, adminUrl: postgres.adminUrl, dataDir, name, fill: (db) => fill(db, size) })
  sides.push(side)
  return side
}
try {
  const rows = await measure({ small: await open(small), large: await open(large) })
  const lines = rows.map(
    ({ case: name, small_ms: smallMs, large_ms: largeMs, ratio }) =>
      `${name}: ${smallMs.median.toFixed(1)} ms, ${largeMs.median.toFixed(1)} ms (${largeMs.min.toFixed(1)} to ${largeMs.max.toFixed(1)}), ratio ${ratio.toFixed(2)}`,
  )
  printResult(options.json, { name: 'breadth', settings: { rounds, ...large }, rows }, lines)
} finally {
  for (const side of sides) await side.stop()
  await admin.destroy()
  await postgres.stop()
  if (options.data === undefined) rmSync(dataDir, { recursive: true, force: true })
}
