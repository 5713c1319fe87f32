import { decodeTime } from 'ulid'
import { createReceive } from '../../src/archive/receive.ts'
import { createUpdate } from '../../src/archive/update.ts'
import { ensurePartitions, listPartitions } from '../../src/db/partitions.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { createTestDatabase } from '../support/database.ts'
import { captureAt, createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const config = testConfig({ RETENTION_ATTEMPTS_DAYS: '100' })
const dropLockTimeoutMs = 200
const dayMs = 86_400_000
const start = new Date('2026-01-01T00:00:00Z')
const dayAt = (days: number) => new Date(start.getTime() + days * dayMs)
const neverAborted = new AbortController().signal

const database = share(await createTestDatabase())

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

  /** Has documents received on day 0. */
  const agedTo0 = async (documents: { documentId: string }[]) => {
    const ids = documents.map(({ documentId }) => documentId)
    await database
      .db('documents')
      .whereIn('id', ids)
      .update({ received_at: dayAt(0) })
  }
  /** Receives a document on day 0 and gives its two deliveries these statuses. @returns its id */
  const receiveDocument = async (routes: Awaited<ReturnType<typeof createRoutes>>, statuses: [string, string], docId?: string) => {
    const { db } = database
    const document = await receivedDocument(routes, { data: 'hello' }, docId)
    const { documents } = await createReceive(db, config)({ ...document, receivedAt: dayAt(0) })
    await agedTo0(documents)
    const { documentId } = documents[0]!
    for (const [index, name] of ['a', 'b'].entries()) {
      const key = { document_id: documentId, destination_id: routes.destinations[name] }
      await db('deliveries').where(key).update({ status: statuses[index] })
    }
    return documentId
  }
  const acknowledge = (id: string) => database.db('documents').where({ id }).update({ acknowledged_at: database.db.fn.now() })

  test('removes the content of documents with which nothing is left to be done', async () => {
    const { db } = database
    const settings = { filter: { comp_ids: ['data'] } }
    const routes = await createRoutes(db, [{ name: 'a' }, { name: 'b' }], { settings, workspaceSettings: { content_days: 30 } })
    const documents = {
      delivered: await receiveDocument(routes, ['delivered', 'delivered']),
      deliveredOnce: await receiveDocument(routes, ['delivered', 'cancelled']),
      acknowledged: await receiveDocument(routes, ['delivered', 'failed']),
      cancelled: await receiveDocument(routes, ['cancelled', 'cancelled']),
      failed: await receiveDocument(routes, ['delivered', 'failed']),
      retrying: await receiveDocument(routes, ['delivered', 'retrying']),
      held: await receiveDocument(routes, ['cancelled', 'held']),
      recent: await receiveDocument(routes, ['delivered', 'delivered']),
    }
    await acknowledge(documents.acknowledged)
    await db('documents')
      .where({ id: documents.recent })
      .update({ received_at: dayAt(10) })
    const passedOver = await receivedDocument(routes, { note: 'passed over by the filter' })
    await agedTo0((await createReceive(db, config)(passedOver)).documents)
    const contentId = await db('documents').where({ id: documents.delivered }).first('content_id')

    expect((await retention().removeExpired(dayAt(31), neverAborted)).contents).toBeGreaterThanOrEqual(5)

    const kept = await db('documents').where({ workspace_id: routes.workspaceId }).whereNotNull('content_id').pluck('id')
    const { failed, retrying, held, recent } = documents
    expect(new Set(kept)).toEqual(new Set([failed, retrying, held, recent]))
    expect(await db('contents').where({ id: contentId.content_id }).first()).toMatchObject({ owned_at: null })
    expect((await retention().removeExpired(dayAt(31), neverAborted)).contents).toBe(0)
  })

  test('judges a document once in a run, however many stay, and does not look at those of an upstream that were delivered nowhere', async () => {
    const { db } = database
    const routes = await createRoutes(db, [{ name: 'a' }, { name: 'b' }], { workspaceSettings: { content_days: 30 } })
    const kept: string[] = []
    for (let count = 0; count < 7; count += 1) kept.push(await receiveDocument(routes, ['delivered', 'failed']))
    const copies: string[] = []
    for (let count = 0; count < 7; count += 1) copies.push(await receiveDocument(routes, ['delivered', 'delivered']))
    await db('deliveries').whereIn('document_id', copies).delete()
    await db('documents').whereIn('id', copies).update({ origin: 'upstream' })
    const removed = await receiveDocument(routes, ['delivered', 'delivered'])
    const judged: number[] = []
    const note = (response: { rows?: { judged?: number }[] }) => {
      const [row] = response.rows ?? []
      if (row?.judged !== undefined) judged.push(row.judged)
    }
    db.on('query-response', note)
    expect((await retention().removeExpired(dayAt(31), neverAborted)).contents).toBe(1)
    db.removeListener('query-response', note)
    // Batches of three: the seven that stay, and the one behind them.
    expect(judged).toEqual([3, 3, 2])
    const withContent = await db('documents')
      .where({ workspace_id: routes.workspaceId })
      .whereNotNull('content_id')
      .orderBy('id')
      .pluck('id')
    expect(withContent).toEqual([...kept, ...copies].toSorted())
    expect(withContent).not.toContain(removed)
  })

  test('removes such documents without content, if the installation says so', async () => {
    const { db } = database
    const routes = await createRoutes(db, [{ name: 'a' }, { name: 'b' }], { workspaceSettings: { content_days: 30 } })
    const removing = createRetention(db, testConfig({ RETENTION_DOCUMENTS_DAYS: '60' }), { batchRows: 3, dropLockTimeoutMs })
    await receiveDocument(routes, ['delivered', 'delivered'], 'D1')
    await receiveDocument(routes, ['delivered', 'cancelled'])
    const acknowledged = await receiveDocument(routes, ['delivered', 'failed'])
    await acknowledge(acknowledged)
    const failed = await receiveDocument(routes, ['delivered', 'failed'])
    // An older version of D2 is still held: when it is released, it must find the newer one.
    const held = await receiveDocument(routes, ['delivered', 'held'], 'D2')
    const update = { ...(await receivedDocument(routes, { data: 'newer' }, 'D2')), receivedAt: dayAt(0), whole: true }
    const updated = await createUpdate(db, config)(update)
    await agedTo0(updated.documents)
    const newer = updated.documents[0]!.documentId
    await db('deliveries').where({ document_id: newer }).update({ status: 'delivered' })

    const rowsOf = (table: string, column: string) => db(table).where({ workspace_id: routes.workspaceId }).orderBy(column).pluck(column)
    await retention().removeExpired(dayAt(400), neverAborted)
    expect(await rowsOf('documents', 'id')).toHaveLength(6)
    await removing.removeExpired(dayAt(60), neverAborted)
    expect(await rowsOf('documents', 'id')).toHaveLength(6)
    const { documents } = await removing.removeExpired(dayAt(61), neverAborted)
    expect(documents).toBeGreaterThanOrEqual(3)

    const left = [failed, held, newer].toSorted()
    expect(await rowsOf('documents', 'id')).toEqual(left)
    expect(new Set(await rowsOf('deliveries', 'document_id'))).toEqual(new Set(left))
    expect(new Set(await rowsOf('document_keys', 'document_id'))).toEqual(new Set(left))
    expect(await rowsOf('archive_documents', 'id')).toHaveLength(2)
    expect(await db('repository_counts').where({ repository_id: routes.repositoryId }).sum({ documents: 'documents' })).toEqual([
      { documents: '3' },
    ])
    // The docId is free again.
    await expect(createReceive(db, config)(await receivedDocument(routes, { data: 'again' }, 'D1'))).resolves.toMatchObject({
      created: true,
    })
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
