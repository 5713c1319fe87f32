import { createReceive } from '../../src/archive/receive.ts'
import { createLog } from '../../src/base/log.ts'
import { DeliveryError, type Connector, type DeliveredCopy } from '../../src/connectors/connector.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createInstallation } from '../../src/db/installation.ts'
import { createOnItsOwn } from '../../src/db/on-its-own.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { createFindLateData, createLateData, updateCopies } from '../../src/delivery/late-data.ts'
import { createSetMetadata } from '../../src/delivery/set-metadata.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createActivityEnvironment } from '../support/activity-environment.ts'
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

beforeEach(async () => {
  await db('late_data').delete()
  await db('side_queues').delete()
})

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
  const { attemptDelivery } = attemptActivities({ db, config, outbound, findConnector })
  const input = { documentId, destinationId, policy, round: 'first', attemptTimeoutMs: 60_000, workspace: 'acme/invoices' }
  const { bringLateData } = createLateData(
    {
      db,
      findConnector,
      openCredentials: () => ({}),
      outbound,
      installation: createInstallation(db),
      log: createLog('silent'),
      onItsOwn: createOnItsOwn().onItsOwn,
      saveUpdated: async () => undefined,
      config,
    },
    { lingerMs: 0 },
  )
  const row = () => db('late_data').where({ document_id: documentId })
  const run = () => bringLateData({ queueId: destinationId, workspaceId: routes.workspaceId }, never)
  return {
    ...routes,
    documentId,
    destinationId,
    row,
    run,
    attempt: () => createActivityEnvironment().run(() => attemptDelivery(input)),
    /** Stores fields as an enrichment does. */
    find: async (fields: object) => {
      await db.transaction(async (trx) => {
        await trx('documents').select('id').where({ id: documentId }).forNoKeyUpdate()
        await trx('document_enrichments')
          .where({ document_id: documentId })
          .update({ fields: JSON.stringify(fields) })
        await updateCopies(trx, [documentId], { findConnector })
      })
    },
    /** Every retry is due. @returns how the try has ended, as the row says */
    bring: async () => {
      await db('side_queues').delete()
      await row()
        .where({ status: 'pending' })
        .update({ next_try_at: new Date(0) })
      await run()
      const [found] = await row().select('status', 'error', db.raw('extract(epoch from next_try_at - now())::float8 as "dueIn"'))
      return found
    },
    isDue: async () => (await createFindLateData(db)()).some(({ queueId }) => queueId === destinationId),
    state: async () => {
      const [found] = await row()
      return found && { status: found.status, error: found.error, hasDigest: found.digest !== null }
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
  expect(await delivered.isDue()).toBe(true)
  expect(await delivered.bring()).toMatchObject({ status: 'updated' })
  expect(JSON.parse(target.arrivals.at(-1)!.body.toString())).toMatchObject({
    type: 'document.metadata',
    data: { fields: { vendor: 'Acme' } },
  })

  // The same values again are nothing new.
  const arrivals = target.arrivals.length
  await delivered.find({ vendor: 'Acme' })
  expect(await delivered.isDue()).toBe(false)
  expect(await delivered.bring()).toMatchObject({ status: 'updated' })
  expect(target.arrivals).toHaveLength(arrivals)
})

test('a file name that is brought in later is late data: a message to a webhook, and a property that contains it', async () => {
  const set = (delivered: Awaited<ReturnType<typeof deliver>>, connector: Connector, fileName: string) =>
    db('documents')
      .where({ id: delivered.documentId })
      .first('doc_id as docId')
      .then(({ docId }) =>
        createSetMetadata(db, { findConnector: () => connector })(
          delivered.workspaceId,
          { repoId: delivered.repoId, docId },
          { fileName, description: 'an offer' },
          systemActor,
        ),
      )
  const message = await deliver()
  await message.attempt()
  await set(message, find('webhook')!, 'Angebot.pdf')
  expect(await message.isDue()).toBe(true)
  await message.bring()
  expect(JSON.parse(target.arrivals.at(-1)!.body.toString())).toMatchObject({
    type: 'document.metadata',
    data: { file_name: 'Angebot.pdf', description: 'an offer' },
  })

  const copies: DeliveredCopy[] = []
  const connector = keeper({ updateMetadata: async (copy) => void copies.push(copy) })
  const copy = await deliver(connector, { Title: '{file_name}: {description}' })
  await copy.attempt()
  await set(copy, connector, 'Angebot.pdf')
  expect(await copy.bring()).toMatchObject({ status: 'updated' })
  expect(copies).toMatchObject([{ properties: { Title: 'Angebot.pdf: an offer' } }])
  await set(copy, connector, 'Angebot.pdf')
  expect(await copy.isDue()).toBe(false)
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
  expect([await without.isDue(), await other.isDue(), copies]).toEqual([false, false, []])
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
  expect(await delivered.isDue()).toBe(true)
  await delivered.bring()
  expect([copies, await delivered.state()]).toEqual([1, { ...current, status: 'updated' }])
})

test('a failure is repeated for a day, unless no repetition can help', async () => {
  let failure: Error = new DeliveryError('timeout', 'the target did not answer', { retryAfterMs: 7_000 })
  const connector = keeper({ updateMetadata: () => Promise.reject(failure) })
  const delivered = await deliver(connector, { Vendor: '{meta.vendor}' })
  await delivered.attempt()
  await delivered.find({ vendor: 'Acme' })
  const dueAfter = async (seconds: number) => {
    const { status, error, dueIn } = await delivered.bring()
    expect({ status, error }).toEqual({ status: 'pending', error: 'timeout: the target did not answer' })
    expect(dueIn).toBeGreaterThan(seconds - 60)
    expect(dueIn).toBeLessThanOrEqual(seconds)
  }
  await dueAfter(7)
  await dueAfter(30)
  await delivered.row().update({ attempts: 40 })
  await dueAfter(3_600)
  await delivered.row().update({ found_at: new Date(Date.now() - 86_000_000) })
  expect(await delivered.bring()).toMatchObject({ status: 'failed' })
  failure = new DeliveryError('copy_missing', 'the document was stored elsewhere')
  await delivered.find({ vendor: 'Other' })
  expect(await delivered.bring()).toMatchObject({ status: 'failed', error: 'copy_missing: the document was stored elsewhere' })
  failure = new TypeError('a defect')
  await delivered.find({ vendor: 'Third' })
  expect(await delivered.bring()).toMatchObject({ status: 'pending', error: 'unexpected: a defect' })
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
  await db.raw(`alter table late_data add constraint refused check (status <> 'updated') not valid`)
  try {
    await delivered.bring()
    await delivered.row().update({ attempts: 40, found_at: new Date(Date.now() - 86_000_000) })
    await delivered.bring()
    expect(await delivered.state()).toMatchObject({ status: 'pending', error: null })
  } finally {
    await db.raw('alter table late_data drop constraint refused')
  }
  expect(await delivered.bring()).toMatchObject({ status: 'updated' })
  expect([copies, await delivered.state()]).toEqual([3, { ...current, status: 'updated' }])
})

test('a copy that cannot be updated says so, and one of an erased document is left alone', async () => {
  const { updateMetadata: _, ...silent } = find('webhook')!
  const mail = await deliver(silent)
  await mail.attempt()
  await mail.find({ vendor: 'Acme' })
  expect([await mail.isDue(), await mail.state()]).toMatchObject([false, { status: 'not_possible', error: null }])

  const erased = await deliver()
  await erased.attempt()
  await erased.find({ vendor: 'Acme' })
  await createErase(db)(erased.workspaceId, erased.documentId, systemActor)
  const arrivals = target.arrivals.length
  await erased.bring()
  expect(target.arrivals).toHaveLength(arrivals)
  await db('deliveries').where({ document_id: erased.documentId }).delete()
  expect(await erased.row()).toEqual([])
  expect(await erased.run()).toEqual({ status: 'idle' })
})

test('more that is found during a try is brought after it, whether that succeeds or fails', async () => {
  for (const failure of [undefined, new DeliveryError('copy_missing', 'stored elsewhere')]) {
    const copies: DeliveredCopy[] = []
    const connector = keeper({
      updateMetadata: async (copy) => {
        copies.push(copy)
        if (copies.length > 1) return
        await delivered.find({ vendor: 'Second' })
        if (failure) throw failure
      },
    })
    const delivered = await deliver(connector, { Vendor: '{meta.vendor}' })
    await delivered.attempt()
    await delivered.find({ vendor: 'First' })
    expect(await delivered.run()).toEqual({ status: 'idle' })
    expect(copies).toMatchObject([{ properties: { Vendor: 'First' } }, { properties: { Vendor: 'Second' } }])
    expect(await delivered.state()).toMatchObject({ status: 'updated', error: null })
  }
})

test('while the circuit of the destination is open, nothing is brought', async () => {
  let copies = 0
  const delivered = await deliver(keeper({ updateMetadata: async () => void (copies += 1) }), { Vendor: '{meta.vendor}' })
  await delivered.attempt()
  await delivered.find({ vendor: 'Acme' })
  const trialAt = new Date(Date.now() + 3_600_000)
  await db('destination_gates').where({ destination_id: delivered.destinationId }).update({ circuit: 'open', trial_at: trialAt })
  expect(await delivered.isDue()).toBe(true)
  expect(await delivered.run()).toMatchObject({ status: 'retrying', error: expect.stringContaining('circuit_open') })
  expect(await delivered.isDue()).toBe(false)
  expect([copies, await delivered.state()]).toMatchObject([0, { status: 'pending', error: null }])
  await db('destination_gates').where({ destination_id: delivered.destinationId }).update({ circuit: 'closed', trial_at: null })
  await db('side_queues').update({ opens_at: db.fn.now() })
  expect(await delivered.isDue()).toBe(true)
  expect(await delivered.run()).toEqual({ status: 'idle' })
  expect([copies, await delivered.state()]).toMatchObject([1, { status: 'updated' }])
})

test('the copies of a destination that was deleted need nothing', async () => {
  let copies = 0
  const delivered = await deliver(keeper({ updateMetadata: async () => void (copies += 1) }), { Vendor: '{meta.vendor}' })
  await delivered.attempt()
  await delivered.find({ vendor: 'Acme' })
  await db('destinations').where({ id: delivered.destinationId }).update({ deleted_at: db.fn.now() })
  expect(await delivered.isDue()).toBe(true)
  expect(await delivered.run()).toEqual({ status: 'idle' })
  expect([copies, await delivered.state()]).toMatchObject([0, { status: 'current' }])
})

test.each<[string, Error | undefined, object]>([
  ['updated', undefined, { status: 'updated' }],
  ['retrying', new DeliveryError('rate_limited', 'slow down', { retryAfterMs: 50_000 }), { error: 'rate_limited: slow down' }],
  ['failed', new DeliveryError('copy_missing', 'stored elsewhere'), { status: 'failed', error: 'copy_missing: stored elsewhere' }],
])('a run whose answer was lost makes no try again: %s', async (_, failure, recorded) => {
  let tries = 0
  const updateMetadata = async () => {
    tries += 1
    if (failure) throw failure
  }
  const delivered = await deliver(keeper({ updateMetadata }), { Vendor: '{meta.vendor}' })
  await delivered.attempt()
  await delivered.find({ vendor: 'Acme' })
  const all = async () => [await delivered.row(), await db('audit_logs').where({ subject_id: delivered.documentId })]
  expect(await delivered.run()).toEqual({ status: 'idle' })
  const before = await all()
  expect(before[0]).toMatchObject([recorded])
  expect(await delivered.run()).toEqual({ status: 'idle' })
  expect(tries).toBe(1)
  expect(await all()).toEqual(before)
})
