import { createRetention } from '../../src/maintenance/retention.ts'
import { createTestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

// Retention has nothing to remove: each of fifty workspaces has only rows of today.

const workspaces = 50
const rowsPerWorkspace = 400

const database = share(await createTestDatabase())
const { db } = database
const ids = `select 'W' || lpad(w::text, 3, '0') as workspace_id from generate_series(1, ${workspaces}) as w`
const rows = `select workspace_id || 'X' || n as id, workspace_id, n from (${ids}) as ids, generate_series(1, ${rowsPerWorkspace}) as n`
await db.raw(
  `insert into workspaces (id, user_slug, workspace_slug, settings)
  select workspace_id, 'acme', lower(workspace_id), '{"content_days": 30, "events_days": 30, "captured_bodies_days": 10}' from (${ids}) as ids`,
)
await db.raw(
  `insert into repositories (id, workspace_id, repo_id, name) select workspace_id || 'R', workspace_id, 'Z1', 'A' from (${ids}) as ids`,
)
await db.raw(
  `insert into contents (id, workspace_id, store, size_bytes, sha256, owned_at, captured_on)
  select id, workspace_id, 'postgres', 1, '', case when n % 2 = 0 then now() end, current_date from (${rows}) as rows`,
)
await db.raw(
  `insert into documents (
    id, workspace_id, repository_id, content_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at, request_id)
  select
    id, workspace_id, workspace_id || 'R', case when n % 4 = 0 then id end, 'Z1', id, 'data', 'application/pdf', 1, 'delivered', now(), now(), id
  from (${rows}) as rows`,
)
await db.raw(
  `insert into counters (workspace_id, kind, period, since, repo_id, destination_id, status, detail, count)
  select workspace_id, kind, 'hour', date_trunc('hour', now()), 'R' || n, '', 'delivered', '', 1
  from (${rows}) as rows, (values ('attempts'), ('all_attempts'), ('destination_attempts')) as counted (kind)`,
)
for (const table of ['workspaces', 'contents', 'documents', 'counters', 'events']) await db.raw('vacuum analyze ??', [table])

test('retention asks an index for the oldest of each workspace, and reads no table as a whole', async () => {
  const statements: { sql: string; bindings: readonly unknown[] }[] = []
  const record = (statement: { sql: string; bindings: readonly unknown[] }) => statements.push(statement)
  const config = testConfig({ RETENTION_ATTEMPTS_DAYS: '100', RETENTION_DOCUMENTS_DAYS: '100' })
  const { removeExpired } = createRetention(db, config)
  db.on('query', record)
  const removed = await removeExpired(new Date(), new AbortController().signal)
  db.removeListener('query', record)
  expect(removed).toMatchObject({ contents: 0, documents: 0, events: 0, capturedContents: 0, passedOver: 0 })
  const connection = await db.client.acquireConnection()
  try {
    const asked = statements.filter(({ sql }) => sql.includes('as expiry'))
    // Two tables of captures, audit entries, attempts and their counters, contents, documents, events, and contents of captures.
    expect(asked).toHaveLength(9)
    for (const { sql, bindings } of asked) {
      const { rows: found } = await connection.query(`explain (analyze, buffers, format json) ${sql}`, bindings)
      const plan = found[0]['QUERY PLAN'][0].Plan
      expect({ sql, rows: plan['Actual Rows'] }).toEqual({ sql, rows: 0 })
      expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(workspaces * 20)
    }
  } finally {
    await db.client.releaseConnection(connection)
  }
})
