import { idPrefixAt } from '../../src/base/ids.ts'
import { createCaptureStore } from '../../src/capture/capture.ts'
import { createCapturedRequests, type RequestFilter } from '../../src/capture/captured-requests.ts'
import type { Transaction } from '../../src/db/database.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes } from '../support/factories.ts'
import { nodesOf, planOf, statementsOf } from '../support/plans.ts'
import { share } from '../support/share.ts'

const rowCount = 100_000
// The oldest rows: without an index, all others are read first.
const rareCount = 30
const perPage = 25

const database = share(await createTestDatabase())
const { workspaceId, repositoryId } = await createRoutes(database.db, [])
// Yesterday: all of its requests have settled.
const startOfDay = (Math.floor(Date.now() / 86_400_000) - 1) * 86_400_000
await ensurePartitions(database.db, new Date(startOfDay))
// Ten requests per second.
const ids = Array.from(
  { length: rowCount },
  (_, index) => `${idPrefixAt(new Date(startOfDay + index * 100))}${String(index).padStart(16, '0')}`,
)
await database.db.raw(
  `
  insert into captured_requests (
    id, workspace_id, channel, http_method, uri, query_string, repo_id, doc_id, request_headers, source_ip, request_at, status_code,
    error_code, response_headers, duration_ms, response_at)
  select
    id, :workspaceId, case when is_rare then 'bridge' else 'receiver' end, case when is_rare then 'DELETE' else 'PUT' end, '/', '',
    case when is_rare then 'RARE' else 'Z1' end, case when is_rare then 'RARE' else 'D' || number end, '{"accept": "*"}', '::1', now(),
    case when is_rare then 503 when number % 10 = 0 then 404 else 201 end,
    case when is_rare then 'rare_code' when number % 10 = 0 then 'document_not_found' end, '{}', 3, now()
  from (select id, number, number <= :rareCount as is_rare from unnest(:ids::text[]) with ordinality as numbered (id, number)) as generated
  `,
  { workspaceId, ids, rareCount },
)
// Every tenth request has created a document.
await database.db.raw(
  `
  insert into documents (
    id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at, request_id)
  select
    'DOCUMENT-' || number, :workspaceId, :repositoryId, 'Z1', 'D' || number, 'data', 'text/plain', 1, 'discarded', now(), now(), id
  from unnest(:ids::text[]) with ordinality as numbered (id, number)
  where number % 10 = 7
  `,
  { workspaceId, repositoryId, ids },
)
await database.db.raw('analyze captured_requests, documents')

/** Runs `query` and explains its statement. @returns its result, and the most rows that a node of the plan reads */
const explain = async <Result>(query: () => Promise<Result>) => {
  let result!: Result
  const [statement] = await statementsOf(database.db, async () => (result = await query()))
  const nodes = nodesOf(await planOf(database.db, statement!, 'analyze'))
  const rowsRead = nodes.map((node) => node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)))
  return { result, mostRows: Math.max(...rowsRead) }
}

const list = (filter: RequestFilter & { before?: string; after?: string }) =>
  createCapturedRequests(database.db).list(workspaceId, { ...filter, perPage })

describe('a page of the list among 100,000 captured requests', () => {
  test.each<[string, () => RequestFilter & { before?: string; after?: string }, number]>([
    ['all', () => ({}), perPage],
    ['all, far from the newest', () => ({ before: idPrefixAt(new Date(startOfDay + 2_000_000)) }), perPage],
    ['all after an id, oldest first', () => ({ after: idPrefixAt(new Date(startOfDay + 2_000_000)) }), perPage],
    ['a frequent status after an id', () => ({ after: idPrefixAt(new Date(startOfDay + 2_000_000)), statusCode: 404 }), perPage],
    ['a rare status after an id', () => ({ after: idPrefixAt(new Date(startOfDay + 2_000_000)), statusCode: 503 }), 0],
    ['a rare channel', () => ({ channel: 'bridge' }), perPage],
    ['a rare status', () => ({ statusCode: 503 }), perPage],
    ['a rare error', () => ({ errorCode: 'rare_code' }), perPage],
    ['a rare class of status', () => ({ statusClass: 5 }), perPage],
    ['no status at all', () => ({ statusClass: 3 }), 0],
    ['a rare method', () => ({ method: 'DELETE' }), perPage],
    ['a rare repository', () => ({ repoId: 'RARE' }), perPage],
    ['one docId', () => ({ docId: 'D777' }), 1],
    ['one document', () => ({ documentId: 'DOCUMENT-777' }), 1],
    ['a rare status in a busy repository', () => ({ repoId: 'Z1', statusCode: 503 }), 0],
    ['a second of the day', () => ({ dateFrom: new Date(startOfDay + 5_000_000), dateTo: new Date(startOfDay + 5_001_000) }), 11],
    ['a frequent status in the first minute', () => ({ dateTo: new Date(startOfDay + 60_000), statusCode: 404 }), perPage],
  ])('is found by reading at most 1,000 rows: %s', async (_, filterOf, count) => {
    const { result, mostRows } = await explain(() => list(filterOf()))
    expect(result.items).toHaveLength(count)
    expect(mostRows).toBeLessThanOrEqual(1_000)
  })
})

test('the final times of a batch of requests are set by reading each of them once', async () => {
  const batch = ids.slice(50_000, 50_200)
  const responseAt = new Date(startOfDay)
  const { complete } = createCaptureStore(database.db)
  const { mostRows } = await explain(() => complete(batch.map((id) => ({ id, responseAt, durationMs: 77 }))))
  expect(mostRows).toBe(batch.length)
  const completed = await database.db('captured_requests').where({ duration_ms: 77, response_at: responseAt }).orderBy('id')
  expect(completed.map(({ id }) => id)).toEqual(batch)
})

test('the final times of a batch of requests need no entry of any index', async () => {
  const batch = ids.slice(60_000, 60_200).map((id) => ({ id, responseAt: new Date(startOfDay), durationMs: 78 }))
  // A connection also counts what earlier transactions have updated, until it has reported them.
  const readCounts = async (trx: Transaction): Promise<{ all: number; withoutEntries: number }> => {
    const { rows } = await trx.raw(
      `
      select pg_stat_get_xact_tuples_updated(day)::integer as all, pg_stat_get_xact_tuples_hot_updated(day)::integer as "withoutEntries"
      from (select tableoid as day from captured_requests where id = ?) as day
      `,
      [batch[0]!.id],
    )
    return rows[0]
  }
  const [before, after] = await database.db.transaction(async (trx) => {
    const earlier = await readCounts(trx)
    await createCaptureStore(trx).complete(batch)
    return [earlier, await readCounts(trx)]
  })
  expect(after.all - before.all).toBe(batch.length)
  expect(after.withoutEntries - before.withoutEntries).toBe(batch.length)
})
