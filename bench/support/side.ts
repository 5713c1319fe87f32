import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { startApi } from '../../src/app/api.ts'
import { createLog } from '../../src/base/log.ts'
import { readConfig, type Config } from '../../src/config/config.ts'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrations.ts'
import { say } from './report.ts'

export const databaseConfig = (url: string) => ({
  DATABASE_URL: url,
  DATABASE_POOL_MAX_CONNECTIONS: 4,
  acquireTimeoutMs: 60_000,
  // Filling takes minutes.
  DATABASE_STATEMENT_TIMEOUT_MS: 0,
  DATABASE_TRANSACTION_POOLING: false,
})

/** A filled database with an API on it. */
export interface Side<Facts> {
  facts: Facts
  db: Database
  config: Config
  baseUrl: string
  /** Asks with a key, and reads the answer to its end. @returns milliseconds. @throws unless the status is 200 */
  ask(url: string, key: string): Promise<number>
  stop(): Promise<void>
}

interface SideOptions<Facts> {
  admin: Database
  adminUrl: string
  dataDir: string
  name: string
  fill(db: Database): Promise<Facts>
}

/** Creates and fills a database, unless an earlier run has done so, and starts an API on it. */
export const openSide = async <Facts>({ admin, adminUrl, dataDir, name, fill }: SideOptions<Facts>): Promise<Side<Facts>> => {
  const url = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href
  const factsFile = join(dataDir, `${name}.json`)
  let facts: Facts
  const db = openDatabase(databaseConfig(url), 'bench')
  try {
    facts = JSON.parse(readFileSync(factsFile, 'utf8')) as Facts
    await migrate(db)
    await db.raw('vacuum analyze')
  } catch (thrown) {
    if (!(thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT')) throw thrown
    await admin.raw('drop database if exists ??', [name])
    await admin.raw('create database ??', [name])
    await migrate(db)
    const startedAt = performance.now()
    facts = await fill(db)
    say(`Filled ${name} in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s.`)
    writeFileSync(factsFile, JSON.stringify(facts))
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
  return {
    facts,
    db,
    config,
    baseUrl: api.baseUrl,
    ask: async (address, key) => {
      const startedAt = performance.now()
      const response = await request(address, { headers: { authorization: `Bearer ${key}` }, dispatcher: agent })
      const text = await response.body.text()
      if (response.statusCode !== 200) throw new Error(`${address} was answered ${response.statusCode}: ${text}`)
      return performance.now() - startedAt
    },
    stop: async () => {
      await agent.close()
      await api.stop()
      await db.destroy()
    },
  }
}
