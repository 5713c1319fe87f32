import { createAuditLogs } from '../../src/db/audit-logs.ts'
import { createDestinations } from '../../src/routing/destinations.ts'
import { createCertificates } from '../../src/db/certificates.ts'
import { createDocuments } from '../../src/db/documents.ts'
import { createRepositories } from '../../src/routing/repositories.ts'
import { auditEventNames } from '../../src/domain/audit-events.ts'
import { idPrefixAt } from '../../src/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const rowCount = 100_000
const workspaces = 10
const days = 90
const dayMs = 86_400_000
const since = new Date(Date.now() - (Date.now() % dayMs))
const workspaceId = 'W1'
const page = { page: 1, perPage: 25 }
// For each event, a page of 25 rows and one more row that shows if there is a next page.
const sortedRowsMax = 26 * auditEventNames.length

let database: TestDatabase

/** Inserts rows: the n-th belongs to workspace n % 10 and day n % 90. Audit entries are in every partition. */
const fill = async () => {
  const { db } = database
  const prefixes = Array.from({ length: days }, (_, day) => idPrefixAt(new Date(since.getTime() + day * dayMs)))
  const rows = `
    select
      'W' || n % ${workspaces} as workspace_id, n,
      (:prefixes::text[])[1 + n % ${days}] || lpad(n::text, 16, '0') as id,
      :since::timestamptz + (n % ${days}) * interval '1 day' as moment
    from generate_series(1, ${rowCount}) as n`
  const values = { prefixes, since }
  await db.raw(
    `insert into workspaces (id, user_slug, workspace_slug) select 'W' || n, 'acme', 'w' || n from generate_series(0, 9999) as n`,
  )
  await db.raw(
    `insert into repositories (id, workspace_id, repo_id, name, status)
    select id, workspace_id, 'R' || n, 'A', case when n % 7 = 0 then 'inactive' else 'active' end from (${rows}) as rows`,
    values,
  )
  await db.raw(
    `insert into destinations (id, workspace_id, name, connector_type, config, credentials_sealed)
    select id, workspace_id, 'A', (array['sftp', 'webhook'])[1 + n % 2], '{}', '' from (${rows}) as rows`,
    values,
  )
  await db.raw(
    `insert into connections (id, workspace_id, name) select id, workspace_id, 'A' from (${rows}) as rows where n % 7 = 0`,
    values,
  )
  await db.raw(
    `with linked as (
      insert into connection_repositories (connection_id, repository_id, position)
      select id, id, 0 from connections
    )
    insert into connection_destinations (connection_id, destination_id, position)
    select id, id, 0 from connections`,
  )
  await db.raw(
    `insert into documents (id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at)
    select
      id, workspace_id, id, 'R' || n % 7, id, 'data', 'application/pdf', 5,
      case when n % 101 = 0 then 'failed' when n % 103 = 0 then 'pending' else 'delivered' end, moment, moment
    from (${rows}) as rows`,
    values,
  )
  await db.raw(
    `insert into deliveries (document_id, destination_id, workspace_id, connection_id, status, path)
    select id, id, workspace_id, id, 'delivered', 'a/b' from (${rows}) as rows`,
    values,
  )
  await db.raw(
    `insert into audit_logs (id, workspace_id, event, subject_type, subject_id, description, user_id, actor_type, created_at)
    select id, workspace_id, (:events::text[])[1 + n % ${auditEventNames.length}], 'A', 'S' || n % 20000, 'It happened', 'U' || n % 13, 'api_key', moment
    from (${rows}) as rows`,
    { ...values, events: auditEventNames },
  )
  const links = ['connections', 'connection_repositories', 'connection_destinations']
  const tables = ['workspaces', 'repositories', 'destinations', ...links, 'documents', 'deliveries', 'audit_logs']
  for (const table of tables) await db.raw('vacuum analyze ??', [table])
}

beforeAll(async () => {
  database = await createTestDatabase()
  await fill()
})

afterAll(() => database.drop())

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Index Cond'?: string
  'Plan Rows': number
  Plans?: Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** Returns the nodes of a plan that get slower as the table grows: scans of a whole table or index, and large sorts. */
const slowNodesOf = async (sql: string, bindings: readonly unknown[]): Promise<string[]> => {
  // Uses the driver directly, because the SQL already has the placeholders of PostgreSQL.
  const text = `explain (format json) ${sql}`
  const connection = await database.db.client.acquireConnection()
  try {
    const { rows } = await connection.query(text, bindings)
    return nodesOf(rows[0]['QUERY PLAN'][0].Plan).flatMap((node) => {
      const name = `${node['Node Type']} ${node['Relation Name'] ?? ''}`.trim()
      if (node['Node Type'].endsWith('Seq Scan')) return [name]
      if (/^Index.* Scan$/.test(node['Node Type']) && !node['Index Cond']) return [`${name}: the whole index`]
      if (node['Node Type'].includes('Sort') && node['Plan Rows'] > sortedRowsMax) return [`${name} of ${node['Plan Rows']} rows`]
      return []
    })
  } finally {
    await database.db.client.releaseConnection(connection)
  }
}

/** Returns the slow nodes of all statements that `list` runs. */
const slowNodesOfList = async (list: () => Promise<unknown>) => {
  const statements: { sql: string; bindings: readonly unknown[] }[] = []
  const record = (statement: { sql: string; bindings: readonly unknown[] }) => statements.push(statement)
  database.db.on('query', record)
  await list()
  database.db.removeListener('query', record)
  expect(statements.length).toBeGreaterThan(0)
  const slowNodes = []
  for (const { sql, bindings } of statements) slowNodes.push(...(await slowNodesOf(sql, bindings)))
  return slowNodes
}

const combinations = (filters: Record<string, unknown>): Record<string, unknown>[] =>
  Object.entries(filters).reduce<Record<string, unknown>[]>(
    (previous, [name, value]) => [...previous, ...previous.map((chosen) => ({ ...chosen, [name]: value }))],
    [{}],
  )

const dates = { dateFrom: new Date(since.getTime() + 20 * dayMs), dateTo: new Date(since.getTime() + 50 * dayMs) }

test('a plan that reads or sorts a whole table is detected', async () => {
  expect(await slowNodesOf(`select id from documents where comp_id = $1 order by size_bytes`, ['data'])).toEqual([
    expect.stringMatching(/^Sort of \d{5,} rows$/),
    'Seq Scan documents',
  ])
})

test.each(combinations({ repoId: 'R3', status: 'failed', ...dates }))(
  'the first and the last page of documents with %j are read through an index',
  async (filter) => {
    const documents = createDocuments(database.db)
    expect(await slowNodesOfList(() => documents.list(workspaceId, { ...filter, ...page }))).toEqual([])
    expect(await slowNodesOfList(() => documents.list(workspaceId, { ...filter, page: 390, perPage: 25 }))).toEqual([])
  },
)

test.each([
  { acknowledged: false, status: 'failed' as const },
  { acknowledged: false, status: 'failed' as const, ...dates },
  { acknowledged: true },
])('documents with %j are read through an index', async (filter) => {
  const documents = createDocuments(database.db)
  expect(await slowNodesOfList(() => documents.list(workspaceId, { ...filter, ...page }))).toEqual([])
})

test('documents with the most common status are read through an index', async () => {
  const documents = createDocuments(database.db)
  expect(await slowNodesOfList(() => documents.list(workspaceId, { status: 'delivered', ...page }))).toEqual([])
})

test('the audit log is read through an index for every combination of conditions', async () => {
  const before = `${idPrefixAt(new Date(since.getTime() + 60 * dayMs))}0000000000000000`
  const conditions = { eventPrefix: 'repository.', subjectType: 'Repository', subjectId: 'S21', userId: 'U3', before, ...dates }
  const slowNodes: Record<string, string[]> = {}
  for (const filter of combinations(conditions)) {
    const found = await slowNodesOfList(() => createAuditLogs(database.db).list(workspaceId, { ...filter, perPage: 25 }))
    if (found.length > 0) slowNodes[JSON.stringify(filter)] = found
  }
  expect(slowNodes).toEqual({})
})

test('the audit log of one event is read through an index, even if the event has never occurred', async () => {
  const auditLogs = createAuditLogs(database.db)
  expect(await slowNodesOfList(() => auditLogs.list(workspaceId, { event: 'rfc.call', perPage: 25 }))).toEqual([])
  await database.db('audit_logs').where({ event: 'rfc.call' }).delete()
  expect(await slowNodesOfList(() => auditLogs.list(workspaceId, { event: 'rfc.call', perPage: 25 }))).toEqual([])
})

test.each([{}, { status: 'active' as const }, { status: 'inactive' as const }])(
  'repositories with %j are read through an index',
  async (filter) => {
    expect(await slowNodesOfList(() => createRepositories(database.db).list(workspaceId, { ...filter, ...page }))).toEqual([])
  },
)

test('the keys that may sign a request are read through an index, and so are the repositories whose names begin alike', async () => {
  const { id } = await database.db('repositories').where({ repo_id: 'R77' }).first('id')
  expect(await slowNodesOfList(() => createCertificates(database.db).listKeys(id, 'CN=TST'))).toEqual([])
})

test.each([{}, { type: 'sftp' as const }, { type: 'drive' as const }])('destinations with %j are read through an index', async (filter) => {
  expect(await slowNodesOfList(() => createDestinations(database.db).list(workspaceId, { ...filter, ...page }))).toEqual([])
})
