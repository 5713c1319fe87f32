import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { createLog } from '../../src/base/log.ts'
import { readConfig } from '../../src/config/config.ts'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrations.ts'
import { startPostgres } from '../../src/dev/postgres-server.ts'
import { createEvents } from '../../src/events/event-log.ts'
import { databaseConfig } from '../support/database.ts'
import { createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { createList } from './event-list.ts'

const root = await mkdtemp(join(tmpdir(), 'relay-restore-'))
share({ [Symbol.asyncDispose]: () => rm(root, { recursive: true }) })

interface Server extends AsyncDisposable {
  db: Database
  /** Address of the database, as superuser. */
  adminUrl: string
  /** Writes events, a transaction each. */
  write(workspaceId: string, name: string, count: number): Promise<void>
  /** Returns the names of all events after a cursor, and the last cursor. */
  follow(workspaceId: string, after?: string): Promise<{ names: string[]; ids: string[]; cursor: string }>
}

/** Starts a server of its own on a folder, with durable commits. */
const start = async (folder: string): Promise<Server> => {
  const { url, adminUrl, stop } = await startPostgres({
    dataDir: join(root, folder),
    config: readConfig(),
    log: createLog('warn'),
    say: () => {},
  })
  const db = openDatabase(databaseConfig(url), 'test restore')
  const list = createList(db, createEvents(db))
  return {
    db,
    adminUrl,
    write: async (workspaceId, name, count) => {
      for (let n = 0; n < count; n += 1) {
        await db.raw('select add_event(?, ?, ?)', [workspaceId, 'document.received', JSON.stringify({ name: `${name} ${n}` })])
      }
    },
    follow: async (workspaceId, after) => {
      const { items, nextCursor } = await list(workspaceId, { after, limit: 1_000 })
      return { names: items.map(({ data }) => String(data['name'])), ids: items.map(({ id }) => id), cursor: nextCursor }
    },
    [Symbol.asyncDispose]: async () => {
      await db.destroy()
      await stop()
    },
  }
}

const connect = async (connectionString: string): Promise<Client> => {
  const client = new Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Returns the only value of the answer. */
const askOne = async (client: Client, statement: string): Promise<unknown> =>
  Object.values((await client.query<Record<string, unknown>>(statement)).rows[0] ?? {})[0]

const names = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name} ${n}`)
const copy = (from: string, to: string) => promisify(execFile)('cp', ['-a', join(root, from), join(root, to)])

test('a reader of what a restored database has lost is refused, also when that has passed its cursor, and no id is given twice', async () => {
  const scene = async () => {
    await using server = await start('lost')
    await migrate(server.db)
    const { workspaceId } = await createRoutes(server.db, [])
    await server.write(workspaceId, 'saved', 3)
    return { workspaceId, ...(await server.follow(workspaceId)) }
  }
  const { workspaceId, cursor: saved, names: first } = await scene()
  expect(first).toEqual(names('saved', 3))
  await copy('lost', 'backup')

  // The server goes on after a restart, which is no reason to refuse a reader, and is lost.
  const lose = async () => {
    await using server = await start('lost')
    await server.write(workspaceId, 'lost', 20)
    const lost = await server.follow(workspaceId, saved)
    expect(lost.names).toEqual(names('lost', 20))
    return lost
  }
  const lost = await lose()
  await using restored = await start('backup')
  const ask = () => restored.follow(workspaceId, lost.cursor).then((page) => `${page.names.length} events`)
  await expect(ask()).rejects.toMatchObject({ code: 'gone' })
  await restored.write(workspaceId, 'new', 60)
  await expect(ask()).rejects.toMatchObject({ code: 'gone' })

  const later = await restored.follow(workspaceId, saved)
  expect(later.names).toEqual(names('new', 60))
  // A webhook that has stored the id of an event takes another one of this id for a repetition.
  expect(later.ids.filter((id) => lost.ids.includes(id))).toEqual([])
}, 300_000)

test('a reader that had read everything misses nothing after a crash in which PostgreSQL forgets numbers of transactions', async () => {
  await using server = await start('crash')
  const { db } = server
  await migrate(db)
  const { workspaceId } = await createRoutes(db, [])
  const victim = await connect(server.adminUrl)
  // Nothing writes the log to the disk but commits.
  for (const setting of ["wal_writer_delay = '10s'", 'autovacuum = off']) await victim.query(`alter system set ${setting}`)
  await victim.query('select pg_reload_conf()')
  const pid = await askOne(victim, 'select pg_backend_pid()')
  const serverStart = 'select pg_postmaster_start_time()::text'
  const processStart = "select backend_start::text from pg_stat_activity where backend_type = 'checkpointer'"
  const before = { server: await askOne(victim, serverStart), process: await askOne(victim, processStart) }

  await server.write(workspaceId, 'before', 1)
  await server.follow(workspaceId)
  for (let n = 0; n < 50; n += 1) {
    const trx = await db.transaction()
    await trx.raw('select pg_current_xact_id()')
    await trx.rollback()
  }
  const latest = await server.follow(workspaceId, 'latest')
  const all = await server.follow(workspaceId)
  expect(all.names).toEqual(names('before', 1))
  // As the kernel does when memory is short. The server ends all its processes, recovers, and goes on without a start.
  process.kill(Number(pid), 'SIGKILL')
  const recovered = await until('the server has recovered', async () => {
    const client = await connect(server.adminUrl).catch(() => undefined)
    try {
      if (client && (await askOne(client, processStart)) !== before.process) return { server: await askOne(client, serverStart) }
    } catch {
      // It was killed as well.
    } finally {
      await client?.end()
    }
    return undefined
  })
  expect(recovered!.server).toBe(before.server)

  await server.write(workspaceId, 'after', 80)
  expect((await server.follow(workspaceId, latest.cursor)).names).toEqual(names('after', 80))
  expect((await server.follow(workspaceId, all.cursor)).names).toEqual(names('after', 80))
}, 300_000)
