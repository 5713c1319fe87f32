import { createAppend } from '../../../src/archive/append.ts'
import { createReceive } from '../../../src/archive/receive.ts'
import { createUpdate } from '../../../src/archive/update.ts'
import type { Start } from '../../../src/db/starts.ts'
import { createBulkRetries } from '../../../src/delivery/bulk-retry.ts'
import { createReconcile } from '../../../src/delivery/reconcile.ts'
import { createRedeliverAppended, createRedeliverNewer } from '../../../src/delivery/redeliver.ts'
import { createRelease } from '../../../src/delivery/release.ts'
import { createRetry } from '../../../src/delivery/retry.ts'
import { createTestDatabase } from '../../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../../support/factories.ts'
import { share } from '../../support/share.ts'
import { noteAllBegun, startsToCome } from '../../support/starts.ts'

const config = testConfig()
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

const database = share(await createTestDatabase())
beforeEach(() => noteAllBegun(database.db))

/** Receives a document of a traced request, or of one without a trace, which has been begun. */
const receive = async (received: { traceparent?: string }) => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const document = { ...(await receivedDocument(routes, { data: 'hello' })), ...received }
  const { messages } = await createReceive(db, config)(document)
  const { documentId } = messages[0]!.input
  const setStatus = (status: string, more: object = {}) =>
    db('deliveries')
      .where({ document_id: documentId })
      .update({ status, ...more })
  await noteAllBegun(db)
  return { ...routes, document, messages, documentId, destinationId: routes.destinations['archive']!, setStatus }
}

type Received = Awaited<ReturnType<typeof receive>>

const actor = { type: 'system', userId: null } as const

const releaseHeld = async ({ connections, setStatus }: Received) => {
  await setStatus('held', { connection_id: connections['archive'] })
  await createRelease(database.db).releaseBatch(connections['archive']!, 10)
  return startsToCome(database.db)
}

const retry = async ({ workspaceId, documentId, setStatus }: Received) => {
  await setStatus('failed')
  return createRetry(database.db, config).retryDocument({ workspaceId, documentId, actor })
}

const reconcile = async ({ setStatus }: Received) => {
  await database.db('deliveries').update({ status: 'delivered', begin_at: null })
  await setStatus('pending', { next_attempt_at: new Date(Date.now() - 60_000), checked_at: null })
  const workflows = {
    findDeliveryWorkflow: async () => ({ state: 'missing' }) as const,
    findBulkRetryWorkflow: async () => ({ state: 'working' }) as const,
    terminateDelivery: async () => {},
    terminateBulkRetry: async () => {},
  }
  await createReconcile(database.db, workflows, createBulkRetries(database.db), async () => {}, config)()
  return startsToCome(database.db)
}

const redeliverAppended = async ({ document, setStatus, ...routes }: Received) => {
  await setStatus('delivered')
  const { repository, docId } = document
  const basedOn = { ...document.components[0]!.content!, appends: 0 }
  const content = (await receivedDocument(routes, { data: 'more' })).components[0]!.content!
  const segment = { content, startByte: basedOn.sizeBytes, merged: [], isWhole: false }
  const append = createAppend(database.db, createRedeliverAppended(config))
  await append({ repository, docId, compId: 'data', basedOn, segment, receivedAt: new Date(), capture: undefined })
  return startsToCome(database.db)
}

/** The document is a newer one that an older one may have overwritten. */
const redeliverNewer = async ({ documentId, document, destinationId, setStatus: _setStatus, ...routes }: Received) => {
  const { db } = database
  const update = { ...(await receivedDocument(routes, { data: 'newer' }, document.docId)), whole: true, traceparent: document.traceparent }
  await createUpdate(db, config)(update)
  await db('deliveries').where({ destination_id: destinationId }).update({ status: 'delivered' })
  await noteAllBegun(db)
  await createRedeliverNewer(db)({ documentId, destinationId })
  return startsToCome(database.db)
}

const starts: Record<string, (received: Received) => Promise<Start[]>> = {
  'the first delivery': async ({ messages }) => messages,
  'a release': releaseHeld,
  'a manual retry': retry,
  'the reconciler': reconcile,
  'a redelivery after an append': redeliverAppended,
  'a redelivery of the newer document': redeliverNewer,
}

const inputsOf = (messages: Start[]) => messages.map(({ input }) => input)

test.each(Object.entries(starts))('%s starts its workflow with the span of the request', async (_, start) => {
  const messages = await start(await receive({ traceparent }))
  expect(inputsOf(messages)).toMatchObject([{ traceparent }])
})

test.each(Object.entries(starts))('%s of a document without a trace starts a workflow without one', async (_, start) => {
  const inputs = inputsOf(await start(await receive({})))
  expect(inputs).toHaveLength(1)
  expect(inputs[0]).not.toHaveProperty('traceparent')
})
