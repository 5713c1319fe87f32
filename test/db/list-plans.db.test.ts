import { createCertificates } from '../../src/access/certificates.ts'
import { createReadVersions } from '../../src/api/console/changes.ts'
import { destinationsOf } from '../../src/app/use-cases.ts'
import { createDocuments } from '../../src/archive/document-list.ts'
import { dayMs, dayOf, startOfDay } from '../../src/base/day.ts'
import { idPrefixAt, timeOfIdPrefix } from '../../src/base/ids.ts'
import { createCapturedRequests } from '../../src/capture/captured-requests.ts'
import { createAuditLogs } from '../../src/db/audit-logs.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createOutbox, type OutboxMessage } from '../../src/db/outbox.ts'
import { listPartitions } from '../../src/db/partitions.ts'
import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import { countOverdue } from '../../src/delivery/overdue.ts'
import { createReconcile } from '../../src/delivery/reconcile.ts'
import { createLook, createToBegin, type WaitingDocument } from '../../src/delivery/to-begin.ts'
import { callNext, listLines } from '../../src/delivery/wake.ts'
import { auditEventNames } from '../../src/domain/audit-events.ts'
import { createDestinationStatistics } from '../../src/observe/destination-statistics.ts'
import { createFailures, failureFields } from '../../src/observe/failures.ts'
import { createStatistics } from '../../src/observe/statistics.ts'
import { createConnections } from '../../src/routing/connections.ts'
import { createRepositories } from '../../src/routing/repositories.ts'
import { foldAll } from '../support/counters.ts'
import { createTestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { nodesOf, planOf, readingOf, statementsOf, type Statement } from '../support/plans.ts'
import { share } from '../support/share.ts'

const rowCount = 40_000
const workspaces = 10
const days = 90
const startedAt = new Date()
const since = startOfDay(dayOf(startedAt))
const workspaceId = 'W1'
const page = { page: 1, perPage: 25 }
// The eleventh row, see below.
const connectionId = `${idPrefixAt(new Date(since.getTime() + 11 * dayMs))}${'11'.padStart(16, '0')}`
// For each event, a page of 25 rows and one more row that shows if there is a next page.
const sortedRowsMax = 26 * auditEventNames.length

/** Inserts rows: the n-th belongs to workspace n % 10 and day n % 90. */
const fill = async () => {
  const { db } = database
  const rowsOver = (length: number) => `
    select
      'W' || n % ${workspaces} as workspace_id, n,
      (:prefixes::text[])[1 + n % ${length}] || lpad(n::text, 16, '0') as id,
      :since::timestamptz + (n % ${length}) * interval '1 day' as moment
    from generate_series(1, ${rowCount}) as n`
  const valuesFrom = (first: Date, length: number) => ({
    prefixes: Array.from({ length }, (_, day) => idPrefixAt(new Date(first.getTime() + day * dayMs))),
    since: first,
  })
  const rows = rowsOver(days)
  const values = valuesFrom(since, days)
  // Audit entries are on every day of every partition: PostgreSQL would read an empty one without its index.
  const partitions = await listPartitions(db, 'audit_logs')
  const auditSince = timeOfIdPrefix(partitions[0]!.from)
  const auditDays = (timeOfIdPrefix(partitions.at(-1)!.to).getTime() - auditSince.getTime()) / dayMs
  await db.raw(
    `insert into workspaces (id, user_slug, workspace_slug) select 'W' || n, 'acme', 'w' || n from generate_series(0, 9999) as n`,
  )
  await db.raw(
    `insert into repositories (id, workspace_id, repo_id, name, status)
    select id, workspace_id, 'R' || n, 'A', case when n % 7 = 0 then 'inactive' else 'active' end from (${rows}) as rows`,
    values,
  )
  await db.raw(
    `insert into certificates (
      id, workspace_id, repository_id, auth_id, received, der, subject, issuer, serial_number, valid_from, valid_to, key_algorithm,
      signature_algorithm, fingerprint_sha1, fingerprint_sha256, signer_id
    )
    select id, workspace_id, id, 'CN=A', '', '', '', '', '', moment, moment, 'RSA', '', '', '', '' from (${rows}) as rows`,
    values,
  )
  await db.raw(
    `insert into destinations (id, workspace_id, name, connector_type, config, credentials_sealed)
    select id, workspace_id, 'A', (array['sftp', 'webhook'])[1 + n % 2], '{}', '' from (${rows}) as rows`,
    values,
  )
  await db.raw(`insert into destination_gates (destination_id) select id from destinations`)
  await db.raw(
    `insert into connections (id, workspace_id, name) select id, workspace_id, 'A' from (${rows}) as rows where n % 3 > 0`,
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
    `insert into documents (id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at,
        request_id, erp_object_type)
    select
      id, workspace_id, id, 'R' || n % 7, id, 'data', 'application/pdf', 5,
      case when n % 101 = 0 then 'failed' when n % 103 = 0 then 'pending' else 'delivered' end, moment, moment, id,
      case when n % 3 = 0 then 'BKPF' when n % 1000 = 0 then 'EKKO' end
    from (${rows}) as rows`,
    values,
  )
  await db.raw(
    `insert into deliveries (document_id, destination_id, workspace_id, connection_id, status, path, next_attempt_at, begin_at, bulk_retry_id)
    select
      id, id, workspace_id, id, (array['pending', 'retrying', 'failed', 'delivered'])[least(1 + n % 100, 4)], 'a/b',
      case when n % 100 < 2 then now() + (n - ${rowCount / 2}) * interval '1 second' end,
      case when n % 101 = 5 then now() - n * interval '1 second' end,
      case when n % 20 = 0 then 'B' || n % 7 end
    from (${rows}) as rows`,
    values,
  )
  await db.raw(
    `insert into audit_logs (id, workspace_id, event, subject_type, subject_id, description, metadata, user_id, actor_type, created_at)
    select id, workspace_id, (:events::text[])[1 + n % ${auditEventNames.length}], 'A', 'S' || n % 20000, 'It happened',
      jsonb_build_object('key_name', 'Key ' || n % 11), 'U' || n % 13, 'api_key', moment
    from (${rowsOver(auditDays)}) as rows`,
    { ...valuesFrom(auditSince, auditDays), events: auditEventNames },
  )
  await db.raw(
    `insert into captured_requests (
      id, workspace_id, channel, http_method, uri, query_string, repo_id, request_headers, source_ip, request_at, status_code, response_headers,
      duration_ms, response_at
    )
    select
      :prefix || right(id, 16), workspace_id, 'receiver', (array['PUT', 'GET'])[1 + n / 10 % 2], '/', '', 'R' || n % 7, '{}', '127.0.0.1', moment,
      (array[201, 200])[1 + n / 10 % 2], '{}', 1, moment
    from (${rows}) as rows
    where n <= 20000`,
    // The partitions of the near future exist.
    { ...values, prefix: idPrefixAt(startedAt) },
  )
  // A large and a small workspace, to compare what a page of each costs.
  for (const [id, documents] of [
    ['LARGE', rowCount],
    ['SMALL', rowCount / 100],
  ] as const) {
    await db.raw(`insert into workspaces (id, user_slug, workspace_slug) values (:id, 'acme', :id)`, { id })
    await db.raw(
      `insert into documents (id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at,
        request_id)
      select
        :id || id, :id, id, 'R' || n % 7, id, 'data', 'application/pdf', 5, case when n % 20 = 0 then 'failed' else 'delivered' end, moment, moment, id
      from (${rows}) as rows
      where n <= :documents`,
      { ...values, id, documents },
    )
  }
  await foldAll(db)
  // PostgreSQL would read an empty table without its index.
  await db.raw(
    `insert into counter_deltas (workspace_id, kind, hour, repo_id, destination_id, status, detail, change)
    select 'X' || n % 1000, 'documents', moment, 'R', '', 'pending', '', 1 from (${rows}) as rows where n <= 20000`,
    values,
  )
  await db.raw(
    `insert into outbox (key, message) select 'M' || n, jsonb_build_object('kind', 'wakeDelivery') from generate_series(1, 20000) as n`,
  )
  const links = ['connections', 'connection_repositories', 'connection_destinations']
  const documentTables = ['documents', 'document_keys', 'deliveries']
  const tables = [
    'workspaces',
    'repositories',
    'certificates',
    'destinations',
    'destination_gates',
    ...links,
    ...documentTables,
    'audit_logs',
    'captured_requests',
    'counters',
    'counter_deltas',
    'outbox',
  ]
  for (const table of tables) await db.raw('vacuum analyze ??', [table])
}

const database = share(await createTestDatabase())
await fill()

/** Returns the nodes of a plan that get slower as the table grows: scans of a whole table or index, and large sorts. */
const slowNodesOf = async (statement: Statement): Promise<string[]> =>
  nodesOf(await planOf(database.db, statement)).flatMap((node) => {
    const name = `${node['Node Type']} ${node['Relation Name'] ?? ''}`.trim()
    if (node['Node Type'].endsWith('Seq Scan')) return [name]
    if (/^Index.* Scan$/.test(node['Node Type']) && !node['Index Cond']) return [`${name}: the whole index`]
    if (node['Node Type'].includes('Sort') && node['Plan Rows'] > sortedRowsMax) return [`${name} of ${node['Plan Rows']} rows`]
    return []
  })

/** Returns all statements that `list` runs. */
const statementsOfList = async (list: () => Promise<unknown>): Promise<Statement[]> => {
  const statements = await statementsOf(database.db, list)
  expect(statements.length).toBeGreaterThan(0)
  return statements
}

/** Returns the slow nodes of all statements that `list` runs. */
const slowNodesOfList = async (list: () => Promise<unknown>) => {
  const slowNodes = []
  for (const statement of await statementsOfList(list)) slowNodes.push(...(await slowNodesOf(statement)))
  return slowNodes
}

/** Returns how all statements of `list` read a table through indexes. */
const scansOf = async (table: string, list: () => Promise<unknown>): Promise<string[]> => {
  const connection = await database.db.client.acquireConnection()
  try {
    // Where rows are not visible to all yet, it may seem cheaper to read them in their order.
    await connection.query('set enable_bitmapscan = off')
    const scans = []
    for (const { sql, bindings } of await statementsOfList(list)) {
      const { rows } = await connection.query(`explain (format json) ${sql}`, bindings)
      scans.push(...nodesOf(rows[0]['QUERY PLAN'][0].Plan).filter((node) => node['Relation Name'] === table))
    }
    return scans.map((node) => node['Node Type'])
  } finally {
    await connection.query('reset enable_bitmapscan')
    await database.db.client.releaseConnection(connection)
  }
}

/** Returns the number of pages of tables and indexes that all statements of `list` read. */
const pagesReadBy = async (list: () => Promise<unknown>): Promise<number> => {
  let total = 0
  for (const statement of await statementsOfList(list)) total += (await readingOf(database.db, statement)).pages
  return total
}

const isSort = (node: string) => node.startsWith('Sort of')

const combinations = (filters: Record<string, unknown>): Record<string, unknown>[] =>
  Object.entries(filters).reduce<Record<string, unknown>[]>(
    (previous, [name, value]) => [...previous, ...previous.map((chosen) => ({ ...chosen, [name]: value }))],
    [{}],
  )

const dates = { dateFrom: new Date(since.getTime() + 20 * dayMs), dateTo: new Date(since.getTime() + 50 * dayMs) }

test('a plan that reads or sorts a whole table is detected', async () => {
  expect(await slowNodesOf({ sql: 'select id from documents where comp_id = $1 order by size_bytes', bindings: ['data'] })).toEqual([
    expect.stringMatching(/^Sort of \d{5,} rows$/),
    'Seq Scan documents',
  ])
})

test.each(combinations({ repoId: 'R3', status: 'failed', ...dates }))(
  'the first and the last page of documents with %j are read through an index',
  async (filter) => {
    const documents = createDocuments(database.db)
    expect(await slowNodesOfList(() => documents.list(workspaceId, { ...filter, ...page }))).toEqual([])
    // The last page reads the rows before it in any case, and sorting those of one workspace may cost less than reading them in order.
    const slowAtEnd = await slowNodesOfList(() =>
      documents.list(workspaceId, { ...filter, page: rowCount / workspaces / 25 - 10, perPage: 25 }),
    )
    expect(slowAtEnd.filter((node) => !isSort(node))).toEqual([])
  },
)

test.each([{}, { repoId: 'R3' }, { status: 'delivered' as const }, { acknowledged: false, status: 'failed' as const }])(
  'the first page of documents with %j costs about the same in a workspace with 100 times as many documents',
  async (filter) => {
    const documents = createDocuments(database.db)
    const read = (workspace: string) => pagesReadBy(() => documents.list(workspace, { ...filter, ...page }))
    // The first reading may also read what the planner needs.
    await read('LARGE')
    expect(await read('LARGE')).toBeLessThan(1.5 * (await read('SMALL')) + 10)
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

test.each([
  { q: 'x' },
  { q: '4711' },
  { q: idPrefixAt(since) },
  { q: 'BKPF' },
  { q: 'EKKO' },
  { q: 'Invoice 1900004711, company 1000, 2026' },
  { q: '1900004711/2026' },
  { docId: `${idPrefixAt(since)}${'90'.padStart(16, '0')}` },
  { docIdPrefix: idPrefixAt(since) },
  { erpObjectId: '4711' },
  { contentType: 'image/tiff' },
  { sizeMin: 6, repoId: 'R3' },
  { sizeMin: 6, status: 'failed' as const, ...dates },
  { deliveryStatus: 'failed' as const },
  { connectorType: 'sftp' },
  { connectorType: 'sftp', deliveryStatus: 'delivered' as const },
  { errorCode: 'http_404' },
  { connectionId },
  { connectionId, repoId: 'R4' },
  { connectionId, deliveryStatus: 'held' as const },
  { connectionId, deliveryStatus: 'failed' as const },
  { errorCode: 'none', deliveryStatus: 'failed' as const },
])('a search for %j reads a limited part of the indexes', async (search) => {
  const { db } = database
  const documents = createDocuments(db)
  const older = `${idPrefixAt(new Date(since.getTime() + 60 * dayMs))}0000000000000000`
  for (const range of [{}, { before: older }, { after: '0'.repeat(26) }]) {
    const slow = await slowNodesOfList(() => documents.search(workspaceId, { ...search, ...range, perPage: 25 }))
    // A workspace has few destinations, and a search sorts at most 4,500 candidates of each.
    expect(slow.filter((node) => node !== 'Seq Scan destinations' && !isSort(node))).toEqual([])
  }
})

test.each(failureFields.shape.status.options)('deliveries that are %s are grouped through indexes', async (status) => {
  const failures = createFailures(database.db)
  for (const minAgeSeconds of [undefined, 900]) {
    const slow = await slowNodesOfList(() => failures.list(workspaceId, { status, minAgeSeconds, ...page }))
    // A workspace has few destinations, and so few groups.
    expect(slow.filter((node) => !isSort(node))).toEqual([])
  }
})

test('failures of a minimum age are counted without the numbers of all days before it', async () => {
  const { db } = database
  await db.raw(
    `insert into counters (workspace_id, kind, period, since, repo_id, destination_id, status, detail, count)
    select 'AGED', 'failures', period, start, '', 'D' || n, 'failed', 'timeout', case period when 'all' then 1000 else 1 end
    from generate_series(1, 20) as n
    cross join lateral (
      select 'all' as period, '-infinity'::timestamptz as start
      union all
      select 'day', generate_series(date_trunc('day', now(), 'UTC') - interval '999 days', date_trunc('day', now(), 'UTC'), interval '1 day')
    ) as counted`,
  )
  await db.raw('vacuum analyze counters')
  const list = () => createFailures(db).list('AGED', { status: 'failed', minAgeSeconds: 3_600, ...page })
  expect((await list()).items).toHaveLength(20)
  expect(await pagesReadBy(list)).toBeLessThan(300)
})

test('the audit log is read through an index for every combination of conditions', async () => {
  const before = `${idPrefixAt(new Date(since.getTime() + 60 * dayMs))}0000000000000000`
  const conditions = {
    eventPrefix: 'repository.',
    subjectType: 'Repository',
    subjectId: 'S21',
    userId: 'U3',
    actor: 'Key 3',
    before,
    ...dates,
  }
  const slowNodes: Record<string, string[]> = {}
  for (const filter of combinations(conditions)) {
    const found = await slowNodesOfList(() => createAuditLogs(database.db).list(workspaceId, { ...filter, perPage: 25 }))
    if (found.length > 0) slowNodes[JSON.stringify(filter)] = found
    // The oldest rows are of the first partition.
    const forwards = await slowNodesOfList(() => createAuditLogs(database.db).list(workspaceId, { ...filter, after: '0', perPage: 25 }))
    if (forwards.length > 0) slowNodes[`after: ${JSON.stringify(filter)}`] = forwards
  }
  expect(slowNodes).toEqual({})
})

test('the audit log of one event is read through an index, even if the event has never occurred', async () => {
  const auditLogs = createAuditLogs(database.db)
  expect(await slowNodesOfList(() => auditLogs.list(workspaceId, { event: 'rfc.call', perPage: 25 }))).toEqual([])
  await database.db('audit_logs').where({ event: 'rfc.call' }).delete()
  expect(await slowNodesOfList(() => auditLogs.list(workspaceId, { event: 'rfc.call', perPage: 25 }))).toEqual([])
})

test.each([{ repoId: 'R3' }, { destinationId: 'D1' }, { connectorType: 'sftp', repoId: 'R3' }])(
  'statistics with %j are read through indexes',
  async (filter) => {
    for (const hours of [24, 60 * 24]) {
      const range = { since, before: new Date(since.getTime() + hours * 3_600_000) }
      expect(
        await slowNodesOfList(() =>
          createStatistics(database.db, { RELAY_WORKSPACE_MAX_BYTES: 0 }).read(workspaceId, { ...range, ...filter }),
        ),
      ).toEqual([])
    }
  },
)

test('statistics and the look for changes do not read the numbers of each destination in each repository', async () => {
  const { db } = database
  await db.raw(
    `insert into counters (workspace_id, kind, period, since, repo_id, destination_id, status, detail, count)
    select
      'MANY', prefix || kind, 'hour', hour, case when prefix = 'destination_' then '' else 'R' || r end,
      case when prefix = 'all_' then '' else 'D' || d end, 'delivered', '', 1
    from (values ('', 30, 30), ('all_', 30, 1), ('destination_', 1, 30)) as counted (prefix, repositories, destinations)
    cross join (values ('deliveries'), ('attempts')) as summed (kind)
    cross join generate_series(1, repositories) as r
    cross join generate_series(1, destinations) as d
    cross join generate_series(date_trunc('hour', now()) - interval '23 hours', now(), interval '1 hour') as hour`,
  )
  await db.raw('vacuum analyze counters')
  const before = new Date()
  const range = { since: new Date(before.getTime() - dayMs), before }
  const { read } = createStatistics(db, { RELAY_WORKSPACE_MAX_BYTES: 0 })
  for (const filter of [{}, { destinationId: 'D1' }, { connectorType: 'sftp' }])
    expect(await pagesReadBy(() => read('MANY', { ...range, ...filter }))).toBeLessThan(300)
  expect(await pagesReadBy(() => createReadVersions(db, { read: () => ({ status: 'working' }) })(['MANY']))).toBeLessThan(100)
})

test('statistics add up counters without reading their rows', async () => {
  const { db } = database
  const range = { since, before: new Date(since.getTime() + dayMs) }
  const ofWorkspace = () => createStatistics(db, { RELAY_WORKSPACE_MAX_BYTES: 0 }).read(workspaceId, range)
  const ofDestinations = () => createDestinationStatistics(db).list(workspaceId, { ...range, ...page })
  for (const read of [ofWorkspace, ofDestinations]) expect(new Set(await scansOf('counters', read))).toEqual(new Set(['Index Only Scan']))
})

test('requests of which many meet each of two conditions, and none both, are looked for without reading their rows', async () => {
  const list = () => createCapturedRequests(database.db).list(workspaceId, { method: 'PUT', statusCode: 200, perPage: 25 })
  expect((await list()).items).toEqual([])
  expect(await scansOf(`captured_requests_${dayOf(startedAt).replaceAll('-', '')}`, list)).toEqual(['Index Only Scan'])
})

test.each([{}, { destinationId: 'D1' }])('statistics of each destination with %j are read through indexes', async (filter) => {
  for (const hours of [24, 60 * 24]) {
    const range = { since, before: new Date(since.getTime() + hours * 3_600_000) }
    const list = () => createDestinationStatistics(database.db).list(workspaceId, { ...range, ...page, ...filter })
    expect(await slowNodesOfList(list)).toEqual([])
  }
})

test.each([{}, { status: 'active' as const }, { status: 'inactive' as const }])(
  'repositories with %j are read through an index',
  async (filter) => {
    expect(await slowNodesOfList(() => createRepositories(database.db).list(workspaceId, { ...filter, ...page }))).toEqual([])
  },
)

test('connections with the number of what they hold, and the preview of one, are read through indexes', async () => {
  const connections = createConnections(database.db)
  expect(await slowNodesOfList(() => connections.list(workspaceId, null, page))).toEqual([])
  const { id } = await database.db('connections').where({ workspace_id: workspaceId }).first('id')
  expect(await slowNodesOfList(() => connections.find(workspaceId, id))).toEqual([])
  const ids = await database.db('repositories').where({ workspace_id: workspaceId }).limit(3).pluck<string[]>('id')
  expect(await slowNodesOfList(() => connections.preview(workspaceId, ids, {}))).toEqual([])
})

test('the keys that may sign a request are read through an index, and so are the repositories whose names begin alike', async () => {
  const { id } = await database.db('repositories').where({ repo_id: 'R77' }).first('id')
  expect(await slowNodesOfList(() => createCertificates(database.db).listKeys(id, 'CN=TST'))).toEqual([])
})

test('overdue deliveries are found, checked and counted through an index', async () => {
  const working = async () => ({ state: 'working' }) as const
  const end = async () => {}
  const workflows = {
    findDeliveryWorkflow: working,
    findBulkRetryWorkflow: working,
    terminateDelivery: end,
    terminateBulkRetry: end,
  }
  const config = testConfig()
  const reconcile = createReconcile(database.db, workflows, createBulkRetries(database.db), end, config)
  let checked = 0
  const run = async () => void (checked = (await reconcile({ dryRun: true })).checked)
  // This index holds the bulk retries that run, and nothing else.
  expect(await slowNodesOfList(run)).toEqual(['Index Scan bulk_retries: the whole index'])
  expect(checked).toBeGreaterThan(rowCount / 200)
  expect(await slowNodesOfList(() => countOverdue(database.db, config))).toEqual([])
})

test('what became of the deliveries of a bulk retry is counted through an index', async () => {
  const bulkRetries = createBulkRetries(database.db)
  const { bulkRetry } = await bulkRetries.start({ id: workspaceId, userSlug: 'acme', workspaceSlug: 'plans' }, 'retry', {}, systemActor)
  const { id } = bulkRetry
  expect(await slowNodesOfList(() => bulkRetries.find(workspaceId, id))).toEqual([])
  await database.db('bulk_retries').where({ id }).delete()
})

test('due messages are found without reading all that wait', async () => {
  const outcomes: string[] = []
  const send = async () => 'unavailable' as const
  expect(
    await pagesReadBy(async () => void outcomes.push(...(await createOutbox(database.db).sendDue({ ageMs: 0, limit: 10 }, send)))),
  ).toBeLessThan(60)
  expect(outcomes).toHaveLength(10)
})

test('documents to begin are found workspace by workspace, without reading all that wait', async () => {
  const toBegin = createToBegin(database.db)
  let found: WaitingDocument[] = []
  const find = async () => {
    const turns = (await createLook(database.db)()).queues.map((queue) => ({ ...queue, documents: 10 }))
    found = await toBegin.findOldest(turns, ['W1'])
  }
  // Of each document, five tables are read, two of them for its workspace and destination.
  expect(await pagesReadBy(find)).toBeLessThan(2_500)
  expect([...Map.groupBy(found, ({ workspaceId: id }) => id).values()].map(({ length }) => length)).toEqual(Array(10).fill(10))
})

test('the next deliveries in the line of a destination, and the lines, are found through an index', async () => {
  const { db } = database
  const { id } = await db('deliveries').where({ status: 'pending' }).first('destination_id as id')
  await db('destination_gates').insert({ destination_id: id }).onConflict().ignore()
  await db('destination_slots').insert({ destination_id: id, number: 1 }).onConflict().ignore()
  await db('deliveries').where({ destination_id: id, status: 'pending' }).update({ waiting: 'in_line', next_attempt_at: 'infinity' })
  let woken: OutboxMessage[] = []
  expect(await slowNodesOfList(() => db.transaction(async (trx) => void (woken = await callNext(trx, id, testConfig()))))).toEqual([])
  expect(woken).toHaveLength(1)
  expect(await pagesReadBy(() => listLines(db, testConfig()))).toBeLessThan(100)
  // Another test counts the messages.
  await createOutbox(db).remove(woken)
})

test.each([{}, { type: 'sftp' as const }, { type: 'drive' as const }])('destinations with %j are read through an index', async (filter) => {
  expect(await slowNodesOfList(() => destinationsOf(database.db).list(workspaceId, { ...filter, ...page }))).toEqual([])
})
