import { createLateDataActivities } from '../../activities/late-data.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createLog } from '../../src/base/log.ts'
import { DeliveryError, type Connector, type DeliveredCopy } from '../../src/connectors/connector.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createInstallation } from '../../src/db/installation.ts'
import type { OutboxMessage } from '../../src/db/outbox.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { createLateData, updateCopies } from '../../src/delivery/late-data.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createActivityEnvironment, expectSame, runActivity } from '../support/activity-environment.ts'
import { createTestDatabase } from '../support/database.ts'
import { attemptActivities } from '../support/delivery-activities.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { share } from '../support/share.ts'

const { db } = share(await createTestDatabase())
const config = testConfig()
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS }), (each) => each.close()))
const target = share(await startHttpTarget())
const { find } = createConnectors()
const never = new AbortController().signal
const policy = { maxRetries: 2, ttlMs: 3_600_000, initialIntervalMs: 10_000, maxIntervalMs: 60_000 }

/** A kind that keeps documents with properties, and whose target does what a test wants. */
const keeper = (parts: Partial<Connector>): Connector => {
  const { updateMetadata: _, isMessage: __, ...webhook } = find('webhook')!
  return { ...webhook, properties: { nameIssue: () => undefined, clean: (value) => value }, ...parts }
}

/** Receives a document with an enrichment, and delivers it. */
const deliver = async (connector = find('webhook')!, properties: object = {}) => {
  const routes = await createRoutes(db, [{ name: 'archive', config: { url: `${target.origin}/in` } }], { settings: { properties } })
  const destinationId = routes.destinations['archive']!
  const { documents } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
  const { documentId } = documents[0]!
  await db('document_enrichments').insert({
    document_id: documentId,
    workspace_id: routes.workspaceId,
    enrichment_id: 'any',
    waits_until: new Date(),
    ends_at: new Date(),
  })
  const findConnector = () => connector
  const messages: OutboxMessage[] = []
  const sendAll = async (sent: OutboxMessage[]) => void messages.push(...sent)
  const { attemptDelivery } = attemptActivities({ db, config, outbound, findConnector, sendAll })
  const input = { documentId, destinationId, policy, round: 'first', attemptTimeoutMs: 60_000, workspace: 'acme/invoices' }
  const { update } = createLateData({
    db,
    findConnector,
    openCredentials: () => ({}),
    outbound,
    installation: createInstallation(db),
    log: createLog('silent'),
    config,
  })
  return {
    ...routes,
    documentId,
    messages,
    attempt: () => createActivityEnvironment().run(() => attemptDelivery(input)),
    /** Stores fields as an enrichment does. */
    find: async (fields: object) => {
      await db.transaction(async (trx) => {
        await trx('documents').select('id').where({ id: documentId }).forNoKeyUpdate()
        await trx('document_enrichments')
          .where({ document_id: documentId })
          .update({ fields: JSON.stringify(fields) })
        await sendAll(await updateCopies(trx, documentId, { findConnector }))
      })
    },
    /** Every retry is due. */
    bring: (attempt = 1, elapsedMs = 0) =>
      update(
        { documentId, destination: { id: destinationId, name: 'archive', connector: 'webhook' } },
        { attempt, elapsedMs, dueBy: 'infinity' },
        never,
      ),
    /** Runs the activity for the nth time. */
    run: (attempt: number) =>
      runActivity(attempt, () => {
        const document = { documentId, repoId: 'Z1', docId: 'any', compId: 'data', workspace: 'acme/invoices' }
        const destination = { id: destinationId, name: 'archive', connector: 'webhook' }
        return createLateDataActivities({ update }).updateCopy({ ...document, destination })
      }),
    state: async () => {
      const row = await db('delivery_metadata').where({ document_id: documentId }).first()
      return row && { status: row.status, error: row.error, hasDigest: row.digest !== null }
    },
  }
}

const current = { status: 'current', error: null, hasDigest: true }

test('data that is found while a delivery is under way is brought after it', async () => {
  const delivered = await deliver()
  target.answerWith((_, response) => {
    target.answerWith((__, next) => next.end())
    void delivered.find({ vendor: 'Acme' }).then(() => response.end())
  })
  expect(await delivered.attempt()).toEqual({ status: 'delivered' })
  expect(await delivered.state()).toMatchObject({ status: 'pending', error: null })
  expect(delivered.messages).toMatchObject([{ kind: 'startLateData', input: { documentId: delivered.documentId, compId: 'data' } }])
  expect(await delivered.bring()).toEqual({ status: 'updated' })
  expect(JSON.parse(target.arrivals.at(-1)!.body.toString())).toMatchObject({
    type: 'document.metadata',
    data: { fields: { vendor: 'Acme' } },
  })

  // The same values again are nothing new.
  const arrivals = target.arrivals.length
  await delivered.find({ vendor: 'Acme' })
  expect(await delivered.bring()).toEqual({ status: 'updated' })
  expect([delivered.messages.length, target.arrivals.length]).toEqual([1, arrivals])
})

test('a copy without properties, and one that was delivered with everything, lack nothing', async () => {
  const copies: DeliveredCopy[] = []
  const connector = keeper({ updateMetadata: async (copy) => void copies.push(copy) })
  const without = await deliver(connector)
  await without.attempt()
  await without.find({ vendor: 'Acme' })
  const other = await deliver(connector, { Vendor: '{meta.vendor}' })
  await other.find({ vendor: 'Acme' })
  await other.attempt()
  expect([without.messages, other.messages, copies]).toEqual([[], [], []])
  expect([await without.state(), await other.state()]).toEqual([{ ...current, hasDigest: false }, current])
  await other.find({ vendor: 'Other' })
  await other.bring()
  expect(copies).toMatchObject([{ properties: { Vendor: 'Other' }, location: expect.stringContaining('/data') }])
})

test('a document that was stored without its properties gets them later', async () => {
  let copies = 0
  const connector = keeper({
    deliver: async ({ path }) => ({ path, bytesSent: 5, propertiesError: 'there is no such column' }),
    updateMetadata: async () => void (copies += 1),
  })
  const delivered = await deliver(connector, { Source: '{repo_id}' })
  expect(await delivered.attempt()).toEqual({ status: 'delivered' })
  expect(delivered.messages).toHaveLength(1)
  await delivered.bring()
  expect([copies, await delivered.state()]).toEqual([1, { ...current, status: 'updated' }])
})

test('a failure is repeated for a day, unless no repetition can help', async () => {
  let failure: Error = new DeliveryError('timeout', 'the target did not answer', { retryAfterMs: 7_000 })
  const connector = keeper({ updateMetadata: () => Promise.reject(failure) })
  const delivered = await deliver(connector, { Vendor: '{meta.vendor}' })
  await delivered.attempt()
  await delivered.find({ vendor: 'Acme' })
  expect(await delivered.bring()).toMatchObject({ status: 'retrying', delayMs: 7_000, error: 'timeout: the target did not answer' })
  expect(await delivered.bring(2)).toMatchObject({ status: 'retrying', delayMs: 30_000 })
  expect(await delivered.bring(40)).toMatchObject({ status: 'retrying', delayMs: 3_600_000 })
  expect(await delivered.state()).toMatchObject({ status: 'pending', error: 'timeout: the target did not answer' })
  expect(await delivered.bring(40, 86_000_000)).toMatchObject({ status: 'failed' })
  expect(await delivered.state()).toMatchObject({ status: 'failed' })
  failure = new DeliveryError('copy_missing', 'the document was stored elsewhere')
  await delivered.find({ vendor: 'Other' })
  expect(await delivered.bring()).toEqual({ status: 'failed', error: 'copy_missing: the document was stored elsewhere' })
  failure = new TypeError('a defect')
  await delivered.find({ vendor: 'Third' })
  expect(await delivered.bring()).toMatchObject({ status: 'retrying', error: 'unexpected: a defect' })
  const [delivery] = await db('deliveries').where({ document_id: delivered.documentId })
  expect(delivery).toMatchObject({ status: 'delivered', attempts: 1 })
})

test("a failure of the relay's own database is no failed try of the target", async () => {
  let copies = 0
  const connector = keeper({ updateMetadata: async () => void (copies += 1) })
  const delivered = await deliver(connector, { Vendor: '{meta.vendor}' })
  await delivered.attempt()
  await delivered.find({ vendor: 'Acme' })
  // The target has the data, and the database refuses to say so, also at the last try.
  await db.raw(`alter table delivery_metadata add constraint refused check (status <> 'updated') not valid`)
  try {
    await expect(delivered.bring()).rejects.toThrow(/refused/)
    await expect(delivered.bring(40, 86_000_000)).rejects.toThrow(/refused/)
    expect(await delivered.state()).toMatchObject({ status: 'pending', error: null })
  } finally {
    await db.raw('alter table delivery_metadata drop constraint refused')
  }
  expect(await delivered.bring()).toEqual({ status: 'updated' })
  expect([copies, await delivered.state()]).toEqual([3, { ...current, status: 'updated' }])
})

test('a copy that cannot be updated says so, and one of an erased document is left alone', async () => {
  const { updateMetadata: _, ...silent } = find('webhook')!
  const mail = await deliver(silent)
  await mail.attempt()
  await mail.find({ vendor: 'Acme' })
  expect([mail.messages, await mail.state()]).toMatchObject([[], { status: 'not_possible', error: null }])

  const erased = await deliver()
  await erased.attempt()
  await erased.find({ vendor: 'Acme' })
  await createErase(db)(erased.workspaceId, erased.documentId, systemActor)
  const arrivals = target.arrivals.length
  await erased.bring()
  expect(target.arrivals).toHaveLength(arrivals)
  await db('deliveries').where({ document_id: erased.documentId }).delete()
  expect(await erased.bring()).toEqual({ status: 'gone' })
})

test.each<[string, Error | undefined, object]>([
  ['updated', undefined, { outcome: 'updated' }],
  ['retrying', new DeliveryError('rate_limited', 'slow down', { retryAfterMs: 50_000 }), { message: 'rate_limited: slow down' }],
  ['failed', new DeliveryError('copy_missing', 'stored elsewhere'), { message: 'copy_missing: stored elsewhere', isFinal: true }],
])('a try whose answer was lost is not made again: %s', async (_, failure, told) => {
  let tries = 0
  const updateMetadata = async () => {
    tries += 1
    if (failure) throw failure
  }
  const delivered = await deliver(keeper({ updateMetadata }), { Vendor: '{meta.vendor}' })
  await delivered.attempt()
  await delivered.find({ vendor: 'Acme' })
  const recorded = async () => [
    await db('delivery_metadata').where({ document_id: delivered.documentId }),
    await db('audit_logs').where({ subject_id: delivered.documentId }),
  ]
  const first = await delivered.run(1)
  expect(first).toMatchObject(told)
  const before = await recorded()
  expectSame(await delivered.run(2), first)
  expect(tries).toBe(1)
  expect(await recorded()).toEqual(before)
})
