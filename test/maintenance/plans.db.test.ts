import { idPrefixAt } from '../../src/base/ids.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { createTestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { readingOf, statementsOf } from '../support/plans.ts'
import { share } from '../support/share.ts'

// Retention has nothing to remove: what ten workspaces have is a few hours too young.

const workspaces = 10
const rowsPerWorkspace = 3_000
const now = new Date('2026-03-15T12:00:00Z')
const days = 10
const moment = '2026-03-05T18:00:00Z'

const database = share(await createTestDatabase())
const { db } = database
await ensurePartitions(db, new Date(moment))
const ids = `select 'W' || lpad(w::text, 3, '0') as workspace_id from generate_series(1, ${workspaces}) as w`
const rows = `select workspace_id || 'X' || n as id, workspace_id, n from (${ids}) as ids, generate_series(1, ${rowsPerWorkspace}) as n`
const settings = { content_days: days, events_days: days, captured_requests_days: days, captured_bodies_days: days }
await db.raw(
  `insert into workspaces (id, user_slug, workspace_slug, settings) select workspace_id, 'acme', lower(workspace_id), :settings from (${ids}) as ids`,
  { settings: JSON.stringify(settings) },
)
await db.raw(
  `insert into repositories (id, workspace_id, repo_id, name) select workspace_id || 'R', workspace_id, 'Z1', 'A' from (${ids}) as ids`,
)
await db.raw(
  `insert into contents (id, workspace_id, store, size_bytes, sha256, owned_at, captured_on)
  select id, workspace_id, 'postgres', 1, '', case when n % 2 = 0 then now() end, :moment::date from (${rows}) as rows`,
  { moment },
)
await db.raw(
  `insert into documents (
    id, workspace_id, repository_id, content_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at, request_id)
  select
    id, workspace_id, workspace_id || 'R', case when n % 4 = 0 then id end, 'Z1', id, 'data', 'application/pdf', 1, 'delivered',
    :moment::timestamptz, now(), id
  from (${rows}) as rows`,
  { moment },
)
await db.raw(
  `insert into counters (workspace_id, kind, period, since, repo_id, destination_id, status, detail, count)
  select workspace_id, kind, 'hour', :moment::timestamptz, 'R' || n, '', 'delivered', '', 1
  from (${rows}) as rows, (values ('attempts'), ('all_attempts'), ('destination_attempts')) as counted (kind)`,
  { moment },
)
await db.raw(
  `insert into captured_requests (
    id, workspace_id, channel, http_method, uri, query_string, request_headers, source_ip, request_at, status_code, response_headers, duration_ms, response_at)
  select :prefix || lpad(row_number() over ()::text, 16, '0'), workspace_id, 'receiver', 'PUT', '/', '', '{}', '::1', now(), 200, '{}', 1, now()
  from (${rows}) as rows`,
  { prefix: idPrefixAt(new Date(moment)) },
)
await db.raw('vacuum analyze')

test('retention asks an index for the oldest of each workspace, and reads no table as a whole', async () => {
  const config = testConfig({ RETENTION_ATTEMPTS_DAYS: '10', RETENTION_DOCUMENTS_DAYS: '10' })
  const statements = await statementsOf(db, () => createRetention(db, config).removeExpired(now, new AbortController().signal))
  const asked = statements.filter(({ sql }) => sql.includes('as expiry'))
  // Two tables of captures, audit entries, attempts and their counters, contents, documents, events, and contents of captures.
  expect(asked).toHaveLength(9)
  for (const statement of asked) {
    const { plan, pages } = await readingOf(db, statement)
    expect({ ...statement, rows: plan['Actual Rows'] }).toEqual({ ...statement, rows: 0 })
    // Six counters of a workspace take three each. The smallest of the tables has 353 pages.
    expect(pages).toBeLessThan(workspaces * 30)
  }
})
