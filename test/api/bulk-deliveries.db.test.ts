import { deliverDocuments, describeDelivered, type DeliverOptions } from '../../src/cli/deliver.ts'
import type { OutboxMessage } from '../../src/db/outbox.ts'
import type { Start } from '../../src/db/starts.ts'
import { bulkPageOf } from '../support/bulk-page.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { dueStarts } from '../support/starts.ts'
import { insertDocument, type DocumentRow } from './insert-document.ts'
import { objstore, wire } from './objstore.ts'

const launched: (OutboxMessage | Start)[] = []
const { db, acme, other } = share(await startScene({ temporal: { launch: (messages) => void launched.push(...messages) } }))
const wired = await wire(acme, 'A1')

beforeEach(async () => {
  launched.length = 0
  for (const table of ['outbox', 'deliveries', 'documents', 'bulk_retries', 'audit_logs']) await db(table).delete()
})

const page = (id: string) => bulkPageOf(db)(id, 100, () => {})
const statusOf = async (id: string) => (await acme.attributesOf(`/documents/${id}`)).status as string

/** Inserts a document that was delivered to the bucket. */
const insert = (more: Partial<DocumentRow> = {}) =>
  insertDocument(db, {
    workspaceId: acme.id,
    repositoryId: wired.repositoryId,
    repoId: 'A1',
    status: 'delivered',
    deliveries: [{ ...wired, status: 'delivered' }],
    ...more,
  })

/** Connects the repository to another bucket. */
const connectLater = async (name: string, connection: object = {}) => {
  const destinationId = await acme.create('/destinations', objstore(name))
  await acme.connect([wired.repositoryId], [destinationId], connection)
  const deliver = async (body: object = {}): Promise<string> =>
    (await acme.change('POST', '/documents/deliver', { destination_id: destinationId, ...body })).id
  const planned = () => db('deliveries').where({ destination_id: destinationId }).orderBy('document_id')
  return { destinationId, deliver, planned }
}

describe('a destination that was connected later', () => {
  test('gets the documents that were never planned for it, each once', async () => {
    const ids = [await insert(), await insert({ deliveries: [], status: 'discarded', contentId: await ownedContent() })]
    await db('documents').where({ id: ids[1]! }).update({ is_unconnected: true })
    const { destinationId, deliver, planned } = await connectLater('Later')
    const id = await deliver()
    // Simulates a bulk retry that counted fewer.
    await db('bulk_retries').where({ id }).update({ matched_documents: 1 })
    expect(launched).toMatchObject([{ kind: 'startBulkRetry', input: { bulkRetryId: id } }])
    expect(await page(id)).toMatchObject({ action: 'deliver', status: 'completed', matchedDocuments: 2, retriedDocuments: 2 })
    expect(await planned()).toMatchObject(
      ids.map((document_id) => ({ document_id, status: 'pending', begin_as: 'delivery', bulk_retry_id: id, path: expect.any(String) })),
    )
    expect((await dueStarts(db)).map(({ kind }) => kind)).toEqual(['startDelivery', 'startDelivery'])
    expect(await Promise.all(ids.map(statusOf))).toEqual(['pending', 'pending'])
    expect(await db('documents').where({ is_unconnected: true })).toEqual([])

    await db('deliveries').where({ destination_id: destinationId }).update({ status: 'delivered' })
    expect(await Promise.all(ids.map(statusOf))).toEqual(['delivered', 'delivered'])
    const again = await deliver()
    expect(await page(again)).toMatchObject({ status: 'completed', matchedDocuments: 0, retriedDocuments: 0 })
    expect(await acme.attributesOf(`/bulk-retries/${id}`)).toMatchObject({ action: 'deliver', delivered_deliveries: 2 })
  })

  test('gets nothing that was replaced, is gone, belongs to another repository, or came after the start', async () => {
    const [replaced, erased] = [await insert(), await insert()]
    await db('documents').where({ id: replaced }).update({ superseded_at: new Date() })
    await db('documents').where({ id: erased }).update({ content_id: null })
    const { repositoryId } = await wire(acme, 'B1')
    await insert({ repositoryId, repoId: 'B1' })
    const { deliver, planned } = await connectLater('Nothing')
    const id = await deliver()
    await insert()
    expect(await page(id)).toMatchObject({ status: 'completed', matchedDocuments: 0, retriedDocuments: 0 })
    expect(await planned()).toEqual([])
  })

  test('gets only what its filter selects, and what the connection selects', async () => {
    const [fetched, appended, sent] = [await insert(), await insert(), await insert()]
    await db('documents').whereIn('id', [fetched, appended]).update({ origin: 'upstream' })
    await db('contents')
      .where({ id: db('documents').select('content_id').where({ id: appended }) })
      .update({ appends: 1 })
    const note = await insert({ compId: 'note' })
    const early = await insert({ receivedAt: new Date('2026-01-01T10:00:00Z') })
    const { deliver, planned } = await connectLater('Selected', { settings: { filter: { comp_ids: ['data'] } } })
    const counted = await acme.change('POST', '/documents/deliver', { destination_id: wired.destinationId, dry_run: true })
    expect(counted).toMatchObject({ id: null, attributes: { action: 'deliver', status: 'dry_run', matched_documents: 0 } })
    const id = await deliver({ origin: 'source', repo_id: 'A1', date_from: '2026-01-02' })
    expect(await page(id)).toMatchObject({ matchedDocuments: 3, retriedDocuments: 2, skippedDocuments: 1 })
    expect((await planned()).map(({ document_id: documentId }) => documentId)).toEqual([appended, sent])
    await page(await deliver())
    expect((await planned()).map(({ document_id: documentId }) => documentId)).toEqual([fetched, appended, sent, early].toSorted())
    expect(await statusOf(note)).toBe('delivered')
  })

  test('waits for the business data of a document as long as its enrichment does, also if its filter needs them', async () => {
    const waitsUntil = new Date(Date.now() + 3_600_000)
    const [enriched, ended] = [await insert(), await insert()]
    for (const document_id of [enriched, ended]) {
      const terms = { waits_until: waitsUntil, ends_at: new Date(Date.now() + 86_400_000) }
      const status = document_id === ended ? 'partial' : 'pending'
      await db('document_enrichments').insert({ document_id, workspace_id: acme.id, enrichment_id: 'E1', status, ...terms })
    }
    const any = await connectLater('Enriched')
    await page(await any.deliver())
    expect(await any.planned()).toMatchObject([
      { document_id: enriched, status: 'pending', begin_at: waitsUntil },
      { document_id: ended, status: 'pending' },
    ])
    expect((await dueStarts(db)).map(({ input }) => input.documentId)).toEqual([ended])
    const some = await connectLater('Filtered', { settings: { filter: { fields: { vendor: '17300' } } } })
    expect(await page(await some.deliver())).toMatchObject({ retriedDocuments: 1, skippedDocuments: 1 })
    expect(await some.planned()).toMatchObject([{ document_id: enriched, begin_at: waitsUntil }])
  })

  test('is reached once its connection is activated', async () => {
    const documentId = await insert()
    const { deliver, planned } = await connectLater('Held', { is_active: false })
    await page(await deliver())
    expect(await planned()).toMatchObject([{ document_id: documentId, status: 'held', begin_at: null, next_attempt_at: null }])
    expect(await dueStarts(db)).toEqual([])
  })

  test('is answered with a count of at most 10,000 documents', async () => {
    const id = await insert()
    const { deliver, destinationId } = await connectLater('Many')
    await db.raw(
      `
      insert into documents (
        id, workspace_id, repository_id, content_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at, request_id)
      select
        id || n, workspace_id, repository_id, content_id, repo_id, doc_id || n, comp_id, content_type, size_bytes, status, received_at, modified_at,
        request_id
      from documents, generate_series(1, 10000) as n
      where id = :id
      `,
      { id },
    )
    const counted = await acme.change('POST', '/documents/deliver', { destination_id: destinationId, dry_run: true })
    expect(counted.attributes).toMatchObject({ matched_documents: 10_000, matched_deliveries: 10_000 })
    expect(await acme.attributesOf(`/bulk-retries/${await deliver()}`)).toMatchObject({ matched_documents: 10_000 })
  })

  test('must be one of the workspace', async () => {
    const answer = await other.call('POST', '/documents/deliver', { destination_id: wired.destinationId })
    expect({ status: answer.status, details: answer.json.error.details }).toMatchObject({
      status: 422,
      details: [{ path: 'destination_id' }],
    })
    const { status } = await acme.call('POST', '/documents/deliver', { destination_id: wired.destinationId }, { key: acme.keys.viewer })
    expect(status).toBe(403)
  })
})

/** Inserts the content of a document that the filter of every connection passed over. */
const ownedContent = async (): Promise<string> => {
  const id = await insert()
  const { content_id: contentId } = await db('documents').where({ id }).first('content_id')
  await db('documents').where({ id }).delete()
  return contentId
}

describe('a destination that has lost documents', () => {
  const again = async (body: object = {}): Promise<string> =>
    (await acme.change('POST', '/documents/deliver', { destination_id: wired.destinationId, again: true, ...body })).id
  const deliveryOf = (documentId: string) => db('deliveries').where({ document_id: documentId }).first()

  test('gets again those that were delivered in a time, as another revision, and each request delivers them once more', async () => {
    const [tuesday, monday, failed, elsewhere] = [
      await insert(),
      await insert(),
      await insert({ deliveries: [{ ...wired, status: 'failed' }], status: 'failed' }),
      await insert({ deliveries: [] }),
    ]
    await db('documents').update({ received_at: new Date('2026-03-02T08:00:00Z') })
    await db('deliveries')
      .where({ status: 'delivered' })
      .update({ delivered_at: new Date('2026-03-03T10:00:00Z'), location: 'there' })
    await db('deliveries')
      .where({ document_id: monday })
      .update({ delivered_at: new Date('2026-03-02T10:00:00Z') })
    const body = { delivered_from: '2026-03-03', delivered_to: '2026-03-03' }
    const counted = await acme.change('POST', '/documents/deliver', {
      destination_id: wired.destinationId,
      again: true,
      dry_run: true,
      ...body,
    })
    expect(counted.attributes).toMatchObject({ status: 'dry_run', matched_documents: 1, filter: { again: true } })
    const id = await again(body)
    expect(await page(id)).toMatchObject({ action: 'deliver', matchedDocuments: 1, retriedDocuments: 1, retriedDeliveries: 1 })
    expect(await deliveryOf(tuesday)).toMatchObject({
      status: 'pending',
      again: 1,
      begin_as: 'document',
      bulk_retry_id: id,
      delivered_at: null,
    })
    expect(await db('documents').where({ id: tuesday }).first()).toMatchObject({ status: 'pending', revision: 2 })
    expect(await dueStarts(db)).toMatchObject([{ kind: 'startDocument', input: { documentId: tuesday, revision: 2 } }])
    for (const left of [monday, failed]) expect(await deliveryOf(left)).toMatchObject({ again: 0, bulk_retry_id: null })
    expect(await deliveryOf(elsewhere)).toBeUndefined()
    expect(await db('audit_logs').where({ subject_id: tuesday, event: 'document.delivered_again' })).toMatchObject([
      { metadata: { destination_ids: [wired.destinationId], bulk_retry_id: id } },
    ])
    // While it is under way, it is not delivered once more.
    expect(await page(await again(body))).toMatchObject({ matchedDocuments: 0 })
    await db('deliveries').where({ document_id: tuesday }).update({ status: 'delivered', begin_at: null, delivered_at: new Date() })
    expect(await page(await again())).toMatchObject({ matchedDocuments: 2, retriedDocuments: 2 })
    expect(await deliveryOf(tuesday)).toMatchObject({ again: 2 })
  })

  test('gets only selected documents, and none that was replaced, is gone, or belongs to another workspace', async () => {
    const [selected, other1, replaced, erased] = [await insert(), await insert(), await insert(), await insert()]
    await db('documents').where({ id: replaced }).update({ superseded_at: new Date() })
    await db('documents').where({ id: erased }).update({ content_id: null })
    const id = await again({ document_ids: [selected, replaced, erased] })
    expect(await page(id)).toMatchObject({ matchedDocuments: 1, retriedDocuments: 1 })
    expect(await acme.attributesOf(`/bulk-retries/${id}`)).toMatchObject({
      filter: { again: true, document_ids: [selected, replaced, erased], destination_id: wired.destinationId },
    })
    expect(await deliveryOf(other1)).toMatchObject({ status: 'delivered', again: 0 })
    const foreign = await other.call('POST', '/documents/deliver', { destination_id: wired.destinationId, again: true })
    expect(foreign).toMatchObject({ status: 422 })
  })

  test('gets them from the command line, too', async () => {
    const [documentId, later] = [await insert(), await insert()]
    await db('documents').update({ received_at: new Date('2026-03-01T10:00:00Z') })
    await db('deliveries')
      .where({ document_id: documentId })
      .update({ delivered_at: new Date('2026-03-03T10:00:00Z') })
    await db('deliveries')
      .where({ document_id: later })
      .update({ delivered_at: new Date('2026-03-04T00:00:00Z') })
    const { name } = await db('destinations').where({ id: wired.destinationId }).first()
    const progress: string[] = []
    const run = (more: Partial<DeliverOptions> = {}) =>
      deliverDocuments(
        db,
        async (message) => {
          if (message.kind === 'startBulkRetry') await page(message.input.bulkRetryId)
          await db('deliveries').where({ status: 'pending' }).update({ status: 'delivered' })
        },
        {
          workspace: acme.name,
          destination: name,
          documents: [],
          again: true,
          deliveredTo: '2026-03-03',
          onProgress: (line) => void progress.push(line),
          ...more,
        },
      )
    expect(describeDelivered(await run({ dryRun: true }))).toEqual(['1 document would be delivered.'])
    expect(describeDelivered(await run())).toEqual(['1 of 1 document planned.', 'Of 1 delivery, 1 arrived, 0 failed and 0 are open.'])
    expect(progress).toEqual(['1 of 1 documents'])
    expect(await deliveryOf(later)).toMatchObject({ again: 0 })
    await run({ documents: [later], deliveredTo: undefined, destination: wired.destinationId })
    expect(await deliveryOf(later)).toMatchObject({ again: 1 })
    const refusals: [Partial<DeliverOptions>, string][] = [
      [{ destination: 'Nowhere' }, 'The workspace acme/prod has no destination Nowhere.'],
      [{ documents: ['D1'] }, 'D1 is no id of a document.'],
      [{ deliveredTo: 'Tuesday' }, '--delivered-to must be a date or a time'],
      [{ again: false }, '--delivered-from and --delivered-to need --again.'],
      [{ again: false, deliveredTo: undefined }, 'Add --again to deliver those that it has.'],
      [{ deliveredTo: '2025-01-01' }, 'No document that matches has been delivered there.'],
    ]
    for (const [more, message] of refusals) await expect(run(more)).rejects.toThrow(message)
  })

  test.each([
    ['delivered_from', { delivered_from: '2026-03-03' }, 'needs again'],
    ['delivered_to', { delivered_to: '2026-03-03' }, 'needs again'],
    ['origin', { again: true, origin: 'source' }, 'cannot be combined with again'],
    ['document_ids', { again: true, document_ids: [] }, 'must not be empty'],
    ['document_ids.0', { again: true, document_ids: ['x'] }, 'must be the id of a document'],
  ])('refuses a %s that says nothing', async (path, body, message) => {
    const { status, json } = await acme.call('POST', '/documents/deliver', { destination_id: wired.destinationId, ...body })
    expect(status).toBe(422)
    expect(json.error.details).toMatchObject([{ path, message: expect.stringContaining(message) }])
  })
})
