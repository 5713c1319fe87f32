import type { ServerResponse } from 'node:http'
import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import { createReconcile } from '../../src/delivery/reconcile.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startRelay, type Running } from '../support/relay.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'

// A real server: the one that skips time does not tell what a workflow waits for. Every open delivery counts as overdue at once.

const env = share(await startTemporalServer())
const relay = share(await startRelay(env))
const target = share(await startHttpTarget())

const createReconciler = ({ launcher }: Running) =>
  createReconcile(
    relay.db,
    createTemporal(env.client, env.connection, relay.config),
    createBulkRetries(relay.db),
    launcher.sendAll,
    relay.config,
    { ageMs: 0 },
  )

const untilStatus = (document: { status(): Promise<string> }, status: string) =>
  until(`the document is ${status}`, document.status, (found) => found === status)

test('the reconciler leaves every healthy delivery alone: waiting for a slot, in an attempt, in back-off, failed, held', async () => {
  target.answerWith(({ url }, response) => {
    // The path /hang is never answered.
    if (url !== '/hang') response.writeHead(Number(url.slice(1))).end()
  })
  const to = (path: string, config: object = {}) => [{ name: 'web', config: { url: `${target.origin}/${path}`, ...config } }]
  const longBackOff = { workspaceSettings: { retry_initial_interval_seconds: 3_600 } }
  await relay.run(async (running) => {
    const busy = await running.createRoutes(to('hang', { max_concurrent_deliveries: 1 }))
    for (let index = 0; index < 5; index += 1) await busy.receive()
    const retrying = await (await running.createRoutes(to('503'), longBackOff)).receive()
    const failed = await (await running.createRoutes(to('403'))).receive()
    const delivered = await (await running.createRoutes(to('200'))).receive()
    await untilStatus(retrying, 'retrying')
    await untilStatus(failed, 'failed')
    await untilStatus(delivered, 'delivered')
    await until('one of the busy destination is being sent', () => target.arrivals.some(({ url }) => url === '/hang'))
    const arrivals = target.arrivals.length

    // Its next attempt is in an hour. An impatient reconciler would find it now.
    await relay
      .db('deliveries')
      .where({ document_id: retrying.id })
      .update({ next_attempt_at: new Date(0) })
    const reconcile = createReconciler(running)
    for (let run = 0; run < 3; run += 1) {
      expect(await reconcile()).toEqual({
        // Those in line are called, and are not overdue.
        checked: 2,
        started: 0,
        retried: 0,
        failed: 0,
        cancelled: 0,
        bulkRetriesStarted: 0,
        bulkRetriesCancelled: 0,
        complete: true,
      })
    }
    expect(await relay.db('outbox').select('key')).toEqual([])
    expect(target.arrivals).toHaveLength(arrivals)
    target.answerWith((_, response) => void response.end())
  })
}, 240_000)

test('a delivery is retried whose workflow waits for an operator, and recorded whose workflow an operator has ended', async () => {
  target.answerWith((_, response) => void response.writeHead(403).end())
  await relay.run(async (running) => {
    const { receive } = await running.createRoutes([{ name: 'web', config: { url: target.origin } }], {
      workspaceSettings: { retry_initial_interval_seconds: 3_600 },
    })
    const behind = await receive()
    await untilStatus(behind, 'failed')
    const reconcile = createReconciler(running)
    target.answerWith((_, response) => void response.end())
    // As if the signal of a manual retry had been lost.
    await relay.db('deliveries').where({ document_id: behind.id }).update({ status: 'retrying' })
    await until('the retry is sent again', async () => (await reconcile()).retried === 1 || (await behind.status()) === 'delivered')
    await untilStatus(behind, 'delivered')

    target.answerWith((_, response) => void response.writeHead(503).end())
    const ended = await receive()
    await untilStatus(ended, 'retrying')
    await ended.handle().terminate()
    await untilStatus(ended, 'failed')
    // Started by the retry, without the workflow of a document that could record the end.
    expect((await ended.retry('web')).status).toBe(200)
    await until('the retry has failed', async () => (await ended.deliveries())['web']!.attempts >= 2)
    await ended.handle('web').terminate()
    await relay
      .db('deliveries')
      .where({ document_id: ended.id })
      .update({ next_attempt_at: new Date(0) })
    expect(await reconcile()).toMatchObject({ checked: 1, failed: 1, started: 0 })
    expect(await ended.deliveries()).toMatchObject({ web: { status: 'failed' } })
  })
}, 240_000)

test('a delivery that an operator has paused in Temporal waits for "paused", and goes on after "unpause"', async () => {
  target.answerWith((_, response) => void response.writeHead(503).end())
  await relay.run(async (running) => {
    const { receive } = await running.createRoutes([{ name: 'web', config: { url: target.origin } }], {
      workspaceSettings: { retry_initial_interval_seconds: 3_600 },
    })
    const document = await receive()
    await untilStatus(document, 'retrying')
    const { workflowService } = env.connection
    const activity = { namespace: env.client.options.namespace, execution: { workflowId: document.handle('web').workflowId }, id: '1' }
    await workflowService.pauseActivity(activity)
    await relay
      .db('deliveries')
      .where({ document_id: document.id })
      .update({ next_attempt_at: new Date(0) })
    const reason = async () => {
      const { json } = await document.call('GET', `/documents/${document.id}`)
      return json.data.attributes.deliveries[0].waiting_for?.reason
    }
    const reconcile = createReconciler(running)
    expect(await reason()).toBe('worker')
    expect(await reconcile()).toMatchObject({ checked: 1, started: 0, retried: 0 })
    expect(await reason()).toBe('paused')

    await workflowService.resetActivity({ ...activity, keepPaused: true })
    target.answerWith((_, response) => void response.end())
    await workflowService.unpauseActivity(activity)
    await untilStatus(document, 'delivered')
    expect(await reason()).toBeUndefined()
  })
}, 240_000)

test('a workflow that waits in line for a message which Temporal has lost is called', async () => {
  const unanswered: ServerResponse[] = []
  target.answerWith((_, response) => void unanswered.push(response))
  await relay.run(async (running) => {
    const { receive } = await running.createRoutes([{ name: 'web', config: { url: target.origin, max_concurrent_deliveries: 1 } }])
    const first = await receive()
    await until('the first is being sent', () => unanswered.length === 1)
    const second = await receive('second')
    const row = () => relay.db('deliveries').where({ document_id: second.id })
    await until('the second waits in line', async () => (await row().first('waiting')).waiting === 'in_line')
    await until('its workflow sleeps', async () => (await second.handle('web').describe()).raw.pendingActivities!.length === 0)
    const { runId } = await second.handle('web').describe()
    await row().update({ waiting: 'called', next_attempt_at: new Date(0) })

    const reconcile = createReconciler(running)
    await until('the workflow is called', async () => (await reconcile()).started === 1)
    target.answerWith((_, response) => void response.end())
    unanswered[0]!.end()
    await untilStatus(first, 'delivered')
    await untilStatus(second, 'delivered')
    expect(target.arrivals.filter(({ body }) => body.toString() === 'second')).toHaveLength(1)
    expect((await second.handle('web').describe()).runId).toBe(runId)
  })
}, 240_000)

test('a workflow whose task fails again and again is replaced after two checks, and its document does not fail', async () => {
  target.answerWith((_, response) => void response.end())
  let attempts = 0
  const scenario = async (running: Running) => {
    const { receive } = await running.createRoutes([{ name: 'web', config: { url: target.origin } }])
    const document = await receive('replaced')
    const row = () => relay.db('deliveries').where({ document_id: document.id })
    const { runId } = await until('the delivery is started', () =>
      document
        .handle('web')
        .describe()
        .catch(() => undefined),
    ).then((found) => found!)
    await until('its task fails', async () => ((await document.handle('web').describe()).raw.pendingWorkflowTask?.attempt ?? 0) >= 3)
    await row().update({ begin_at: null, next_attempt_at: new Date(0), checked_at: null })

    const reconcile = createReconciler(running)
    const suspicion = until('the workflow is suspected', async () => {
      expect(await reconcile()).toMatchObject({ started: 0 })
      return (await row().first('stuck_run')).stuck_run as string | null
    })
    expect(await suspicion).toMatch(new RegExp(`^${runId}/\\d+$`))
    expect((await document.handle('web').describe()).status.name).toBe('RUNNING')
    await until('the workflow is replaced', async () => (await reconcile()).started === 1)
    await untilStatus(document, 'delivered')

    const ended = env.client.workflow.getHandle(document.handle('web').workflowId, runId)
    expect((await ended.describe()).status.name).toBe('TERMINATED')
    const last = (await ended.fetchHistory()).events!.at(-1)!
    expect(last.workflowExecutionTerminatedEventAttributes!.reason).toMatch(/^the relay ends this run, because/)
    await expect(document.handle().result()).resolves.toMatchObject([{ status: 'pending' }])
    expect(await document.deliveries()).toMatchObject({ web: { status: 'delivered', ended_by: null } })
    expect(target.arrivals.filter(({ body }) => body.toString() === 'replaced')).toHaveLength(1)
  }
  await relay.run(scenario, ({ attemptDelivery }) => ({
    // A worker of another version has answered first. This one cannot continue the workflow.
    attemptDelivery: async (input) => {
      attempts += 1
      return attempts === 1 ? ({ status: 'of another version' } as never) : attemptDelivery(input)
    },
  }))
}, 240_000)
