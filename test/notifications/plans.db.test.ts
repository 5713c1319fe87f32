import { idPrefixAt } from '../../src/base/ids.ts'
import { incidentEventNames } from '../../src/domain/notices.ts'
import { createCheckIncidents } from '../../src/notifications/check-incidents.ts'
import { foldAll } from '../support/counters.ts'
import { createTestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { nodesOf, planOf, readingOf, statementsOf, type Plan } from '../support/plans.ts'
import { share } from '../support/share.ts'

// One of a hundred workspaces has a notification, and 5,000 failed deliveries of one error code.

const workspaces = 100
const rowsPerWorkspace = 400
const failed = 5_000
const large = ['documents', 'deliveries', 'captured_requests']

const database = share(await createTestDatabase())
const { db } = database
const ids = `select 'W' || lpad(w::text, 3, '0') as workspace_id, w from generate_series(0, ${workspaces - 1}) as w`
await db.raw(`insert into workspaces (id, user_slug, workspace_slug) select workspace_id, 'acme', lower(workspace_id) from (${ids}) as ids`)
await db.raw(
  `insert into repositories (id, workspace_id, repo_id, name)
  select workspace_id || 'R' || n, workspace_id, 'Z' || n, 'A' from (${ids}) as ids, generate_series(0, 19) as n`,
)
await db.raw(
  `insert into destinations (id, workspace_id, name, connector_type, config, credentials_sealed)
  select workspace_id || 'D' || n, workspace_id, 'A', 'webhook', '{}', '' from (${ids}) as ids, generate_series(0, 9) as n`,
)
await db.raw(`insert into destination_gates (destination_id, circuit) select id, 'open' from destinations where id like '%D1'`)
const documents = (rows: string, status: string) =>
  db.raw(
    `with rows as (${rows}), inserted as (
      insert into documents (
        id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at, request_id)
      select
        id, workspace_id, workspace_id || 'R' || n % 20, 'Z' || n % 20, id, 'data', 'application/pdf', 5, :status, now(), now(), id
      from rows
    )
    insert into deliveries (document_id, destination_id, workspace_id, connection_id, status, path, last_error_code)
    select id, workspace_id || 'D' || n % 10, workspace_id, 'C', :status, 'a', case when :status = 'failed' then 'http_500' end
    from rows`,
    { status },
  )
await documents(
  `select workspace_id || 'X' || n as id, workspace_id, n from (${ids}) as ids, generate_series(1, ${rowsPerWorkspace}) as n`,
  'delivered',
)
await documents(`select 'W001F' || n as id, 'W001' as workspace_id, n from generate_series(1, ${failed}) as n`, 'failed')
await db.raw(
  `insert into captured_requests (
    id, workspace_id, channel, http_method, uri, query_string, repo_id, request_headers, source_ip, request_at, status_code,
    response_headers, duration_ms, response_at)
  select
    :prefix || lpad(w::text, 4, '0') || lpad(n::text, 12, '0'), workspace_id, 'receiver', 'PUT', '/', '', 'Z' || n % 20, '{}', '::1',
    now(), 200, '{}', 1, now()
  from (${ids}) as ids, generate_series(1, ${rowsPerWorkspace}) as n`,
  { prefix: idPrefixAt(new Date(Date.now() - 60_000)) },
)
await db('notifications').insert({
  id: 'rule',
  workspace_id: 'W001',
  name: 'All',
  events: [...incidentEventNames],
  destination_id: 'W001D9',
  quiet_seconds: 0,
  silence_hours: 72,
})
await foldAll(db)
for (const table of [...large, 'counters', 'workspaces', 'repositories', 'destinations', 'destination_gates', 'notifications'])
  await db.raw('vacuum analyze ??', [table])

// A check opens incidents.
beforeEach(() => db('incidents').delete())

/** Adds open incidents, each with its notice. */
const addIncidents = (count: number) =>
  db.raw(
    `with added as (
      insert into incidents (id, workspace_id, event, subject, count, details, opened_at, last_seen_at)
      select 'I' || n, 'W001', 'delivery.failed', 'S' || n, 1, '{}', now(), now() from generate_series(1, :count) as n
      returning id
    )
    insert into notices (id, workspace_id, notification_id, incident_id, transition, data, created_at)
    select id, 'W001', 'rule', id, 'opened', '{}', now() from added`,
    { count },
  )

test.each([
  ['of one workspace', undefined, 11],
  ['of the operator', 'acme/w001', 10 + workspaces],
] as const)('a check for a notification %s reads no large table as a whole', async (_, operator, incidents) => {
  const check = createCheckIncidents(db, testConfig(operator === undefined ? {} : { RELAY_OPERATOR_WORKSPACE: operator }))
  const statements = await statementsOf(db, async () => {
    // One destination of each workspace fails, ten have failed deliveries, and no repository is wired, but none has discarded a document.
    expect(await check(new Date())).toMatchObject({ opened: incidents, notices: incidents })
    expect(await check(new Date(Date.now() + 60_000))).toMatchObject({ opened: 0, closed: 0, notices: 0 })
  })
  const nodes: Plan[] = []
  for (const statement of statements)
    if (/^\s*(select|with|insert|update)/i.test(statement.sql)) nodes.push(...nodesOf(await planOf(db, statement)))
  expect(statements.length).toBeGreaterThan(10)
  const scanned = nodes.flatMap(({ 'Node Type': type, 'Relation Name': name = '' }) => (type === 'Seq Scan' ? [name] : []))
  expect(scanned.filter((name) => large.some((table) => name.startsWith(table)))).toEqual([])
  // Each of ten groups takes some blocks for its newest and its oldest delivery. All of the 5,000 would take one each.
  const { plan, pages } = await readingOf(
    db,
    statements.find(({ sql }) => sql.includes('with present'))!,
  )
  expect(plan['Actual Rows']).toBe(10)
  expect(pages).toBeLessThan(1_000)
})

// While a transaction may still see deleted rows, the tables keep their pages, and the planner expects pages without rows.
test.each(['no rows', 'pages without rows'])('open incidents are looked up one by one, if the planner expects %s', async (expected) => {
  const reader = await db.transaction({ isolationLevel: 'repeatable read' })
  await reader('notifications')
  await addIncidents(10)
  await db('incidents').delete()
  if (expected === 'no rows') await reader.rollback()
  for (const table of ['incidents', 'notices']) await db.raw('vacuum analyze ??', [table])
  if (!reader.isCompleted()) await reader.rollback()
  const incidents = 1_000
  await addIncidents(incidents)
  const statements = await statementsOf(db, () => createCheckIncidents(db, testConfig())(new Date()))
  // The check has closed them, because none has a cause.
  await db('incidents').update({ closed_at: null })
  const { pages } = await readingOf(
    db,
    statements.find(({ sql }) => sql.includes('as earlier'))!,
  )
  expect(pages).toBeLessThan(incidents * 20)
})
