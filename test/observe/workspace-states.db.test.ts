import { createReceive } from '../../src/archive/receive.ts'
import { idPrefixAt, newId } from '../../src/base/ids.ts'
import { lastRequestMetric } from '../../src/observe/statistics.ts'
import { byTrouble, createWorkspaceStates, type WorkspaceState } from '../../src/observe/workspace-states.ts'
import { foldAll } from '../support/counters.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { readingOf, statementsOf } from '../support/plans.ts'

const minuteMs = 60_000

/** Creates a database, and a function that receives a document for one destination in a workspace of its own. */
const createStates = async (variables: Record<string, string> = {}) => {
  const database = await createTestDatabase()
  const { db } = database
  return {
    db,
    states: createWorkspaceStates(db, testConfig(variables)),
    receive: async (ageMs: number, workspaceSettings = {}) => {
      const routes = await createRoutes(db, [{ name: 'a' }], { workspaceSettings })
      const received = await receivedDocument(routes, { data: 'hello' })
      await createReceive(db, testConfig())({ ...received, receivedAt: new Date(Date.now() - ageMs) })
      return routes
    },
    fail: async (workspaceId: string) => {
      await db('deliveries').where({ workspace_id: workspaceId }).update({ status: 'failed' })
      await db('documents').where({ workspace_id: workspaceId }).update({ status: 'failed' })
    },
    capture: (workspaceId: string, at: Date, errorCode: string | null = null) =>
      db('captured_requests').insert({
        id: newId(),
        workspace_id: workspaceId,
        channel: 'receiver',
        http_method: 'GET',
        uri: '/',
        query_string: '',
        repo_id: 'Z1',
        request_headers: '{}',
        source_ip: '127.0.0.1',
        request_at: at,
        status_code: 200,
        error_code: errorCode,
        response_headers: '{}',
        duration_ms: 1,
        response_at: at,
      }),
    [Symbol.asyncDispose]: database.drop,
  }
}

test('a workspace is listed with its figures, whether the counters are folded or not, and those with trouble come first', async () => {
  await using created = await createStates()
  const { db, states, receive, fail, capture } = created
  const healthy = await receive(1_000)
  const late = await receive(60 * minuteMs)
  const failed = await receive(minuteMs, { receiver_max_bytes: 1_000 })
  await fail(failed.workspaceId)
  const requestAt = new Date(Date.now() - minuteMs)
  await capture(healthy.workspaceId, requestAt)
  // The captured request of the other was removed long ago.
  const seconds = Math.floor(Date.now() / 1_000) - 100_000
  await db('aggregates').insert({
    metric: lastRequestMetric,
    labels: { workspace: `acme/${late.workspaceSlug}`, repo_id: 'Z1' },
    value: seconds,
  })
  for (const fold of [false, true]) {
    if (fold) await foldAll(db)
    expect(await states.list()).toEqual([
      expect.objectContaining({
        id: failed.workspaceId,
        attention: 1,
        open: 0,
        oldestOpenAt: null,
        lastRequestAt: null,
        storedBytes: 5,
        maxBytes: 1_000,
      }),
      expect.objectContaining({
        id: late.workspaceId,
        attention: 0,
        open: 1,
        oldestOpenAt: expect.any(Date),
        lastRequestAt: new Date(seconds * 1_000),
        maxBytes: testConfig().RELAY_WORKSPACE_MAX_BYTES,
      }),
      expect.objectContaining({
        id: healthy.workspaceId,
        userSlug: 'acme',
        workspaceSlug: healthy.workspaceSlug,
        attention: 0,
        open: 1,
        lastRequestAt: requestAt,
      }),
    ])
  }
  await db('documents').where({ workspace_id: failed.workspaceId }).update({ acknowledged_at: new Date() })
  expect((await states.list()).find(({ id }) => id === failed.workspaceId)).toMatchObject({ attention: 0 })
})

test('a workspace where a destination fails, a source is refused or deliveries are held says so, until it is over', async () => {
  await using created = await createStates()
  const { db, states, receive, capture } = created
  const routes = await receive(1_000)
  const { workspaceId } = routes
  const [quiet, failing] = [await receive(1_000), await receive(1_000)]
  const read = async (id = workspaceId) => {
    const listed = await states.list()
    return { ...listed.find((each) => each.id === id)!, place: listed.findIndex((each) => each.id === id) }
  }
  const gate = { destination_id: failing.destinations['a']! }
  await db('destination_gates')
    .insert({ ...gate, circuit: 'open' })
    .onConflict('destination_id')
    .merge()
  expect(await read(failing.workspaceId)).toMatchObject({ failing: 1, place: 0 })
  await db('destination_gates').where(gate).update({ circuit: 'closed', failures: 4 })
  expect(await read(failing.workspaceId)).toMatchObject({ failing: 0 })
  await db('destination_gates').where(gate).update({ failures: 5 })
  expect(await read(failing.workspaceId)).toMatchObject({ failing: 1 })

  const { repo_id: repoId } = await db('repositories').where({ id: routes.repositoryId }).first('repo_id')
  const refuse = async () => {
    await capture(workspaceId, new Date(), 'signature_missing')
    await db('captured_requests').where({ workspace_id: workspaceId }).update({ repo_id: repoId })
  }
  for (let count = 0; count < 4; count += 1) await refuse()
  expect(await read()).toMatchObject({ refusing: 0 })
  await refuse()
  expect(await read()).toMatchObject({ refusing: 1, failing: 0 })
  await db('repositories').where({ id: routes.repositoryId }).update({ status: 'inactive' })
  expect(await read()).toMatchObject({ refusing: 0 })

  await db('deliveries').where({ workspace_id: quiet.workspaceId }).update({ status: 'held' })
  expect(await read(quiet.workspaceId)).toMatchObject({ held: 1, open: 1, place: 1 })
})

test('only the workspaces that are asked for are listed', async () => {
  await using created = await createStates({ RELAY_WORKSPACE_MAX_BYTES: '700' })
  const { states, receive } = created
  const { workspaceSlug } = await receive(0, { receiver_max_bytes: 1_000 })
  await receive(0)
  expect(
    await states.list([
      { userSlug: 'acme', workspaceSlug },
      { userSlug: 'acme', workspaceSlug: 'gone' },
    ]),
  ).toEqual([expect.objectContaining({ workspaceSlug, maxBytes: 700 })])
  expect(await states.list([])).toEqual([])
  expect(await states.list()).toHaveLength(2)
})

test('workspaces are sorted by what is wrong, then by name', () => {
  const now = Date.now()
  const state = (workspaceSlug: string, change: Partial<WorkspaceState> = {}): WorkspaceState => ({
    id: workspaceSlug,
    userSlug: 'acme',
    workspaceSlug,
    attention: 0,
    failing: 0,
    refusing: 0,
    open: 0,
    held: 0,
    oldestOpenAt: null,
    lastRequestAt: null,
    storedBytes: 0,
    maxBytes: null,
    ...change,
  })
  const ago = (ms: number) => new Date(now - ms)
  const states = [
    state('b'),
    state('a', { oldestOpenAt: ago(1_000) }),
    state('full', { storedBytes: 95, maxBytes: 100 }),
    state('blocked', { maxBytes: 0 }),
    state('late', { oldestOpenAt: ago(10 * minuteMs) }),
    state('later', { oldestOpenAt: ago(20 * minuteMs) }),
    state('few', { attention: 1 }),
    state('refused', { refusing: 1 }),
    state('failing', { failing: 1, oldestOpenAt: ago(1_000) }),
    state('held', { held: 3 }),
    state('many', { attention: 7 }),
    state('few-late', { attention: 1, oldestOpenAt: ago(10 * minuteMs) }),
  ]
  const order = ['many', 'few-late', 'few', 'failing', 'refused', 'later', 'late', 'blocked', 'full', 'held', 'a', 'b']
  expect(byTrouble(states, now).map(({ workspaceSlug }) => workspaceSlug)).toEqual(order)
  expect(byTrouble(states.toReversed(), now).map(({ workspaceSlug }) => workspaceSlug)).toEqual(order)
})

test.each([20, 1_000])('what is read of %i workspaces grows with neither their documents nor their requests', async (workspaces) => {
  await using created = await createStates()
  const { db, states } = created
  const ids = `select 'W' || n as id, n from generate_series(1, ${workspaces}) as n`
  await db.raw(`insert into workspaces (id, user_slug, workspace_slug) select id, 'acme', lower(id) from (${ids}) as ids`)
  await db.raw(`insert into repositories (id, workspace_id, repo_id, name) select id, id, 'Z1', 'A' from (${ids}) as ids`)
  await db.raw(
    `insert into destinations (id, workspace_id, name, connector_type, config, credentials_sealed)
    select id || 'D' || d, id, 'A', 'webhook', '{}', '' from (${ids}) as ids, generate_series(0, 1) as d`,
  )
  await db.raw(`insert into workspace_storage (workspace_id, shard, bytes) select id, 0, 5 from (${ids}) as ids`)
  const addDocuments = async (prefix: string, each: number) => {
    await db.raw(
      `with rows as (select id as workspace_id, :prefix || id || 'N' || d as id, d from (${ids}) as ids, generate_series(1, :each) as d), inserted as (
        insert into documents (
          id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at, request_id)
        select id, workspace_id, workspace_id, 'Z1', id, 'data', 'a/b', 5, case when d % 2 = 0 then 'failed' else 'pending' end, now(), now(), id from rows
      )
      insert into deliveries (document_id, destination_id, workspace_id, connection_id, status, path)
      select id, workspace_id || 'D' || d / 2 % 2, workspace_id, 'C', case when d % 2 = 0 then 'failed' else 'pending' end, 'a' from rows`,
      { prefix, each },
    )
    await db.raw(
      `insert into captured_requests (
        id, workspace_id, channel, http_method, uri, query_string, repo_id, request_headers, source_ip, request_at, status_code, response_headers,
        duration_ms, response_at)
      select :time || :prefix || lpad(n::text, 6, '0') || lpad(d::text, 6, '0'), id, 'receiver', 'PUT', '/', '', 'Z1', '{}', '::1', now(), 201, '{}', 1, now()
      from (${ids}) as ids, generate_series(1, :each) as d`,
      { prefix, each, time: idPrefixAt(new Date()) },
    )
    await foldAll(db)
    for (const table of [
      'workspaces',
      'destinations',
      'documents',
      'deliveries',
      'captured_requests',
      'counters',
      'counter_deltas',
      'workspace_storage',
    ])
      await db.raw('vacuum analyze ??', [table])
  }
  const pagesRead = async (): Promise<number> => {
    const statements = await statementsOf(db, async () => expect(await states.list()).toHaveLength(workspaces))
    expect(statements).toHaveLength(1)
    return (await readingOf(db, statements[0]!)).pages
  }
  await addDocuments('A', 4)
  expect(await pagesRead()).toBeLessThan(100 * workspaces)
  await addDocuments('B', 20_000 / workspaces)
  expect(await pagesRead()).toBeLessThan(100 * workspaces)
})
