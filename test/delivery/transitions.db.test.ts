import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { cancelBatch } from '../../src/delivery/cancel.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { createRecordAttempt, type AttemptEnd } from '../../src/delivery/record-attempt.ts'
import { createRedeliverAppended } from '../../src/delivery/redeliver.ts'
import { createRelease, hold } from '../../src/delivery/release.ts'
import { requeue } from '../../src/delivery/retry.ts'
import { type DeliveryRef, expire, transition } from '../../src/delivery/transition.ts'
import { deliveryStatuses, transitions, type DeliveryOperation, type DeliveryStatus } from '../../src/domain/delivery-states.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const config = testConfig()

const receiveDocument = async () => {
  const routes = await createRoutes(database.db, [{ name: 'archive' }])
  const incoming = await receivedDocument(routes, { data: 'hello' })
  const { messages } = await createReceive(database.db, config)(incoming)
  const delivery: DeliveryRef = { documentId: messages[0]!.input.documentId, destinationId: routes.destinations['archive']! }
  await database.db('deliveries').where({ document_id: delivery.documentId }).update({ connection_id: routes.connections['archive'] })
  return { ...routes, ...incoming, delivery, connectionId: routes.connections['archive']! }
}

const database = share(await createTestDatabase())
const document = await receiveDocument()

const attempt = async (operation: AttemptEnd['operation'], replacedContent = false) => {
  const job = (await createLoadJob(database.db, config)({ ...document.delivery, ...firstRound }))!
  const content = replacedContent ? { ...job.content, id: 'replaced' } : job.content
  const end: AttemptEnd = { operation, outcome: 'retryable', id: newId(), durationMs: 5, bytesSent: 5 }
  await createRecordAttempt(database.db, config)(document.delivery, { ...job, content }, end)
}

const cancel = (by: 'destination' | 'connection', id: string) => database.db.transaction((trx) => cancelBatch(trx, { by, id }, 10))

/** Performs each operation through its use case. */
const operations: Record<DeliveryOperation, () => Promise<unknown>> = {
  release: () => createRelease(database.db).releaseBatch(document.connectionId, 10),
  attemptDelivered: () => attempt('attemptDelivered'),
  attemptOutdated: () => attempt('attemptDelivered', true),
  attemptRetryable: () => attempt('attemptRetryable'),
  attemptFailed: () => attempt('attemptFailed'),
  retry: () =>
    database.db.transaction((trx) =>
      requeue(
        trx,
        {
          workspaceId: document.workspaceId,
          documentId: document.delivery.documentId,
          actor: { type: 'system', userId: null },
          statuses: [...deliveryStatuses],
        },
        config,
      ),
    ),
  resume: () => transition(database.db, 'resume', document.delivery),
  hold: async () => {
    await database.db('connections').where({ id: document.connectionId }).update({ is_active: false })
    await hold(database.db, document.delivery)
    await database.db('connections').where({ id: document.connectionId }).update({ is_active: true })
  },
  expire: () => expire(database.db, document.delivery),
  endWorkflow: () => transition(database.db, 'endWorkflow', document.delivery, 'workflow_terminated'),
  cancel: () => cancel('destination', document.delivery.destinationId),
  cancelHeld: async () => {
    const link = { connection_id: document.connectionId, destination_id: document.delivery.destinationId }
    await database.db('connection_destinations').where(link).delete()
    await cancel('connection', document.connectionId)
    await database.db('connection_destinations').insert({ ...link, position: 0 })
  },
  redeliver: () =>
    database.db.transaction((trx) => createRedeliverAppended(config)(trx, { id: document.delivery.documentId, revision: 1 })),
}

const statusOf = async ({ documentId, destinationId }: DeliveryRef): Promise<DeliveryStatus> =>
  (await database.db('deliveries').where({ document_id: documentId, destination_id: destinationId }).first('status')).status

const cases = Object.entries(transitions).flatMap(([operation, { from, to }]) =>
  deliveryStatuses.map((status) => {
    const allowed: readonly DeliveryStatus[] = from
    return [operation as DeliveryOperation, status, allowed.includes(status) ? to : status] as const
  }),
)

test.each(cases)('after %s, a delivery that was %s is %s', async (operation, status, expected) => {
  const { db } = database
  await db('deliveries').where({ document_id: document.delivery.documentId }).update({ status })
  await operations[operation]()
  expect(await statusOf(document.delivery)).toBe(expected)
})

test('an attempt that finds the destination deleted cancels its delivery by the same rule as the deletion', async () => {
  const { db } = database
  for (const status of deliveryStatuses) {
    await db('deliveries').where({ document_id: document.delivery.documentId }).update({ status })
    await transition(db, 'cancel', document.delivery, 'destination_deleted')
    const { from, to } = transitions.cancel
    const allowed: readonly DeliveryStatus[] = from
    expect([status, await statusOf(document.delivery)]).toEqual([status, allowed.includes(status) ? to : status])
  }
})
