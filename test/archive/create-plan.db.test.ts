import { createReceive } from '../../src/archive/receive.ts'
import { openDatabase } from '../../src/db/database.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, insertNumberedDocuments, receivedDocument, testConfig } from '../support/factories.ts'

test('a create that was planned in an empty database does not read the other documents of its workspace', async () => {
  await using database = await createTestDatabase()
  // Plans belong to a connection. PostgreSQL makes one for all values at the sixth execution, and another one when a table is analyzed.
  const oneConnection = { ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 1 }
  await using db = disposable(openDatabase(oneConnection, 'test'), (each) => each.destroy())
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const receive = createReceive(db, testConfig())
  const create = async () => receive(await receivedDocument(routes, { data: 'content' }))
  for (let count = 0; count < 10; count += 1) await create()
  await insertNumberedDocuments(db, routes, 10_000)

  const indexPages = async (): Promise<number> => {
    await db.raw('select pg_stat_force_next_flush()')
    const { rows } = await db.raw<{ rows: { pages: number }[] }>(
      `select idx_blks_hit + idx_blks_read as pages from pg_statio_user_tables where relname = 'documents'`,
    )
    return rows[0]!.pages
  }
  const before = await indexPages()
  await create()
  // One or two of each index into which the document is inserted. One index with all documents of the workspace has more than a hundred.
  expect((await indexPages()) - before).toBeLessThan(60)
})
