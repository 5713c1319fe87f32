import { version } from '../../src/base/version.ts'
import { checkSchema } from '../../src/cli/doctor/operation-checks.ts'
import type { Database } from '../../src/db/database.ts'
import { migrate, requireSchema } from '../../src/db/migrations.ts'
import { createTestDatabase } from '../support/database.ts'

const expanding = '9998_of_a_later_version'
const contracting = '9999_of_a_version_after_that'

/** Records a migration that this version does not contain, as a later version does. */
const applyLater = (db: Database, name: string) => db('knex_migrations').insert({ name, batch: 1_000, migration_time: new Date() })

test('a version runs with a database that later migrations have expanded, and migrates it without a change', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await applyLater(db, expanding)
  await expect(requireSchema(db)).resolves.toBeUndefined()
  await expect(migrate(db)).resolves.toEqual([])
  expect(await db('knex_migrations').where({ name: expanding })).toHaveLength(1)
})

test('a version that contains the required migrations runs with a contracted database', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await applyLater(db, contracting)
  await db('required_migrations').insert({ name: '0001_workspaces' })
  await expect(requireSchema(db)).resolves.toBeUndefined()
  await expect(migrate(db)).resolves.toEqual([])
})

test('a version that is too old for a contracted database refuses to start and to migrate, and doctor says why', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await db('required_migrations').insert({ name: expanding })
  const message = `This version of the relay (${version}) is too old for the database, which requires the migration ${expanding}.`
  await expect(requireSchema(db)).rejects.toThrow(message)
  await expect(migrate(db)).rejects.toThrow(message)
  await expect(checkSchema(db)).rejects.toMatchObject({
    message: expect.stringContaining(message),
    remedy: expect.stringContaining('Install the version of the relay'),
  })
})
