import { decodeTime } from 'ulid'
import { ensurePartitions, listPartitions } from '../../src/db/partitions.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createRetention } from '../../src/db/retention.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { captureAt, createWiring, receiptOf, testConfig } from '../support/factories.ts'

let database: TestDatabase
const config = testConfig({ RETENTION_BATCH_SIZE: '3', RETENTION_LOCK_TIMEOUT_MS: '200', RETENTION_ATTEMPTS_DAYS: '100' })
const dayMs = 86_400_000
const start = new Date('2026-01-01T00:00:00Z')
const dayAt = (days: number) => new Date(start.getTime() + days * dayMs)
const never = new AbortController().signal

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const retention = () => createRetention(database.db, config)

const workspaceWith = async (settings: object) =>
  (await createWiring(database.db, [{ name: 'archive' }], { workspaceSettings: settings })).workspaceId

/** One row of each kind, as it was written on that day. */
const writeOn = async (workspaceId: string, day: number) => {
  const { db } = database
  const at = dayAt(day)
  const id = await captureAt(db, workspaceId, at)
  await db('audit_logs').insert({
    id,
    workspace_id: workspaceId,
    event: 'rfc.call',
    subject_type: 'RfcCall',
    subject_id: id,
    description: 'x',
    actor_type: 'system',
    created_at: at,
  })
  await db('delivery_attempts').insert({
    id,
    workspace_id: workspaceId,
    document_id: id,
    destination_id: id,
    number: 1,
    started_at: at,
    duration_ms: 1,
    outcome: 'delivered',
  })
}

const tables = { captured_bodies: 'request_id', captured_requests: 'id', audit_logs: 'id', delivery_attempts: 'id' } as const

/** How old the oldest row of each kind is, in days. */
const oldest = async (workspaceId: string, day: number) => {
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
}

describe('retention', () => {
  beforeEach(clear)

  it('keeps everything as long as its workspace says, over months, and nothing longer', async () => {
    const usual = await workspaceWith({})
    const brief = await workspaceWith({ captured_requests_days: 10, captured_bodies_days: 1, audit_days: 30 })
    for (let day = 0; day <= 130; day += 5) {
      await ensurePartitions(database.db, dayAt(day))
      await writeOn(usual, day)
      await writeOn(brief, day)
      await retention().removeExpired(dayAt(day), never)
    }

    expect(await oldest(usual, 130)).toEqual({ captured_bodies: 5, captured_requests: 30, audit_logs: 130, delivery_attempts: 100 })
    expect(await oldest(brief, 130)).toEqual({ captured_bodies: 0, captured_requests: 10, audit_logs: 30, delivery_attempts: 100 })
    // what nobody needs any more went as a whole
    expect(await partitionsOf('captured_bodies')).toMatchObject({ 0: 'captured_bodies_20260504' })
    expect(await partitionsOf('captured_requests')).toMatchObject({ 0: 'captured_requests_20260411' })
    expect(await partitionsOf('delivery_attempts')).toMatchObject({ 0: 'delivery_attempts_202601' })
  })

  it('tells what it removed, in more than one batch', async () => {
    const workspace = await workspaceWith({ captured_requests_days: 1, captured_bodies_days: 1 })
    for (let count = 0; count < 7; count += 1) await writeOn(workspace, 132)
    const { rows, contents } = await retention().removeExpired(dayAt(134), never)
    expect(rows).toEqual({ captured_bodies: 7, captured_requests: 7, audit_logs: 0, delivery_attempts: 0 })
    expect(contents).toBe(0)
  })

  it('waits for nobody who reads a table that it could drop, and holds up writers for no longer than its own wait', async () => {
    const workspace = await workspaceWith({})
    await database.db('workspaces').update({ settings: '{}' })
    for (const day of [130, 140]) await ensurePartitions(database.db, dayAt(day))
    const name = 'captured_bodies_20260511'
    const reader = await database.db.transaction()
    await reader.raw('select count(*) from ??', [name])
    const begun = Date.now()
    const ended = new AbortController()
    const removing = retention()
      .removeExpired(dayAt(140), never)
      .finally(() => ended.abort())
    const heldUpMs: number[] = []
    while (!ended.signal.aborted) {
      const askedAt = Date.now()
      await writeOn(workspace, 140)
      heldUpMs.push(Date.now() - askedAt)
    }
    const { partitions } = await removing
    expect(partitions).not.toContain(name)
    expect(Date.now() - begun).toBeLessThan(10_000)
    // RETENTION_LOCK_TIMEOUT_MS, and what it takes to write
    expect(Math.max(...heldUpMs)).toBeLessThan(2_000)
    await reader.commit()
    expect((await retention().removeExpired(dayAt(140), never)).partitions).toContain(name)
  })

  it('keeps the audit log of a compliance-tier workspace, and with it the partitions', async () => {
    const compliant = await workspaceWith({ audit_days: null })
    await writeOn(compliant, 143)
    const { partitions, rows } = await retention().removeExpired(dayAt(2_000), never)
    expect(rows.audit_logs).toBe(0)
    expect(partitions.filter((name) => name.startsWith('audit_logs'))).toEqual([])
    expect(await partitionsOf('audit_logs')).toContain('audit_logs_202605')
    expect(await oldest(compliant, 2_000)).toMatchObject({ audit_logs: 1_857, captured_requests: null })
  })

  it('lets the bytes of delivered documents go, and of no others', async () => {
    const { db } = database
    const wiring = await createWiring(db, [{ name: 'archive' }], { workspaceSettings: { content_days: 30 } })
    const receive = async (docId: string) => {
      const receipt = await receiptOf(wiring, { data: docId })
      const received = await createReceipts(db, config).receive({ ...receipt, docId, receivedAt: dayAt(0) })
      return received.messages[0]!.documentId
    }
    const [delivered, failed, young] = [await receive('D1'), await receive('D2'), await receive('D3')]
    await db('deliveries').whereIn('document_id', [delivered, young]).update({ status: 'delivered' })
    await db('deliveries').where({ document_id: failed }).update({ status: 'failed' })
    await db('documents')
      .where({ id: young })
      .update({ received_at: dayAt(10) })
    const contents = await db('documents').whereIn('id', [delivered, failed, young]).select('id', 'content_id')

    expect((await retention().removeExpired(dayAt(31), never)).contents).toBe(1)

    const left = await db('documents').whereIn('id', [delivered, failed, young]).whereNotNull('content_id').pluck('id')
    expect(new Set(left)).toEqual(new Set([failed, young]))
    const { content_id } = contents.find(({ id }) => id === delivered)
    expect(await db('contents').where({ id: content_id }).first()).toMatchObject({ owned_at: null })
  })

  it('ends between two batches when it is told to', async () => {
    const stop = new AbortController()
    stop.abort(new Error('stopped'))
    await workspaceWith({})
    await expect(retention().removeExpired(dayAt(140), stop.signal)).rejects.toThrow('stopped')
  })
})
