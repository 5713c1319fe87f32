import { createReceive } from '../../src/archive/receive.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { documentWorkflowId } from '../../workflows/ids.ts'
import { createTestDatabase } from '../support/database.ts'
import { deliveryActivities } from '../support/delivery-activities.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { share } from '../support/share.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'

const hour = 3_600_000
const config = testConfig()

const outbound = share(disposable(createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS }), (each) => each.close()))

const database = share(await createTestDatabase())
const env = share(await createTimeSkippingTemporal())
const target = share(await startHttpTarget())

describe('a destination that is down for hours', () => {
  test('receives the document at the fourth attempt, with waits according to the settings of the workspace', async () => {
    const { db } = database
    const routes = await createRoutes(db, [{ name: 'target', config: { url: target.origin } }], {
      workspaceSettings: { retry_initial_interval_seconds: hour / 1_000, retry_max_interval_seconds: (12 * hour) / 1_000 },
    })
    const received = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
    if (!received.created) throw new Error('not created')
    const [message] = received.messages
    target.answerWith((_, response) => {
      response.statusCode = target.arrivals.length <= 3 ? 503 : 200
      response.end()
    })
    const startedAt = performance.now()
    await withWorker(env, deliveryActivities({ db, config, outbound }), async (taskQueue) => {
      const temporal = createTemporal(env.client, env.connection, { ...config, TEMPORAL_TASK_QUEUE: taskQueue })
      await temporal.send(message!)
      await env.client.workflow.getHandle(documentWorkflowId(message!.input)).result()
    })
    const tookMs = performance.now() - startedAt
    const { events } = await env.client.workflow.getHandle(documentWorkflowId(message!.input)).fetchHistory()
    const secondsOf = (index: number) => Number(events!.at(index)!.eventTime!.seconds)
    const skippedHours = ((secondsOf(-1) - secondsOf(0)) * 1_000) / hour

    // 1 + 2 + 4 hours, and at most a tenth as jitter.
    expect(skippedHours).toBeGreaterThanOrEqual(7)
    expect(skippedHours).toBeLessThan(7.8)
    expect(tookMs).toBeLessThan((skippedHours * hour) / 100)
    expect(await db('deliveries').where({ document_id: message!.input.documentId })).toMatchObject([{ status: 'delivered', attempts: 4 }])
    expect(await db('documents').where({ id: message!.input.documentId })).toMatchObject([{ status: 'delivered' }])
    expect(await db('delivery_attempts').where({ document_id: message!.input.documentId }).orderBy('number').select('outcome')).toEqual([
      { outcome: 'retryable' },
      { outcome: 'retryable' },
      { outcome: 'retryable' },
      { outcome: 'delivered' },
    ])
    expect(new Set(target.arrivals.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  })
})
