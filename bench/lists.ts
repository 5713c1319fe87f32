// Measures what a page of each list of the management API takes in a workspace with a million rows, as a ratio to the same page in a
// workspace with a thousand. Each is the only workspace of its database; both databases are on one PostgreSQL server and are read
// alternately, through an API of their own, over HTTP. The goal is a ratio of at most 1.5.
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { startApi } from '../src/app/api.ts'
import { createLog } from '../src/base/log.ts'
import { readConfig } from '../src/config/config.ts'
import { openDatabase, type Database } from '../src/db/database.ts'
import { migrate } from '../src/db/migrations.ts'
import { startPostgres } from '../src/dev/postgres-server.ts'
import { listCases } from './lists/cases.ts'
import { fill, workspaceName, type Filled } from './lists/fill.ts'
import { commonOptions, readOptions } from './support/options.ts'
import { printResult, say } from './support/report.ts'
import { median, rangeOf } from './support/statistics.ts'

const options = readOptions('lists', {
  ...commonOptions,
  rows: { type: 'string' },
  rounds: { type: 'string' },
  requests: { type: 'string', default: '10' },
  only: { type: 'string', default: '' },
  /** Keeps the filled databases, so that the next run does not fill them again. */
  data: { type: 'string' },
})
const smallRows = 1_000
const largeRows = Number(options.rows ?? (options.quick ? 10_000 : 1_000_000))
const rounds = Number(options.rounds ?? (options.quick ? 1 : 5))
const requestsPerRound = Number(options.requests)
const goal = 1.5

const databaseConfig = (url: string) => ({
  DATABASE_URL: url,
  DATABASE_POOL_MAX_CONNECTIONS: 4,
  acquireTimeoutMs: 60_000,
  // Filling takes minutes.
  DATABASE_STATEMENT_TIMEOUT_MS: 0,
  DATABASE_TRANSACTION_POOLING: false,
})

interface Side {
  ask(path: string): Promise<number>
  facts: Filled
  stop(): Promise<void>
}

const named = (serverUrl: string, name: string) => Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href

/** Creates and fills a database, unless an earlier run has done so, and starts an API on it. */
const openSide = async (admin: Database, adminUrl: string, dataDir: string, rows: number): Promise<Side> => {
  const name = `lists_${rows}`
  const url = named(adminUrl, name)
  const factsFile = join(dataDir, `${name}.json`)
  let facts: Filled
  const db = openDatabase(databaseConfig(url), 'bench')
  try {
    facts = JSON.parse(readFileSync(factsFile, 'utf8')) as Filled
    await migrate(db)
    await db.raw('vacuum analyze')
  } catch (thrown) {
    if (!(thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT')) throw thrown
    await admin.raw('drop database if exists ??', [name])
    await admin.raw('create database ??', [name])
    await migrate(db)
    const startedAt = performance.now()
    facts = await fill(db, rows)
    say(`Filled ${name} in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s.`)
    writeFileSync(factsFile, JSON.stringify(facts))
  } finally {
    await db.destroy()
  }
  const config = readConfig({
    ...process.env,
    DATABASE_URL: url,
    RELAY_PORT: '0',
    RELAY_PROBES_PORT: '0',
    RELAY_HOST: '127.0.0.1',
    RELAY_SECRET_KEYS: `bench:${randomBytes(32).toString('base64')}`,
  })
  const api = await startApi(config, createLog('error'))
  const agent = new Agent({ connections: 1 })
  const ask = async (path: string): Promise<number> => {
    const startedAt = performance.now()
    const response = await request(`${api.baseUrl}/api/${workspaceName}${path}`, {
      headers: { authorization: `Bearer ${facts.key}` },
      dispatcher: agent,
    })
    const text = await response.body.text()
    if (response.statusCode !== 200) throw new Error(`${path} was answered ${response.statusCode}: ${text}`)
    return performance.now() - startedAt
  }
  return {
    ask,
    facts,
    stop: async () => {
      await agent.close()
      await api.stop()
    },
  }
}

const measure = async (small: Side, large: Side) => {
  const cases = listCases.filter(({ name }) => name.includes(options.only))
  const measured = cases.map(({ name, path }) => ({ name, path, ratios: [] as number[], smallMs: [] as number[], largeMs: [] as number[] }))
  // Round 0 is a warm-up and not counted.
  for (let round = 0; round <= rounds; round += 1) {
    for (const { path, ratios, smallMs, largeMs } of measured) {
      const times = { small: [] as number[], large: [] as number[] }
      for (let asked = 0; asked < requestsPerRound; asked += 1) {
        times.small.push(await small.ask(path(small.facts)))
        times.large.push(await large.ask(path(large.facts)))
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

const dataDir = options.data ?? mkdtempSync(join(tmpdir(), 'relay-bench-'))
mkdirSync(dataDir, { recursive: true })
const postgres = await startPostgres({ dataDir, config: readConfig(), log: createLog('warn'), say, fast: true })
const admin = openDatabase(databaseConfig(postgres.adminUrl), 'bench admin')
const sides: Side[] = []
try {
  for (const rows of [smallRows, largeRows]) sides.push(await openSide(admin, postgres.adminUrl, dataDir, rows))
  const rows = await measure(sides[0]!, sides[1]!)
  const lines = rows.map(
    ({ case: name, small_ms: smallMs, large_ms: largeMs, ratio }) =>
      `${ratio.median > goal ? '!' : ' '} ${name}: ${smallMs.toFixed(1)} ms, ${largeMs.toFixed(1)} ms, ` +
      `ratio ${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)})`,
  )
  const settings = { rounds, requests: requestsPerRound, smallRows, largeRows }
  printResult(options.json, { name: 'lists', settings, rows }, lines)
} finally {
  for (const side of sides) await side.stop()
  await admin.destroy()
  await postgres.stop()
  if (options.data === undefined) rmSync(dataDir, { recursive: true, force: true })
}
