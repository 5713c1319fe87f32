import { createBulkRetries } from '../../src/db/bulk-retries.ts'
import { createOutbox, type OutboxMessage } from '../../src/db/outbox.ts'
import { newId } from '../../src/ids.ts'
import { testConfig } from '../support/factories.ts'
import { objstore, startScene, wire } from './api.ts'
import { insertDocument, type DocumentRow } from './documents-in.ts'

let launched: OutboxMessage[] = []
const { database, acme, other, stop } = await startScene({ temporal: { launch: (messages) => void launched.push(...messages) } })
const wired = await wire(acme, 'A1')
const secondDestinationId: string = (await acme.call('POST', '/destinations', objstore('Second'))).json.data.id
afterAll(stop)

beforeEach(async () => {
  launched = []
  for (const table of ['outbox', 'deliveries', 'documents', 'bulk_retries', 'audit_logs']) await database.db(table).delete()
})

const insert = (more: Partial<DocumentRow> & { second?: 'failed' | 'delivered' } = {}) => {
  const { second, ...row } = more
  const { connectionId } = wired
  return insertDocument(database.db, {
    workspaceId: acme.id,
    repositoryId: wired.repositoryId,
    repoId: 'A1',
    status: 'failed',
    deliveries: [
      { ...wired, status: 'failed' },
      ...(second ? [{ destinationId: secondDestinationId, connectionId, status: second } as const] : []),
    ],
    ...row,
  })
}

const retryAll = (body: object = {}, options?: { key: string }) => acme.call('POST', '/documents/retry', body, options)
const dryRun = async (filter: object) => {
  const { status, json } = await retryAll({ dry_run: true, ...filter })
  expect({ status, id: json.data.id, of: json.data.attributes.status }).toEqual({ status: 200, id: null, of: 'dry_run' })
  return [json.data.attributes.matched_documents, json.data.attributes.matched_deliveries]
}
const shown = async (id: string) => (await acme.call('GET', `/bulk-retries/${id}`)).json.data.attributes
const bulkRetries = () => createBulkRetries(database.db, testConfig())
const page = (id: string, limit = 100) => bulkRetries().retryPage(id, limit, async () => {})
const begun = async (filter: object = {}) => (await retryAll(filter)).json.data.id as string
const retryingOf = async () => {
  const rows = await database
    .db('deliveries')
    .where({ status: 'retrying' })
    .orderBy('document_id')
    .select<{ document_id: string }[]>('document_id')
  return rows.map((row) => row.document_id)
}

describe('a dry run', () => {
  test('counts the documents and deliveries that would be retried, and changes nothing', async () => {
    await insert({ second: 'failed' })
    await insert({ second: 'delivered' })
    await insert({ status: 'delivered', deliveries: [{ ...wired, status: 'delivered' }] })
    expect(await dryRun({})).toEqual([2, 3])
    expect(await retryingOf()).toEqual([])
    expect(launched).toEqual([])
    expect(await database.db('bulk_retries')).toEqual([])
  })

  test('goes by repository, destination and time of receipt', async () => {
    await insert({ second: 'failed', receivedAt: new Date('2026-11-01T10:00:00Z') })
    await insert({ repoId: 'B1', receivedAt: new Date('2026-11-02T10:00:00Z') })
    expect(await dryRun({ repo_id: 'A1' })).toEqual([1, 2])
    expect(await dryRun({ destination_id: secondDestinationId })).toEqual([1, 1])
    expect(await dryRun({ destination_id: wired.destinationId })).toEqual([2, 2])
    expect(await dryRun({ date_from: '2026-11-02' })).toEqual([1, 1])
    expect(await dryRun({ date_to: '2026-11-01' })).toEqual([1, 2])
    expect(await dryRun({ repo_id: 'A1', date_from: '2026-11-02' })).toEqual([0, 0])
  })

  test('sees nothing of another workspace', async () => {
    await insert()
    const { json } = await other.call('POST', '/documents/retry', { dry_run: true })
    expect(json.data.attributes.matched_documents).toBe(0)
  })
})

describe('a bulk retry', () => {
  test('is begun by a message to Temporal that is committed with it, and can be looked at', async () => {
    await insert({ second: 'failed' })
    const { status, json } = await retryAll({ repo_id: 'A1', date_from: '2026-01-01' })
    expect(status).toBe(202)
    const { id } = json.data
    expect(launched).toEqual([{ kind: 'bulk-retry', bulkRetryId: id, workspace: 'acme/prod' }])
    expect(await createOutbox(database.db).findDue(0, 10)).toEqual(launched)
    expect(await shown(id)).toEqual({
      status: 'running',
      filter: { repo_id: 'A1', date_from: '2026-01-01T00:00:00.000Z' },
      matched_documents: 1,
      matched_deliveries: 2,
      retried_documents: 0,
      retried_deliveries: 0,
      created_at: expect.any(String),
      ended_at: null,
    })
  })

  test('retries page by page, each document once, until nothing is left', async () => {
    const ids = [await insert({ second: 'failed' }), await insert(), await insert()]
    const id = await begun()
    expect(await page(id, 2)).toMatchObject({ status: 'running', retriedDocuments: 2, retriedDeliveries: 3 })
    expect(await page(id, 2)).toMatchObject({ status: 'completed', retriedDocuments: 3, retriedDeliveries: 4 })
    expect(await page(id, 2)).toMatchObject({ status: 'completed', retriedDocuments: 3, retriedDeliveries: 4 })
    expect(await shown(id)).toMatchObject({ status: 'completed', retried_documents: 3, ended_at: expect.any(String) })
    expect(new Set(await retryingOf())).toEqual(new Set(ids))
    expect(await database.db('outbox').where('key', 'like', 'document/%').select('key')).toHaveLength(4)
  })

  test('whose page runs twice at the same time, counts once', async () => {
    for (let made = 0; made < 10; made += 1) await insert()
    const id = await begun()
    await Promise.all([page(id), page(id), page(id)])
    expect(await shown(id)).toMatchObject({ status: 'completed', retried_documents: 10, retried_deliveries: 10 })
    expect(await database.db('audit_logs').where({ event: 'document.retried' })).toHaveLength(10)
  })

  test('is named by the audit entry of each document it has retried, on behalf of who asked for it', async () => {
    const documentId = await insert()
    const id = await begun()
    await page(id)
    expect(await database.db('audit_logs').where({ event: 'document.retried' })).toEqual([
      expect.objectContaining({
        subject_id: documentId,
        actor_type: 'api_key',
        metadata: { destination_ids: [wired.destinationId], bulk_retry_id: id },
      }),
    ])
  })

  test('keeps to its filter, and to what was there when it began', async () => {
    const documentId = await insert({ second: 'failed' })
    const id = await begun({ destination_id: secondDestinationId })
    await insert({ second: 'failed' })
    await page(id)
    const rows = await database.db('deliveries').where({ status: 'retrying' })
    expect(rows).toEqual([expect.objectContaining({ document_id: documentId, destination_id: secondDestinationId })])
  })

  test('goes by the dates of its filter', async () => {
    await insert({ receivedAt: new Date('2026-11-01T10:00:00Z') })
    const later = await insert({ receivedAt: new Date('2026-11-02T10:00:00Z') })
    await page(await begun({ date_from: '2026-11-02' }))
    expect(await retryingOf()).toEqual([later])
  })

  test('that is cancelled stops before its next document, and stays cancelled', async () => {
    await insert()
    await insert()
    const id = await begun()
    await page(id, 1)
    const { status, json } = await acme.call('POST', `/bulk-retries/${id}/cancel`)
    expect({ status, of: json.data.attributes.status }).toEqual({ status: 200, of: 'cancelled' })
    expect(await page(id)).toMatchObject({ status: 'cancelled', retriedDocuments: 1 })
    expect(await retryingOf()).toHaveLength(1)
    expect((await acme.call('POST', `/bulk-retries/${id}/cancel`)).status).toBe(409)
  })

  test('needs a member, known keys, and a workspace of its own', async () => {
    expect((await retryAll({}, { key: acme.keys.viewer })).status).toBe(403)
    expect((await retryAll({}, { key: acme.keys.member })).status).toBe(202)
    expect((await retryAll({ colour: 'red' })).status).toBe(400)
    expect((await retryAll({ status: 'delivered' })).status).toBe(422)
    expect((await retryAll({ dry_run: 'yes' })).status).toBe(400)
    expect((await retryAll({ destination_id: newId() })).json.error.details).toMatchObject([{ path: 'destination_id' }])
    const id = await begun()
    expect((await other.call('GET', `/bulk-retries/${id}`)).status).toBe(404)
    expect((await other.call('POST', `/bulk-retries/${id}/cancel`)).status).toBe(404)
    expect((await acme.call('GET', `/bulk-retries/${newId()}`)).status).toBe(404)
  })
})
