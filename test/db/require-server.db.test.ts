import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPostgres, createRelayDatabase, databaseName, roleName } from '../../faults/postgres.ts'
import { migrateAll } from '../../src/app/migrate.ts'
import { oneMachine } from '../../src/app/one-machine.ts'
import { startWith } from '../../src/app/runtime.ts'
import { UserError } from '../../src/base/errors.ts'
import { newId } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { diagnose } from '../../src/cli/doctor/doctor.ts'
import { openDatabase } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrations.ts'
import { requireServer } from '../../src/db/require-server.ts'
import { startApi } from '../support/api.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { createRoutes, testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { startPgbouncer } from '../support/pgbouncer.ts'
import { createSourceSystem } from '../support/source-system.ts'

const closers: (() => Promise<unknown>)[] = []
const database = await createTestDatabase()
afterAll(async () => {
  for (const close of closers.toReversed()) await close()
  await database.drop()
})

const start = async (settings: Record<string, string>): Promise<string> => {
  const pooler = await startPgbouncer(database.url, settings)
  closers.push(pooler.stop)
  return pooler.url
}

/** Starts what an API process and a worker have in common. */
const startProcess = async (variables: Record<string, string>) => {
  const config = testConfig({ TEMPORAL_ADDRESS: '127.0.0.1:1', ...variables })
  const running = await startWith(config, 'api', { log: createLog('silent'), tracing: undefined }, async () => ({}))
  await running.stop()
}

const findingOf = async (variables: Record<string, string>) => {
  const findings = await diagnose({ ...testConfig(variables), TEMPORAL_START_TIMEOUT_MS: 100 })
  return findings.find(({ name }) => name === 'database')
}

const remedy = 'DATABASE_TRANSACTION_POOLING=true'

// The oldest PgBouncer that is in use, 1.18, supports no prepared statements with transaction pooling.
describe('PgBouncer', () => {
  test('a pooler that refuses the settings of a session is named at the start, by doctor and by migrate', async () => {
    const url = await start({ pool_mode: 'transaction' })
    await expect(startProcess({ DATABASE_URL: url })).rejects.toThrow(remedy)
    await expect(migrateAll(testConfig({ DATABASE_URL: url }))).rejects.toThrow(remedy)
    expect(await findingOf({ DATABASE_URL: url })).toMatchObject({ status: 'failed', message: expect.stringContaining(remedy) })
  })

  test('transaction pooling that is not configured is detected, while others use the pooler', async () => {
    const url = await start({ pool_mode: 'transaction', ignore_startup_parameters: 'statement_timeout', default_pool_size: '5' })
    const others = openDatabase({ ...databaseConfig(url), DATABASE_TRANSACTION_POOLING: true }, 'test others')
    const done = new AbortController()
    const load = Array.from({ length: 8 }, async () => {
      while (!done.signal.aborted) await others.raw('select pg_sleep(0.001)')
    })
    for (let count = 0; count < 5; count += 1) await expect(startProcess({ DATABASE_URL: url })).rejects.toThrow(remedy)
    expect(await findingOf({ DATABASE_URL: url })).toMatchObject({ status: 'failed', message: expect.stringContaining(remedy) })
    done.abort()
    await Promise.all(load)
    await others.destroy()
  })

  test('session pooling needs no setting, and a missing statement_timeout is a warning', async () => {
    const url = await start({ pool_mode: 'session', ignore_startup_parameters: 'statement_timeout' })
    await startProcess({ DATABASE_URL: url })
    expect(await findingOf({ DATABASE_URL: url })).toMatchObject({
      status: 'warning',
      warnings: [expect.stringContaining('alter role relay set statement_timeout')],
    })
  })

  test('with transaction pooling, documents are received and read by more connections than there are sessions', async () => {
    const url = await start({ pool_mode: 'transaction', default_pool_size: '3' })
    await startProcess({ DATABASE_URL: url, DATABASE_TRANSACTION_POOLING: 'true' })
    const db = openDatabase({ ...databaseConfig(url), DATABASE_TRANSACTION_POOLING: true }, 'test pooled')
    const receiver = await startApi(db)
    const { workspaceSlug } = await createRoutes(database.db, [{ name: 'archive' }])
    const source = createSourceSystem(`${receiver.baseUrl}/receiver/acme/${workspaceSlug}`)
    // Some take several windows of COPY.
    const documents = Array.from({ length: 60 }, (_, index) => ({
      docId: `D${index}`,
      body: Buffer.alloc(index % 10 === 0 ? 3_000_000 : 1_000, `${index} `),
    }))
    const created = await Promise.all(documents.map(({ docId, body }) => source.create(docId, body)))
    expect(new Set(created.map(({ status }) => status))).toEqual(new Set([201]))
    for (const [index, { body }] of (await Promise.all(documents.map(({ docId }) => source.get(docId)))).entries()) {
      expect(body.equals(documents[index]!.body)).toBe(true)
    }
    expect(await database.db('deliveries').count('* as count').first()).toEqual({ count: documents.length })
    await source.close()
    await receiver.stop()
    await db.destroy()
  })
})

const readOnly = 'DATABASE_URL leads to a PostgreSQL that accepts no writes'

test('a database that accepts no writes is refused at the start, and explained by doctor and migrate', async () => {
  const { db, url, drop } = await createTestDatabase()
  const name = new URL(url).pathname.slice(1)
  await db.raw('alter database ?? set default_transaction_read_only = on', [name])
  await expect(startProcess({ DATABASE_URL: url })).rejects.toThrow(readOnly)
  await expect(migrateAll(testConfig({ DATABASE_URL: url }))).rejects.toThrow(readOnly)
  expect(await findingOf({ DATABASE_URL: url })).toMatchObject({ status: 'failed', message: expect.stringContaining(readOnly) })
  await drop()
})

test('a database with another encoding is refused before its schema is made', async () => {
  const { db, drop } = await createTestDatabase()
  const name = `test_${newId().toLowerCase()}`
  await db.raw(`create database ?? encoding 'SQL_ASCII' locale 'C' template template0`, [name])
  const url = new URL(database.url)
  url.pathname = `/${name}`
  const refusal = 'has the encoding SQL_ASCII, and the relay needs UTF8'
  await expect(migrateAll(testConfig({ DATABASE_URL: url.href }))).rejects.toThrow(refusal)
  expect(await findingOf({ DATABASE_URL: url.href })).toMatchObject({ status: 'failed', message: expect.stringContaining(refusal) })
  await db.raw('drop database ?? with (force)', [name])
  await drop()
})

test('a read replica is refused at the start, and accepted once it is promoted', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-replica-'))
  // PostgreSQL runs as another user.
  await chmod(folder, 0o755)
  closers.push(() => rm(folder, { recursive: true }))
  const server = await createPostgres(testConfig(), join(folder, 'cluster'), ['fsync=off'])
  closers.push(server.stop)
  await server.start()
  await createRelayDatabase(server)
  const url = `postgres://${roleName}@127.0.0.1:${server.port}/${databaseName}`
  const db = openDatabase(databaseConfig(url), 'test')
  await migrate(db)
  await db.destroy()
  await server.stop()

  // A standby that waits for the log of its primary.
  await writeFile(join(server.folder, 'standby.signal'), '')
  await server.start()
  await expect(startProcess({ DATABASE_URL: url })).rejects.toThrow(readOnly)
  expect(await findingOf({ DATABASE_URL: url })).toMatchObject({ status: 'failed', message: expect.stringContaining(readOnly) })
  await server.promote()
  await startProcess({ DATABASE_URL: url })
})

test('a direct connection to a primary server is accepted, without a warning', async () => {
  const { url, drop } = await createTestDatabase()
  const db = openDatabase(databaseConfig(url), 'test direct')
  expect(await requireServer(db, testConfig())).toEqual([])
  await db.destroy()
  await drop()
})

describe('a PostgreSQL that cannot be used is named in a sentence', () => {
  const changed = (change: (url: URL) => void): string => {
    const url = new URL(database.url)
    change(url)
    return url.href
  }
  test.each<[string, string, RegExp]>([
    ['that does not listen', changed((url) => (url.port = '1')), /ECONNREFUSED/],
    ['that has no such database', changed((url) => (url.pathname = '/absent')), /database "absent" does not exist/],
    ['that does not know the role', changed((url) => (url.username = 'stranger')), /stranger/],
    ['that does not speak TLS', changed((url) => url.searchParams.set('sslmode', 'require')), /does not support SSL/],
  ])('%s', async (_, url, reason) => {
    const config = testConfig({ DATABASE_URL: url, RELAY_TEMPORAL: 'local', TEMPORAL_ADDRESS: '' })
    await using folder = await createFolder()
    const say = () => {}
    const started = oneMachine.startStack({
      dataDir: folder.path,
      config,
      log: createLog('silent'),
      say,
      signal: new AbortController().signal,
    })
    const failure = (await started.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )) as UserError
    expect(failure).toBeInstanceOf(UserError)
    expect(failure.message).toMatch(/^PostgreSQL cannot be used at DATABASE_URL: /)
    expect(failure.message).toMatch(reason)
  })
})
