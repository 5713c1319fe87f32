import { Client } from 'pg'
import { createCapturedRequests, type RequestFilter } from '../../src/db/captured-requests.ts'
import { idPrefixAt } from '../../src/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring } from '../support/factories.ts'

const rowCount = 100_000
// the oldest ones: without an index, all others are read before them
const rareCount = 30
const perPage = 25

let database: TestDatabase
let workspaceId: string
let startOfDay: number

beforeAll(async () => {
  database = await createTestDatabase()
  ;({ workspaceId } = await createWiring(database.db, []))
  startOfDay = Math.floor(Date.now() / 86_400_000) * 86_400_000
  // ten a second
  const ids = Array.from(
    { length: rowCount },
    (_, index) => `${idPrefixAt(new Date(startOfDay + index * 100))}${String(index).padStart(16, '0')}`,
  )
  await database.db.raw(
    `
    insert into captured_requests (
      id, workspace_id, channel, http_method, uri, query_string, repo_id, doc_id, request_headers, source_ip, request_at, status_code,
      response_headers, duration_ms, response_at)
    select
      id, :workspaceId, case when is_rare then 'bridge' else 'receiver' end, case when is_rare then 'DELETE' else 'PUT' end, '/', '',
      case when is_rare then 'RARE' else 'Z1' end, case when is_rare then 'RARE' else 'D' || number end, '{"accept": "*"}', '::1', now(),
      case when is_rare then 503 when number % 10 = 0 then 404 else 201 end, '{}', 3, now()
    from (select id, number, number <= :rareCount as is_rare from unnest(:ids::text[]) with ordinality as one (id, number)) as made
    `,
    { workspaceId, ids, rareCount },
  )
  await database.db.raw('analyze captured_requests')
})
afterAll(() => database.drop())

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** What PostgreSQL does for one page, as it says itself. */
const explain = async (filter: RequestFilter & { before?: string }) => {
  const seen: { sql: string; bindings: unknown[] }[] = []
  const note = (statement: (typeof seen)[number]) => seen.push(statement)
  database.db.on('query', note)
  const { items } = await createCapturedRequests(database.db).list(workspaceId, { ...filter, perPage })
  database.db.removeListener('query', note)
  const client = new Client({ connectionString: database.url })
  await client.connect()
  try {
    const { rows } = await client.query(`explain (analyze, format json) ${seen[0]!.sql}`, seen[0]!.bindings)
    const nodes = nodesOf(rows[0]['QUERY PLAN'][0].Plan as Plan)
    const read = nodes.map((node) => node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)))
    return { items: items.length, mostRows: Math.max(...read) }
  } finally {
    await client.end()
  }
}

describe('a page of the list among 100,000 captured requests', () => {
  it.each<[string, () => RequestFilter & { before?: string }, number]>([
    ['all', () => ({}), perPage],
    ['all, deep within', () => ({ before: idPrefixAt(new Date(startOfDay + 2_000_000)) }), perPage],
    ['a rare channel', () => ({ channel: 'bridge' }), perPage],
    ['a rare status', () => ({ statusCode: 503 }), perPage],
    ['a rare class of status', () => ({ statusClass: 5 }), perPage],
    ['no status at all', () => ({ statusClass: 3 }), 0],
    ['a rare method', () => ({ method: 'DELETE' }), perPage],
    ['a rare repository', () => ({ repoId: 'RARE' }), perPage],
    ['one docId', () => ({ docId: 'D777' }), 1],
    ['a rare status in a busy repository', () => ({ repoId: 'Z1', statusCode: 503 }), 0],
    ['a second of the day', () => ({ dateFrom: new Date(startOfDay + 5_000_000), dateTo: new Date(startOfDay + 5_001_000) }), 11],
    ['what is frequent in the first minutes', () => ({ dateTo: new Date(startOfDay + 60_000), statusCode: 404 }), perPage],
  ])('is found without reading many others: %s', async (_, filterOf, count) => {
    const { items, mostRows } = await explain(filterOf())
    expect(items).toBe(count)
    expect(mostRows).toBeLessThanOrEqual(1_000)
  })
})
