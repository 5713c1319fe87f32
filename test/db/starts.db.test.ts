import { beginsAtOnce } from '../../src/db/starts.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, insertNumberedDocuments } from '../support/factories.ts'
import { readingOf } from '../support/plans.ts'
import { share } from '../support/share.ts'

// Postponed are the deliveries that wait for the data of an enrichment or for the end of appends: up to an hour of all documents.
const postponed = 20_000

const database = share(await createTestDatabase())
const { db } = database
const routes = await createRoutes(db, [{ name: 'archive' }])
const idOf = await insertNumberedDocuments(db, routes, postponed)
await db('deliveries').update({ begin_at: db.raw(`now() + interval '1 hour'`) })
await db.raw('vacuum analyze deliveries')

interface Answer {
  atOnce: boolean
  pages: number
}

/** Asks whether the next delivery of the workspace need not wait, and counts the pages that PostgreSQL reads for the answer. */
const ask = async (): Promise<Answer> => {
  const question = `select ${beginsAtOnce('workspaces.id')} as "atOnce" from workspaces where id = '${routes.workspaceId}'`
  const { pages } = await readingOf(db, { sql: question, bindings: [] })
  const { rows } = await db.raw(question)
  return { atOnce: rows[0].atOnce, pages }
}

// A look-up in the index takes 3 pages, and so does the row.
const fewPages = 20

test('a create reads as little beside an hour of postponed deliveries as without them', async () => {
  const { atOnce, pages } = await ask()
  expect(atOnce).toBe(true)
  expect(pages).toBeLessThan(fewPages)
})

test.each(['document', 'delivery', 'retry'])(
  'a delivery that is due is found behind postponed ones, if it begins as %s',
  async (beginAs) => {
    const due = db('deliveries').where({ document_id: idOf(7) })
    await due.clone().update({ begin_as: beginAs, begin_at: db.fn.now() })
    const { atOnce, pages } = await ask()
    expect(atOnce).toBe(false)
    expect(pages).toBeLessThan(fewPages)
    await due.clone().update({ begin_as: 'document', begin_at: db.raw(`now() + interval '1 hour'`) })
    expect((await ask()).atOnce).toBe(true)
  },
)
