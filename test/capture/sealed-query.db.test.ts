import { up } from '../../migrations/20261122124100_seal_captured_sec_keys.ts'
import { newId } from '../../src/base/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createRoutes } from '../support/factories.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('the migration redacts every secKey that was captured before', async () => {
  const { db } = database
  const { workspaceId } = await createRoutes(db, [])
  await db.raw('alter table captured_requests drop column query_sealed')
  const queries = {
    'get&docId=D1&secKey=canary%3D&authId=secKey': 'get&docId=D1&secKey=[REDACTED]&authId=secKey',
    'SECKEY=canary': 'SECKEY=[REDACTED]',
    's%65c%4Be%79=canary&secKey=canary==': 's%65c%4Be%79=[REDACTED]&secKey=[REDACTED]',
    'get&docId=D1&xsecKey=a': 'get&docId=D1&xsecKey=a',
  }
  const rows = Object.keys(queries).map((query) => ({
    id: newId(),
    workspace_id: workspaceId,
    channel: 'receiver',
    http_method: 'GET',
    uri: '/',
    query_string: query,
    request_headers: '{}',
    source_ip: '::1',
    request_at: new Date(),
    status_code: 200,
    response_headers: '{}',
    duration_ms: 1,
    response_at: new Date(),
  }))
  await db('captured_requests').insert(rows)
  await up(db)
  const migrated = await db('captured_requests').whereIn(
    'id',
    rows.map(({ id }) => id),
  )
  const byId = new Map(migrated.map(({ id, query_string: query, query_sealed: sealed }) => [id, { query, sealed }]))
  expect(rows.map(({ id }) => byId.get(id))).toEqual(Object.values(queries).map((query) => ({ query, sealed: null })))
})
