import { decodeTime } from 'ulid'
import { createReceive } from '../../src/archive/receive.ts'
import { ensurePartitions, listPartitions } from '../../src/db/partitions.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { captureAt, createRoutes, receivedDocument, testConfig } from '../support/factories.ts'

let database: TestDatabase
const config = testConfig({ RETENTION_ATTEMPTS_DAYS: '100' })
const dropLockTimeoutMs = 200
const dayMs = 86_400_000
const start = new Date('2026-01-01T00:00:00Z')
const dayAt = (days: number) => new Date(start.getTime() + days * dayMs)
const neverAborted = new AbortController().signal

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const retention = () => createRetention(database.db, config, { batchRows: 3, dropLockTimeoutMs })

const workspaceWith = async (settings: object) =>
  (await createRoutes(database.db, [{ name: 'archive' }], { workspaceSettings: settings })).workspaceId

/** Inserts one row into each table, as of this day. */
const writeOn = async (workspaceId: string, day: number) => {
  const { db } = database
  const moment = dayAt(day)
  await ensurePartitions(db, moment)
  const id = await captureAt(db, workspaceId, moment)
  await db('audit_logs').insert({
    id,
    workspace_id: workspaceId,
    event: 'rfc.call',
    subject_type: 'RfcCall',
    subject_id: id,
    description: 'x',
    actor_type: 'system',
    created_at: moment,
  })
  await db('delivery_attempts').insert({
    id,
    workspace_id: workspaceId,
    document_id: id,
    destination_id: id,
    number: 1,
    started_at: moment,
    duration_ms: 1,
    outcome: 'delivered',
  })
}

const tables = { captured_bodies: 'request_id', captured_requests: 'id', audit_logs: 'id', delivery_attempts: 'id' } as const

/** Returns the age in days of the oldest row of each table. */
const oldestAges = async (workspaceId: string, day: number) => {
  const ages: Record<string, number | null> = {}
  for (const [table, id] of Object.entries(tables)) {
    const [first] = await database.db(table).where({ workspace_id: workspaceId }).orderBy(id).limit(1).pluck(id)
    ages[table] = first === undefined ? null : day - (decodeTime(first) - start.getTime()) / dayMs
  }
  return ages
}

const partitionsOf = async (table: string) => (await listPartitions(database.db, table)).map(({ name }) => name)

const clear = async () => {
  for (const table of Object.keys(tables)) await database.db(table).delete()
  // The workspaces of other tests keep what they have.
  await database.db('workspaces').update({ settings: '{}' })
}

describe('retention', () => {
  beforeEach(clear)

  test('keeps rows for as long as the settings of their workspace say, and no longer', async () => {
    const usual = await workspaceWith({})
    const brief = await workspaceWith({ captured_requests_days: 10, captured_bodies_days: 1 })
    for (let day = 0; day <= 130; day += 5) {
      await ensurePartitions(database.db, dayAt(day))
      await writeOn(usual, day)
      await writeOn(brief, day)
      await retention().removeExpired(dayAt(day), neverAborted)
    }

    expect(await oldestAges(usual, 130)).toEqual({ captured_bodies: 5, captured_requests: 30, audit_logs: 130, delivery_attempts: 100 })
    expect(await oldestAges(brief, 130)).toEqual({ captured_bodies: 0, captured_requests: 10, audit_logs: 130, delivery_attempts: 100 })
    // Partitions without needed rows were dropped.
    expect(await partitionsOf('captured_bodies')).toMatchObject({ 0: 'captured_bodies_20260504' })
    expect(await partitionsOf('captured_requests')).toMatchObject({ 0: 'captured_requests_20260411' })
    expect(await partitionsOf('delivery_attempts')).toMatchObject({ 0: 'delivery_attempts_202601' })
  })

  test('returns the number of removed rows over several batches', async () => {
    const workspace = await workspaceWith({ captured_requests_days: 1, captured_bodies_days: 1 })
    for (let count = 0; count < 7; count += 1) await writeOn(workspace, 132)
    const { rows, contents } = await retention().removeExpired(dayAt(134), neverAborted)
    expect(rows).toEqual({ captured_bodies: 7, captured_requests: 7, audit_logs: 0, delivery_attempts: 0 })
    expect(contents).toBe(0)
  })

  test('does not wait for readers of a partition, and does not delay writers for longer than its lock timeout', async () => {
    const workspace = await workspaceWith({})
    for (const day of [130, 140]) await ensurePartitions(database.db, dayAt(day))
    const name = 'captured_bodies_20260511'
    const reader = await database.db.transaction()
    await reader.raw('select count(*) from ??', [name])
    const timeouts: unknown[] = []
    const note = ({ sql, bindings }: { sql: string; bindings?: unknown[] }) => {
      if (sql.includes(`set_config('lock_timeout'`)) timeouts.push(...bindings!)
    }
    database.db.on('query', note)
    const ended = new AbortController()
    const removing = retention()
      .removeExpired(dayAt(140), neverAborted)
      .finally(() => ended.abort())
    // A write that waits for the lock of retention waits until retention no longer waits for the reader, which does not end.
    let writes = 0
    for (; !ended.signal.aborted; writes += 1) await writeOn(workspace, 140)
    const { partitions } = await removing
    expect(partitions).not.toContain(name)
    expect(reader.isCompleted()).toBe(false)
    expect(writes).toBeGreaterThan(0)
    database.db.removeListener('query', note)
    expect(new Set(timeouts)).toEqual(new Set([`${dropLockTimeoutMs}ms`]))
    await reader.commit()
    expect((await retention().removeExpired(dayAt(140), neverAborted)).partitions).toContain(name)
  })

  test('keeps audit log entries for audit_days, and those of the compliance tier indefinitely, with their partitions', async () => {
    const usual = await workspaceWith({})
    const raised = await workspaceWith({ audit_days: 1_000 })
    // The setting is from the time before the workspace was in the compliance tier.
    const compliant = await workspaceWith({ audit_days: 400 })
    await database.db('workspaces').where({ id: compliant }).update({ compliance_tier: true })
    for (const workspace of [usual, raised, compliant]) await writeOn(workspace, 143)
    const keptAfter = async (days: number) => {
      const { partitions } = await retention().removeExpired(dayAt(143 + days), neverAborted)
      expect(partitions.filter((name) => name.startsWith('audit_logs'))).toEqual([])
      const kept = new Set(await database.db('audit_logs').pluck('workspace_id'))
      return { usual: kept.has(usual), raised: kept.has(raised), compliant: kept.has(compliant) }
    }
    expect(await keptAfter(365)).toEqual({ usual: true, raised: true, compliant: true })
    expect(await keptAfter(366)).toEqual({ usual: false, raised: true, compliant: true })
    expect(await keptAfter(1_001)).toEqual({ usual: false, raised: false, compliant: true })
    expect(await partitionsOf('audit_logs')).toContain('audit_logs_202605')
    expect(await oldestAges(compliant, 2_000)).toMatchObject({ audit_logs: 1_857, captured_requests: null })
  })

  test('keeps the content of a document that has reached no destination, however old it is', async () => {
    const { db } = database
    const settings = { filter: { comp_ids: ['data'] } }
    const routes = await createRoutes(db, [{ name: 'archive' }], { settings, workspaceSettings: { content_days: 30 } })
    const document = await receivedDocument(routes, { note: 'passed over by the filter' })
    await createReceive(db, config)({ ...document, receivedAt: dayAt(0) })
    await retention().removeExpired(dayAt(31), neverAborted)
    expect(await db('documents').where({ workspace_id: routes.workspaceId })).toMatchObject([
      { status: 'discarded', content_id: expect.any(String) },
    ])
  })

  test('removes the content of delivered documents only', async () => {
    const { db } = database
    const routes = await createRoutes(db, [{ name: 'archive' }], { workspaceSettings: { content_days: 30 } })
    const receive = async (docId: string) => {
      const document = await receivedDocument(routes, { data: docId })
      const received = await createReceive(db, config)({ ...document, docId, receivedAt: dayAt(0) })
      return received.messages[0]!.input.documentId
    }
    const [delivered, failed, recent] = [await receive('D1'), await receive('D2'), await receive('D3')]
    await db('deliveries').whereIn('document_id', [delivered, recent]).update({ status: 'delivered' })
    await db('deliveries').where({ document_id: failed }).update({ status: 'failed' })
    await db('documents')
      .where({ id: recent })
      .update({ received_at: dayAt(10) })
    const contents = await db('documents').whereIn('id', [delivered, failed, recent]).select('id', 'content_id')

    expect((await retention().removeExpired(dayAt(31), neverAborted)).contents).toBe(1)

    const remaining = await db('documents').whereIn('id', [delivered, failed, recent]).whereNotNull('content_id').pluck('id')
    expect(new Set(remaining)).toEqual(new Set([failed, recent]))
    const { content_id } = contents.find(({ id }) => id === delivered)
    expect(await db('contents').where({ id: content_id }).first()).toMatchObject({ owned_at: null })
  })

  test('removes closed incidents with their notices by age, and keeps open ones', async () => {
    const { db } = database
    const routes = await createRoutes(db, [{ name: 'operators' }])
    const workspace = { workspace_id: routes.workspaceId }
    const rule = {
      name: 'All',
      events: ['source.silent'],
      destination_id: routes.destinations['operators'],
      quiet_seconds: 0,
      silence_hours: 72,
    }
    await db('notifications').insert({ id: 'rule', ...workspace, ...rule })
    const incident = async (id: string, closedAt: Date | null) => {
      const seen = { opened_at: dayAt(0), last_seen_at: dayAt(0), closed_at: closedAt }
      await db('incidents').insert({ id, ...workspace, event: 'source.silent', subject: id, count: 1, details: '{}', ...seen })
      const notice = { notification_id: 'rule', incident_id: id, transition: 'opened', data: '{}', created_at: dayAt(0) }
      await db('notices').insert({ id, ...workspace, ...notice })
    }
    // More than a batch.
    for (const id of ['a', 'b', 'c', 'd']) await incident(id, dayAt(1))
    await incident('later', dayAt(20))
    await incident('open', null)
    const { incidents } = await retention().removeExpired(dayAt(2 + config.RETENTION_INCIDENTS_DAYS), neverAborted)
    expect(incidents).toBe(4)
    expect(await db('notices').where(workspace).orderBy('id').pluck('id')).toEqual(['later', 'open'])
  })

  test('stops between two batches when its signal is aborted', async () => {
    const stop = new AbortController()
    stop.abort(new Error('stopped'))
    await workspaceWith({})
    await expect(retention().removeExpired(dayAt(140), stop.signal)).rejects.toThrow('stopped')
  })
})
