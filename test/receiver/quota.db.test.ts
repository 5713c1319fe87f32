import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { Registry, type Metric } from 'prom-client'
import { newId } from '../../src/base/ids.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { sweepOrphans } from '../../src/maintenance/sweep-orphans.ts'
import { createStorageMetrics } from '../../src/observe/metrics.ts'
import { testConfig } from '../support/factories.ts'
import { startScene, type SceneWorkspace } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { part } from '../support/source-system.ts'

const installationMaxBytes = 3_000_000

const scene = share(await startScene({ variables: { RELAY_WORKSPACE_MAX_BYTES: String(installationMaxBytes) } }))

const set = ({ workspaceId }: SceneWorkspace, settings: object) =>
  scene
    .db('workspaces')
    .where({ id: workspaceId })
    .update({ settings: JSON.stringify(settings) })

const sumOf = async (table: string, column: string, { workspaceId }: SceneWorkspace) =>
  Number((await scene.db(table).where({ workspace_id: workspaceId }).sum(column))[0]!['sum'])
const countedBytes = (workspace: SceneWorkspace) => sumOf('workspace_storage', 'bytes', workspace)

const refusedByQuota = { status: 507, headers: { 'x-errordescription': expect.stringMatching(/^quota_exceeded: /), 'retry-after': '3600' } }
const refusedByRate = { status: 503, headers: { 'x-errordescription': expect.stringMatching(/^rate_limited: /) } }

describe('the stored bytes of a workspace', () => {
  const stores = () => createSegmentedStores(scene.db, { postgres: createPostgresStore(scene.db) })

  test('are counted by every command that stores some, and no longer once retention and the job remove-orphans have removed them', async () => {
    const workspace = await scene.workspace()
    const { source } = workspace
    await source.create('D1', 'small')
    await source.create('D2', randomBytes(600_000))
    await source.createParts('D3', [part('data', 'one'), part('note', randomBytes(300_000))])
    await source.update('D1', 'larger than before')
    await source.append('D2', 'more')
    await source.create('D2', 'refused')
    const expected = 5 + 600_000 + 3 + 300_000 + 18 + 4
    expect(await countedBytes(workspace)).toBe(expected)
    expect(await sumOf('contents', 'size_bytes', workspace)).toBe(expected)

    await scene
      .db('documents')
      .where({ workspace_id: workspace.workspaceId, doc_id: 'D2' })
      .update({ status: 'delivered', received_at: '2026-01-01' })
    await set(workspace, { content_days: 1 })
    const removeExpired = async () => {
      await createRetention(scene.db, testConfig()).removeExpired(new Date(), new AbortController().signal)
      await sweepOrphans(scene.db, stores(), new Date(Date.now() + 60_000))
    }
    // Captured bodies refer to the content.
    await removeExpired()
    expect(await countedBytes(workspace)).toBe(expected)
    await scene.db('contents').where({ workspace_id: workspace.workspaceId }).update({ captured_on: '2026-01-01' })
    await removeExpired()
    expect(await countedBytes(workspace)).toBe(expected - 600_004)
    expect(await sumOf('contents', 'size_bytes', workspace)).toBe(expected - 600_004)
  })
})

test('stored bytes are counted at the commit, so that the lock of the count is the last one of a transaction', async () => {
  const workspace = await scene.workspace()
  await scene.db.transaction(async (trx) => {
    for (const bytes of [3, 4]) {
      await trx('contents').insert({ id: newId(), workspace_id: workspace.workspaceId, store: 'postgres', size_bytes: bytes })
    }
    expect(await trx('workspace_storage').where({ workspace_id: workspace.workspaceId })).toEqual([])
  })
  expect(await scene.db('workspace_storage').where({ workspace_id: workspace.workspaceId })).toMatchObject([{ bytes: 7 }])
})

describe('a workspace with a quota', () => {
  test('refuses every command that would store more, before it stores anything', async () => {
    const workspace = await scene.workspace()
    const { source } = workspace
    await set(workspace, { receiver_max_bytes: 1_000 })
    expect((await source.create('Q1', randomBytes(900))).status).toBe(201)
    const before = await workspace.countRows()
    const data = randomBytes(101)
    expect(await source.create('Q2', data)).toMatchObject(refusedByQuota)
    expect(await source.create('Q2', Readable.from([data]))).toMatchObject(refusedByQuota)
    expect(await source.createParts('Q2', [part('data', data)])).toMatchObject(refusedByQuota)
    expect(await source.update('Q1', data)).toMatchObject(refusedByQuota)
    expect(await source.append('Q1', data)).toMatchObject(refusedByQuota)
    expect(await workspace.countRows()).toEqual(before)

    expect((await source.create('Q3', randomBytes(100))).status).toBe(201)
    expect((await source.create('Q4', '')).status).toBe(201)
    expect((await source.get('Q1')).status).toBe(200)
    expect((await source.create('Q5', 'x')).headers['x-errordescription']).toBe(
      'quota_exceeded: the workspace stores 1000 bytes and may store 1000',
    )
  })

  test('cannot store more than the installation allows', async () => {
    const workspace = await scene.workspace()
    await set(workspace, { receiver_max_bytes: 2 * installationMaxBytes })
    expect(await workspace.source.create('Q1', Buffer.alloc(installationMaxBytes + 1))).toMatchObject(refusedByQuota)
    expect((await workspace.source.create('Q1', Buffer.alloc(installationMaxBytes))).status).toBe(201)
  })

  test('accepts documents that it does not keep', async () => {
    const workspace = await scene.workspace([])
    await set(workspace, { receiver_max_bytes: 0 })
    expect((await workspace.source.create('Q1', 'discarded')).status).toBe(201)
  })
})

describe('a workspace with a limit of requests', () => {
  test('refuses further requests of every command, and says when to repeat them', async () => {
    const [workspace, other] = [await scene.workspace(), await scene.workspace()]
    await set(workspace, { receiver_max_requests_per_minute: 1 })
    await set(other, { receiver_max_requests_per_minute: 1 })
    expect((await workspace.source.create('R1', 'x')).status).toBe(201)
    const refused = await workspace.source.get('R1')
    expect(refused).toMatchObject(refusedByRate)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect((await other.source.create('R1', 'x')).status).toBe(201)
  })

  test('counts the commands that nobody signs by themselves, so that they use up nothing of the source system', async () => {
    const workspace = await scene.workspace()
    await set(workspace, { receiver_max_requests_per_minute: 1 })
    expect((await workspace.source.call('serverInfo&pVersion=0047')).status).toBe(200)
    expect(await workspace.source.call('serverInfo&pVersion=0047')).toMatchObject(refusedByRate)
    expect(await workspace.source.call('getCert&pVersion=0047&contRep=Z1')).toMatchObject(refusedByRate)
    expect((await workspace.source.create('R1', 'x')).status).toBe(201)
  })

  test('does not count the requests of addresses that may not call it', async () => {
    const workspace = await scene.workspace()
    await set(workspace, { receiver_max_requests_per_minute: 1, receiver_allowed_cidrs: ['192.0.2.0/24'] })
    for (let request = 0; request < 3; request += 1) expect((await workspace.source.create('R1', 'x')).status).toBe(403)
    await set(workspace, { receiver_max_requests_per_minute: 1 })
    expect((await workspace.source.create('R1', 'x')).status).toBe(201)
  })
})

test('refusals are counted by code', async () => {
  const workspace = await scene.workspace()
  await set(workspace, { receiver_max_bytes: 0 })
  const registry = new Registry()
  for (const metric of scene.api.receiverMetrics) registry.registerMetric(metric)
  const count = async () =>
    Number(/^relay_receiver_refusals_total\{code="quota_exceeded"\} (\d+)$/m.exec(await registry.metrics())?.[1] ?? 0)
  const before = await count()
  await workspace.source.create('M1', 'x')
  expect(await count()).toBe(before + 1)
})

test('the metrics show the stored bytes, and how full the fullest workspace is', async () => {
  const workspace = await scene.workspace()
  await set(workspace, { receiver_max_bytes: 10 })
  await workspace.source.create('M1', '12345678')
  const read = async (metric: Metric | undefined) => (await metric!.get()).values[0]!.value
  const [stored, ratio] = createStorageMetrics(scene.db, testConfig({ RELAY_WORKSPACE_MAX_BYTES: '1000000000000' }))
  const [total] = await scene.db('contents').sum('size_bytes')
  expect(await read(stored)).toBe(Number(total!['sum']))
  await scene.db('workspaces').whereNot({ id: workspace.workspaceId }).update({ settings: '{}' })
  expect(await read(ratio)).toBe(0.8)
  const [, unlimited] = createStorageMetrics(scene.db, testConfig({ RELAY_WORKSPACE_MAX_BYTES: '0' }))
  await set(workspace, {})
  expect(await read(unlimited)).toBe(0)
})
