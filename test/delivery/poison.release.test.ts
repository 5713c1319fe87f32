import { randomBytes } from 'node:crypto'
import { deliveryWorkflowId } from '../../workflows/ids.ts'
import { documentKeyOf } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { createInstallation } from '../support/installation.ts'
import { routeToWebhook } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

// A document that kills its worker, in every attempt. Each kill takes along what the worker was doing for other documents.

const maxRetries = 1

const target = share(await startHttpTarget())
const { database, env, start } = share(await createInstallation({ DELIVERY_HEARTBEAT_TIMEOUT_MS: '2500' }))
const api = await start('api')
const running = { worker: start('worker') }
await running.worker

/** Kills the worker and starts another one. */
const replaceWorker = async () => {
  const killed = await running.worker
  running.worker = killed.kill().then(() => start('worker'))
  await running.worker
}

const routeTo = (path: string, settings: object) =>
  routeToWebhook(database, `${target.origin}/${path}`, { retry_initial_interval_seconds: 1, retry_max_interval_seconds: 1, ...settings })

const create = ({ send }: Awaited<ReturnType<typeof routeTo>>, docId: string) => send(api, docId, randomBytes(1_000))

const documentsOf = (workspaceId: string) =>
  database.db('documents').where({ workspace_id: workspaceId }).select<{ id: string; status: string }[]>('id', 'status')

test.each([
  ['before its first heartbeat', false],
  ['after a heartbeat', true],
])(
  'a document that kills its worker %s fails within max_retries, with every attempt recorded, and others are delivered',
  async (_, afterHeartbeat) => {
    const poison = await routeTo('poison', { max_retries: maxRetries })
    const good = await routeTo('good', {})
    let kills = 0
    /** Called for each request with the poison document. Its answer never comes. */
    const onPoison = async () => {
      kills += 1
      if (afterHeartbeat) {
        const { id } = (await documentsOf(poison.workspaceId))[0]!
        const delivery = env.client.workflow.getHandle(deliveryWorkflowId(await documentKeyOf(database.db, id), poison.destinationId))
        await until('a heartbeat has reported the attempt', async () =>
          (await delivery.describe()).raw.pendingActivities?.some(({ heartbeatDetails }) => heartbeatDetails?.payloads?.length),
        )
      }
      await replaceWorker()
    }
    target.answerWith(({ url }, response) => {
      if (url === '/poison') void onPoison()
      else response.end()
    })

    for (let index = 0; index < 5; index += 1) await create(good, `GOOD${index}`)
    await create(poison, 'POISON')
    for (let index = 5; index < 10; index += 1) await create(good, `GOOD${index}`)

    const [document] = await until(
      'the poison document has failed',
      () => documentsOf(poison.workspaceId),
      ([found]) => found?.status === 'failed',
      240_000,
    )
    // On a busy machine, an attempt can time out before it has sent its request.
    expect(kills).toBeGreaterThan(0)
    expect(kills).toBeLessThanOrEqual(maxRetries + 1)
    const { id } = document!
    expect(await database.db('deliveries').where({ document_id: id }).first()).toMatchObject({
      status: 'failed',
      attempts: maxRetries + 1,
      ended_by: 'max_retries',
      last_error_code: 'interrupted',
      attempt_id: null,
    })
    const attempts = await database.db('delivery_attempts').where({ document_id: id }).orderBy('number')
    expect(attempts.map(({ number, outcome, error_code }) => ({ number, outcome, error_code }))).toEqual(
      [1, 2].map((number) => ({ number, outcome: 'interrupted', error_code: 'interrupted' })),
    )
    expect(await good.untilDelivered(10)).toHaveLength(10)
  },
  600_000,
)
