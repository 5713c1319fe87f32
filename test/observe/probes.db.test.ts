import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { pino } from 'pino'
import { version } from '../../src/base/version.ts'
import { openDatabase } from '../../src/db/database.ts'
import { requireSchema } from '../../src/db/migrations.ts'
import { createProbes, type Dependency } from '../../src/observe/probes.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())

const log: string[] = []

const serve = async (dependencies: Dependency[], poolStuckMs?: number, checkMaxMs?: number) => {
  const app = new Koa()
  const probes = createProbes(pino({}, { write: (line: string) => void log.push(line) }), poolStuckMs, checkMaxMs)
  probes.add(dependencies, [])
  app.use(probes.middleware)
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { get: (path: string) => fetch(url + path), stop: probes.stop, watchPool: probes.watchPool, close: () => server.close() }
}

test('/readyz is not ready with a database that lacks migrations, and ready with a newer one', async () => {
  const { db } = database
  const probes = await serve([{ name: 'schema', check: () => requireSchema(db) }])
  const ready = await probes.get('/readyz')
  expect({ status: ready.status, body: await ready.json() }).toMatchObject({ status: 200, body: { status: 'ready', version } })

  const [newest] = await db('knex_migrations').orderBy('id', 'desc').limit(1)
  await db('knex_migrations').where({ id: newest.id }).delete()
  const older = await probes.get('/readyz')
  expect({ status: older.status, body: await older.json() }).toMatchObject({
    status: 503,
    body: { dependencies: { schema: { ok: false, error: expect.stringContaining(`the first is ${newest.name}. Run: relay migrate`) } } },
  })

  await db('knex_migrations').insert([newest, { ...newest, id: newest.id + 1, name: '9999_of_a_later_version' }])
  expect((await probes.get('/readyz')).status).toBe(200)
  await db('knex_migrations')
    .where({ id: newest.id + 1 })
    .delete()
  probes.close()
})

test('/healthz answers 503 while no connection of the pool comes back, and not while PostgreSQL is unavailable', async () => {
  const config = { ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 2, acquireTimeoutMs: 2_000 }
  const [lent, unavailable] = [
    openDatabase(config, 'test'),
    openDatabase({ ...config, DATABASE_URL: 'postgres://127.0.0.1:1/none' }, 'test'),
  ]
  const probes = await serve([], 0)
  probes.watchPool(lent)
  probes.watchPool(unavailable)
  const status = async () => (await probes.get('/healthz')).status
  await expect(unavailable.raw('select 1')).rejects.toThrow('ECONNREFUSED')
  expect(await status()).toBe(200)
  const borrowed: unknown[] = [await lent.client.acquireConnection(), await lent.client.acquireConnection()]
  expect(await status()).toBe(200)
  await expect(lent.raw('select 1')).rejects.toThrow('none became free within')
  expect(await status()).toBe(503)
  for (const connection of borrowed) await lent.client.releaseConnection(connection)
  expect(await status()).toBe(200)
  probes.close()
  await lent.destroy()
  await unavailable.destroy()
})

test('/readyz answers 503 in time while a dependency is silent', async () => {
  const never = new Promise<never>(() => {})
  const probes = await serve([{ name: 'database', check: () => never }], undefined, 50)
  const answer = await probes.get('/readyz')
  expect({ status: answer.status, body: await answer.json() }).toMatchObject({
    status: 503,
    body: { dependencies: { database: { ok: false, error: 'no answer within 50 ms' } } },
  })
  probes.close()
})

test('before a process ends, /healthz and /readyz answer 503, so that load balancers stop sending', async () => {
  const probes = await serve([{ name: 'database', check: async () => {} }])
  const statuses = async () => Promise.all(['/healthz', '/readyz', '/metrics'].map(async (path) => (await probes.get(path)).status))
  expect(await statuses()).toEqual([200, 200, 200])
  probes.stop()
  expect(await statuses()).toEqual([503, 503, 200])
  probes.close()
})

test('an empty database is not ready, and stays empty', async () => {
  const url = new URL(database.url)
  url.pathname = '/postgres'
  const empty = openDatabase(databaseConfig(url.href), 'test')
  await expect(requireSchema(empty)).rejects.toThrow('Run: relay migrate')
  expect(await empty.schema.hasTable('knex_migrations')).toBe(false)
  await empty.destroy()
})

test('/readyz shows no address of a dependency; the log does, once per outage', async () => {
  log.length = 0
  let isAway = true
  const check = async () => {
    if (isAway) throw new Error('connect ECONNREFUSED 10.1.2.3:5432')
  }
  const probes = await serve([{ name: 'database', check }])
  for (let count = 0; count < 2; count += 1) {
    const answer = await (await probes.get('/readyz')).text()
    expect(JSON.parse(answer)).toMatchObject({ status: 'not ready', dependencies: { database: { ok: false } } })
    expect(answer).not.toContain('10.1.2.3')
  }
  isAway = false
  expect((await probes.get('/readyz')).status).toBe(200)
  expect(log.map((line) => (JSON.parse(line) as { reason?: string; msg: string }).reason)).toEqual([
    'connect ECONNREFUSED 10.1.2.3:5432',
    undefined,
  ])
  probes.close()
})

test('/metrics shows the version', async () => {
  const probes = await serve([])
  expect(await (await probes.get('/metrics')).text()).toContain(`relay_build_info{version="${version}"} 1`)
  probes.close()
})
