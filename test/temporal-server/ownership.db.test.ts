import { Client } from 'pg'
import { ownTemporal } from '../../src/temporal-server/ownership.ts'
import { createTestDatabase } from '../support/database.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const { db, url } = share(await createTestDatabase())
const texts: string[] = []
const write = (...words: unknown[]) => void texts.push(String(words.at(-1)))
const log = { info: write, warn: write } as never
// A busy PostgreSQL that answers late must not cost the place here.
const own = () => ownTemporal({ DATABASE_URL: url }, log, { waitMs: 1_000, answerMaxMs: 60_000 })
const breakConnections = () => db.raw("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'relay temporal'")

test('one process owns Temporal on a database, and the next one once it has gone', async () => {
  const first = await own()
  await expect(own()).rejects.toThrow(/Another relay runs Temporal on this database \(connected from .* since .*\)/)
  await first.release()
  await (await own()).release()
})

test('a process whose connection breaks takes its place again', async () => {
  texts.length = 0
  const first = await own()
  await breakConnections()
  await until('it has its place again', () => texts.includes('Temporal has its place again'))
  await expect(own()).rejects.toThrow('Another relay runs Temporal')
  await first.release()
})

test('a process learns that another one has taken its place', async () => {
  const first = await own()
  const other = new Client({ connectionString: url })
  await other.connect()
  const takes = other.query("select pg_advisory_lock(hashtextextended('relay temporal', 0))")
  await until('the other one waits', async () => (await db('pg_locks').where({ locktype: 'advisory', granted: false })).length > 0)
  await breakConnections()
  await takes
  await expect(first.lost).rejects.toThrow('Another relay runs Temporal on this database')
  await other.end()
  await first.release()
})
