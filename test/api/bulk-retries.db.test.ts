import { newId } from '../../src/base/ids.ts'
import type { OutboxMessage } from '../../src/db/outbox.ts'
import type { Start } from '../../src/db/starts.ts'
import { bulkPageOf } from '../support/bulk-page.ts'
import { dueMessages } from '../support/outbox.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { dueStarts } from '../support/starts.ts'
import { insertDocument, type DocumentRow } from './insert-document.ts'
import { objstore, wire } from './objstore.ts'

const launched: (OutboxMessage | Start)[] = []
const { database, acme, other } = share(await startScene({ temporal: { launch: (messages) => void launched.push(...messages) } }))
const wired = await wire(acme, 'A1')
const secondDestinationId: string = (await acme.call('POST', '/destinations', objstore('Second'))).json.data.id

beforeEach(async () => {
  launched.length = 0
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
  expect({ status, id: json.data.id, state: json.data.attributes.status }).toEqual({ status: 200, id: null, state: 'dry_run' })
  return [json.data.attributes.matched_documents, json.data.attributes.matched_deliveries]
}
const attributesOf = async (id: string) => (await acme.call('GET', `/bulk-retries/${id}`)).json.data.attributes
const page = (id: string, limit = 100) => bulkPageOf(database.db)(id, limit, () => {})
const begin = async (filter: object = {}) => (await retryAll(filter)).json.data.id as string
const retryingOf = async () => {
  const rows = await database
    .db('deliveries')
    .where({ status: 'retrying' })
    .orderBy('document_id')
    .select<{ document_id: string }[]>('document_id')
  return rows.map((row) => row.document_id)
}

describe('a bulk retry', () => {
  test('takes cancelled deliveries of failed documents, and leaves out acknowledged documents and those without content', async () => {
    const cancelled = await insert({ deliveries: [{ ...wired, status: 'cancelled' }] })
    const acknowledged = await insert()
    await acme.call('POST', `/documents/${acknowledged}/acknowledge`)
    const erased = await insert()
    await database.db('documents').where({ id: erased }).update({ content_id: null })
    expect(await dryRun({})).toEqual([1, 1])
    await page(await begin())
    expect(await retryingOf()).toEqual([cancelled])
  })
})

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

  test('filters by repository, destination and time of receipt', async () => {
    await insert({ second: 'failed', receivedAt: new Date('2026-11-01T10:00:00Z') })
    await insert({ repoId: 'B1', receivedAt: new Date('2026-11-02T10:00:00Z') })
    expect(await dryRun({ repo_id: 'A1' })).toEqual([1, 2])
    expect(await dryRun({ destination_id: secondDestinationId })).toEqual([1, 1])
    expect(await dryRun({ destination_id: wired.destinationId })).toEqual([2, 2])
    expect(await dryRun({ error_code: 'http_404' })).toEqual([0, 0])
    expect(await dryRun({ error_code: 'none' })).toEqual([2, 3])
    expect(await dryRun({ date_from: '2026-11-02' })).toEqual([1, 1])
    expect(await dryRun({ date_to: '2026-11-01' })).toEqual([1, 2])
    expect(await dryRun({ repo_id: 'A1', date_from: '2026-11-02' })).toEqual([0, 0])
  })

  test('does not count documents of another workspace', async () => {
    await insert()
    const { json } = await other.call('POST', '/documents/retry', { dry_run: true })
    expect(json.data.attributes.matched_documents).toBe(0)
  })
})

describe('a bulk retry', () => {
  test('is committed together with the message that starts its workflow, and can be retrieved', async () => {
    await insert({ second: 'failed' })
    const { status, json } = await retryAll({ repo_id: 'A1', date_from: '2026-01-01' })
    expect(status).toBe(202)
    const { id } = json.data
    expect(launched).toEqual([{ kind: 'startBulkRetry', input: { bulkRetryId: id, workspace: 'acme/prod' } }])
    expect(await dueMessages(database.db)).toEqual(launched)
    expect(await attributesOf(id)).toEqual({
      action: 'retry',
      skipped_documents: 0,
      status: 'running',
      filter: { repo_id: 'A1', date_from: '2026-01-01T00:00:00.000Z' },
      matched_documents: 1,
      matched_deliveries: 2,
      retried_documents: 0,
      retried_deliveries: 0,
      delivered_deliveries: 0,
      failed_deliveries: 0,
      open_deliveries: 0,
      created_at: expect.any(String),
      ended_at: null,
    })
  })

  test('with an error code retries the deliveries that have this code, and no other ones of the same document', async () => {
    const id = await insert({ second: 'failed' })
    await insert()
    await database.db('deliveries').where({ document_id: id, destination_id: secondDestinationId }).update({ last_error_code: 'http_404' })
    expect(await dryRun({ error_code: 'http_404' })).toEqual([1, 1])
    const bulkRetry = await begin({ error_code: 'http_404' })
    expect(await attributesOf(bulkRetry)).toMatchObject({ filter: { error_code: 'http_404' } })
    expect(await page(bulkRetry)).toMatchObject({ status: 'completed', retriedDeliveries: 1 })
    expect(await database.db('deliveries').where({ status: 'retrying' })).toMatchObject([
      { document_id: id, destination_id: secondDestinationId },
    ])
  })

  test('retries page by page, each document once, until no document is left', async () => {
    const ids = [await insert({ second: 'failed' }), await insert(), await insert()]
    const id = await begin()
    expect(await page(id, 2)).toMatchObject({ status: 'running', retriedDocuments: 2, retriedDeliveries: 3 })
    expect(await page(id, 2)).toMatchObject({ status: 'completed', retriedDocuments: 3, retriedDeliveries: 4 })
    expect(await page(id, 2)).toMatchObject({ status: 'completed', retriedDocuments: 3, retriedDeliveries: 4 })
    expect(await attributesOf(id)).toMatchObject({ status: 'completed', retried_documents: 3, ended_at: expect.any(String) })
    expect(new Set(await retryingOf())).toEqual(new Set(ids))
    expect((await dueStarts(database.db)).map(({ kind }) => kind)).toEqual(Array(4).fill('retryDelivery'))
  })

  test('tells how many of its deliveries have arrived, failed again and are open', async () => {
    const taken = [await insert(), await insert({ second: 'failed' }), await insert()]
    const first = await begin()
    await page(first)
    const outcomeOf = async (id: string) => {
      const {
        retried_deliveries: retried,
        delivered_deliveries: delivered,
        failed_deliveries: failed,
        open_deliveries: open,
      } = await attributesOf(id)
      return { retried, delivered, failed, open }
    }
    expect(await outcomeOf(first)).toEqual({ retried: 4, delivered: 0, failed: 0, open: 4 })
    const { db } = database
    await db('deliveries').where({ document_id: taken[0] }).update({ status: 'delivered' })
    await db('deliveries').where({ document_id: taken[1], destination_id: secondDestinationId }).update({ status: 'failed' })
    expect(await outcomeOf(first)).toEqual({ retried: 4, delivered: 1, failed: 1, open: 2 })
    // What a later bulk retry takes counts there.
    await db('documents').where({ id: taken[1] }).update({ status: 'failed' })
    const second = await begin()
    await page(second)
    expect(await outcomeOf(second)).toEqual({ retried: 1, delivered: 0, failed: 0, open: 1 })
    expect(await outcomeOf(first)).toEqual({ retried: 4, delivered: 1, failed: 0, open: 2 })
  })

  test('counts each document once, even if a page runs concurrently', async () => {
    for (let count = 0; count < 10; count += 1) await insert()
    const id = await begin()
    await Promise.all([page(id), page(id), page(id)])
    expect(await attributesOf(id)).toMatchObject({ status: 'completed', retried_documents: 10, retried_deliveries: 10 })
    expect(await database.db('audit_logs').where({ event: 'document.retried' })).toHaveLength(10)
  })

  test('is named in the audit entry of each retried document, with the actor of the request', async () => {
    const documentId = await insert()
    const id = await begin()
    await page(id)
    expect(await database.db('audit_logs').where({ event: 'document.retried' })).toEqual([
      expect.objectContaining({
        subject_id: documentId,
        actor_type: 'api_key',
        metadata: { destination_ids: [wired.destinationId], bulk_retry_id: id, key_id: expect.any(String), key_name: 'admin key' },
      }),
    ])
  })

  test('retries only what matches its filter and existed when it began', async () => {
    const documentId = await insert({ second: 'failed' })
    const id = await begin({ destination_id: secondDestinationId })
    await insert({ second: 'failed' })
    await page(id)
    const rows = await database.db('deliveries').where({ status: 'retrying' })
    expect(rows).toEqual([expect.objectContaining({ document_id: documentId, destination_id: secondDestinationId })])
  })

  test('applies the dates of its filter', async () => {
    await insert({ receivedAt: new Date('2026-11-01T10:00:00Z') })
    const later = await insert({ receivedAt: new Date('2026-11-02T10:00:00Z') })
    await page(await begin({ date_from: '2026-11-02' }))
    expect(await retryingOf()).toEqual([later])
  })

  test('stops before its next document when it is cancelled, and stays cancelled', async () => {
    await insert()
    await insert()
    const id = await begin()
    await page(id, 1)
    const { status, json } = await acme.call('POST', `/bulk-retries/${id}/cancel`)
    expect({ status, state: json.data.attributes.status }).toEqual({ status: 200, state: 'cancelled' })
    expect(await page(id)).toMatchObject({ status: 'cancelled', retriedDocuments: 1 })
    expect(await retryingOf()).toHaveLength(1)
    expect((await acme.call('POST', `/bulk-retries/${id}/cancel`)).status).toBe(409)
  })

  test('is listed with the others of its workspace, newest first', async () => {
    await insert()
    const ids = [await begin({ repo_id: 'A1' }), await begin({ date_from: '2026-11-02' }), await begin()]
    await page(ids[2]!)
    await other.call('POST', '/documents/retry', {})
    const { status, json } = await acme.call('GET', '/bulk-retries?per_page=2', undefined, { key: acme.keys.viewer })
    expect({ status, meta: json.meta }).toEqual({ status: 200, meta: { current_page: 1, per_page: 2, total: 3 } })
    expect(json.data).toMatchObject([
      { id: ids[2], type: 'bulk_retry', attributes: { status: 'completed', filter: {}, retried_documents: 1 } },
      { id: ids[1], attributes: { status: 'running', filter: { date_from: '2026-11-02T00:00:00.000Z' } } },
    ])
    const last = await acme.call('GET', '/bulk-retries?per_page=2&page=2')
    expect(last.json.data).toMatchObject([{ id: ids[0], attributes: { filter: { repo_id: 'A1' } } }])
  })

  test('requires the level member, known attributes and the same workspace', async () => {
    expect((await retryAll({}, { key: acme.keys.viewer })).status).toBe(403)
    expect((await retryAll({}, { key: acme.keys.member })).status).toBe(202)
    expect((await retryAll({ colour: 'red' })).status).toBe(400)
    expect((await retryAll({ status: 'delivered' })).status).toBe(422)
    expect((await retryAll({ dry_run: 'yes' })).status).toBe(400)
    expect((await retryAll({ destination_id: newId() })).json.error.details).toMatchObject([{ path: 'destination_id' }])
    const id = await begin()
    expect((await other.call('GET', `/bulk-retries/${id}`)).status).toBe(404)
    expect((await other.call('POST', `/bulk-retries/${id}/cancel`)).status).toBe(404)
    expect((await acme.call('GET', `/bulk-retries/${newId()}`)).status).toBe(404)
  })
})
