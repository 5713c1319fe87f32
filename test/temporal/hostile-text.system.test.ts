import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { WorkflowHandle } from '@temporalio/client'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { bundleWorkflowCode, DefaultLogger, type WorkerOptions } from '@temporalio/worker'
import { repeatAttempts } from '../../activities/delivery.ts'
import { repeat } from '../../activities/repeat.ts'
import type { AttemptOutcome } from '../../src/domain/delivery-run.ts'
import { bundleOf } from '../../src/temporal/data-converter.ts'
import { deliveryOptions, documentOptions, noticeOptions, sideWorkOptions } from '../../workflows/options.ts'
import { wrongIn } from '../support/hostile-text.ts'
import { createInstallation } from '../support/installation.ts'
import { routeTo } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'
import { documentTo } from '../workflows/scripted-activities.ts'

// Half an emoji in the text of an error. In a text of less than 40 characters, it used to end the worker with everything that it was doing.
const half = '\ud83d'

const env: TestWorkflowEnvironment = share(await createTimeSkippingTemporal())

const workspace = 'acme/invoices'
const registered = { registered: true }
const { destinations, ...terms } = documentTo('archive')
const destination = destinations[0]!

const failed: AttemptOutcome = { status: 'failed', error: half, errorCode: half, keepsOpen: false }

const cases: [name: string, activities: object, type: string, options: { workflowId: string; args: unknown[] }][] = [
  [
    'an attempt that is not repeated, and the workflows above it',
    repeatAttempts({ attemptDelivery: async () => failed }),
    'document',
    documentOptions(documentTo('archive'), registered),
  ],
  [
    'an attempt that is repeated',
    repeatAttempts({ attemptDelivery: async () => ({ status: 'retrying', failures: 2, delayMs: 1, error: half }) }),
    'delivery',
    deliveryOptions({ ...terms, destination }, registered),
  ],
  [
    'side work, whose activity throws',
    {
      sendEvents: async () => {
        throw new Error(half)
      },
    },
    'eventSubscription',
    sideWorkOptions('events', { queueId: 'one', workspaceId: 'one', workspace, name: half }, registered),
  ],
  [
    'a notice, whose workflow throws',
    { sendNotice: async () => repeat({ status: 'failed', error: half, errorCode: half }) },
    'notice',
    noticeOptions({ noticeId: 'one', workspace, attemptTimeoutMs: 60_000 }, registered),
  ],
  [
    'any error of an activity',
    {
      runMaintenance: async () => {
        throw Object.assign(new Error(half, { cause: half }), { name: half })
      },
    },
    'maintenance',
    { workflowId: 'maintenance', args: [{ job: 'sweep', everyMs: 1, forMs: 1 }] },
  ],
]

/** Returns every text of a failure in the history or of a pending activity, as the server has it. */
const failureTexts = async (handle: WorkflowHandle): Promise<string[]> => {
  const [{ events }, { raw }] = await Promise.all([handle.fetchHistory(), handle.describe()])
  const texts: string[] = []
  JSON.stringify([events, raw.pendingActivities], (key, value: unknown) => {
    if ((key === 'message' || key === 'type') && typeof value === 'string') texts.push(value)
    return value
  })
  return texts
}

/** Waits until the server has the text of the failure, to which the worker must have survived. @returns what is wrong in it */
const wrongAtServer = async (taskQueue: string, type: string, options: { workflowId: string; args: unknown[] }) => {
  const handle = await env.client.workflow.start(type, { ...options, taskQueue })
  const texts = await until(
    'the failure has reached the server',
    () => failureTexts(handle),
    (found) => found.some((text) => text.includes('\ufffd')),
  )
  await handle.terminate().catch(() => {})
  return texts.flatMap((text) => wrongIn(text))
}

test.each(cases)('%s: the worker survives half an emoji, and the server has a replacement for it', async (_, activities, type, options) => {
  expect(await withWorker(env, activities, (taskQueue) => wrongAtServer(taskQueue, type, options))).toEqual([])
})

test('any error of a workflow: the worker survives half an emoji, and the server has a replacement for it', async () => {
  const workflowBundle: WorkerOptions['workflowBundle'] = await bundleWorkflowCode({
    ...bundleOf(fileURLToPath(new URL('throwing-workflow.ts', import.meta.url))),
    logger: new DefaultLogger('ERROR'),
  })
  const activities = { unused: async () => {} }
  const wrong = await withWorker(
    env,
    activities,
    (taskQueue) => wrongAtServer(taskQueue, 'throwError', { workflowId: 'throws', args: [half] }),
    { workflowBundle },
  )
  expect(wrong).toEqual([])
})

test('an S3 store whose error holds half an emoji fails one delivery after one attempt, and no worker', async () => {
  const store = http.createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(400, { 'content-type': 'application/xml' })
      response.end('<?xml version="1.0"?><Error><Code>InvalidArgument</Code><Message>&#xD83D;</Message></Error>')
    })
  })
  store.listen(0, '127.0.0.1')
  await once(store, 'listening')
  const { database, start } = share(await createInstallation())
  const [api, worker] = await Promise.all([start('api'), start('worker')])
  const route = await routeTo(
    database,
    'objstore',
    {
      bucket: 'documents',
      region: 'eu-central-1',
      path_style: true,
      endpoint: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
    },
    { access_key_id: 'the-key-id', secret_access_key: 'the-secret' },
  )
  const documentIds = () => database.db('documents').where({ workspace_id: route.workspaceId }).select<{ id: string }[]>('id')
  for (const docId of ['ONE', 'TWO', 'THREE']) await route.send(api, docId)
  const deliveries = await until(
    'all deliveries have failed',
    async () =>
      database.db('deliveries').whereIn(
        'document_id',
        (await documentIds()).map(({ id }) => id),
      ),
    (rows) => rows.length === 3 && rows.every(({ status }) => status === 'failed'),
    240_000,
  )
  for (const delivery of deliveries) {
    expect(delivery).toMatchObject({
      attempts: 1,
      last_error_code: 'http_400',
      last_error: expect.stringMatching(/^PutObject of s3:\/\/documents\/Z1\/\w+\/data: the store answered 400 InvalidArgument: \ufffd$/),
      ended_by: 'permanent_error',
    })
  }
  expect(worker.child.exitCode).toBeNull()
  expect((await fetch(`${worker.probesUrl}/readyz`)).status).toBe(200)
  store.close()
})
