import { newId } from '../../src/base/ids.ts'
import type { BulkAction } from '../../src/delivery/bulk-retry.ts'
import { bulkPageOf } from '../support/bulk-page.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, insertNumberedDocuments } from '../support/factories.ts'
import { readingOf, statementsOf } from '../support/plans.ts'
import { share } from '../support/share.ts'

// A bulk retry runs for hours beside other workspaces: each page may read what it takes, and not what remains.

const remaining = 5_000
const pageSize = 20
// Each document of a page is looked up in several indexes.
const pagesPerDocument = 40

const database = share(await createTestDatabase())
const { db } = database

/** Makes a workspace whose documents wait for a bulk retry, each received a millisecond after the one before it. */
const fill = async (change: Record<string, unknown>, count: number) => {
  const routes = await createRoutes(db, [{ name: 'archive' }, { name: 'new' }])
  const { workspaceId } = routes
  for (const table of ['documents', 'deliveries']) await db.raw('alter table ?? disable trigger user', [table])
  const idOf = await insertNumberedDocuments(db, routes, count, { status: 'failed' })
  await db.raw(
    `insert into contents (id, workspace_id, store, size_bytes, sha256, owned_at)
    select id, workspace_id, 'postgres', 5, '', now() from documents where workspace_id = ?`,
    [workspaceId],
  )
  const receivedAt = db.raw(`timestamptz '2026-01-01' + right(id, 8)::integer * interval '1 millisecond'`)
  await db('documents')
    .where({ workspace_id: workspaceId })
    .update({ content_id: db.ref('id'), received_at: receivedAt, ...change })
  for (const table of ['documents', 'deliveries']) await db.raw('alter table ?? enable trigger user', [table])
  return { routes, workspaceId, idOf }
}

const scenes = {
  retry: await fill({ status: 'failed' }, remaining),
  replay: await fill({ status: 'discarded', is_unconnected: true }, remaining),
  deliver: await fill({ status: 'delivered' }, remaining),
}
for (const table of ['documents', 'deliveries', 'contents']) await db.raw('vacuum analyze ??', [table])

/** Runs a page, and returns the documents that it has found and the pages of PostgreSQL that it has read to find them. */
const readPage = async (action: BulkAction, filter: Record<string, unknown>, scene: (typeof scenes)['retry']) => {
  const id = newId()
  const middle = remaining / 2
  await db('bulk_retries').insert({
    id,
    workspace_id: scene.workspaceId,
    action,
    filter,
    matched_documents: 0,
    matched_deliveries: 0,
    actor_type: 'system',
    document_cursor: scene.idOf(middle),
    received_cursor: new Date(Date.parse('2026-01-01T00:00:00Z') + middle),
  })
  const statements = await statementsOf(db, () => bulkPageOf(db)(id, pageSize, () => {}).catch(() => {}))
  const { plan, pages } = await readingOf(
    db,
    statements.find(({ sql }) => sql.startsWith('select "documents"."id", "received_at"'))!,
  )
  return { documents: plan['Actual Rows'], pages }
}

test.each([
  ['retry', {}],
  ['retry', { repoId: 'Z1' }],
  ['replay', {}],
  ['replay', { repoId: 'Z1' }],
  ['acknowledge', {}],
  ['deliver', {}],
  ['deliver', { repoId: 'Z1' }],
] as const)('a page of a bulk %s with the filter %j reads what it takes', async (action, filter) => {
  const scene = scenes[action === 'acknowledge' ? 'replay' : action]
  const destinationId = scene.routes.destinations['new']
  const { documents, pages } = await readPage(action, action === 'deliver' ? { ...filter, destinationId } : filter, scene)
  expect(documents).toBe(pageSize)
  expect(pages).toBeLessThan(pageSize * pagesPerDocument)
})
