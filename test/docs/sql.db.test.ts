import { createTestDatabase } from '../support/database.ts'
import { share } from '../support/share.ts'
import { blocksOf, readPages } from './commands.ts'

const database = share(await createTestDatabase())

test('every statement of SQL in the pages is one that the database of the relay executes, and psql needs nothing behind it', async () => {
  const statements = (await readPages()).flatMap(({ path, text }) =>
    blocksOf(text).flatMap(({ language, content }) => (language === 'sql' ? [{ path, statement: content }] : [])),
  )
  expect(statements.length).toBeGreaterThan(2)
  for (const { path, statement } of statements) {
    expect({ path, statement }).toEqual({ path, statement: expect.stringMatching(/;\n$/) })
    const transaction = await database.db.transaction()
    try {
      // The database of the tests has another role.
      await transaction.raw(statement.replace('role relay ', 'role current_user '))
    } catch (thrown) {
      throw new Error(`${path}: ${statement}`, { cause: thrown })
    } finally {
      await transaction.rollback()
    }
  }
})
