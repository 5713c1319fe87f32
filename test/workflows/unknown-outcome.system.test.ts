import type { WorkflowHandle } from '@temporalio/client'
import { ApplicationFailure } from '@temporalio/common'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { deliveryChangedSignal } from '../../workflows/messages.ts'
import { bulkRetryOptions, deliveryOptions, documentOptions, noticeOptions } from '../../workflows/options.ts'
import { share } from '../support/share.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'
import { documentTo } from './scripted-activities.ts'

// In a rolling update, a workflow of an old worker can be told something by an activity, or by another workflow, of a new one.

const env: TestWorkflowEnvironment = share(await createTimeSkippingTemporal())

const workspace = 'acme/invoices'
const registered = { registered: true }
const unknown = { status: 'postponed' }

const input = documentTo('archive')
const { destinations, ...terms } = documentTo('archive')
const stories: [name: string, activities: object, type: string, options: { workflowId: string; args: unknown[] }][] = [
  [
    'delivery: an attempt',
    { attemptDelivery: async () => unknown },
    'delivery',
    deliveryOptions({ ...terms, destination: destinations[0]! }, registered),
  ],
  [
    'delivery: a failure of an attempt',
    {
      attemptDelivery: async () => {
        throw ApplicationFailure.create({ message: 'postponed', nonRetryable: true, details: [unknown] })
      },
    },
    'delivery',
    deliveryOptions({ ...documentTo('archive'), destination: destinations[0]! }, registered),
  ],
  ['document: a delivery', { attemptDelivery: async () => ({ status: 'waiting' }) }, 'document', documentOptions(input, registered)],
  [
    'bulk retry: a page',
    { retryNextPage: async () => unknown },
    'bulkRetry',
    bulkRetryOptions({ bulkRetryId: 'one', workspace }, registered),
  ],
  [
    'notice: an attempt',
    { sendNotice: async () => unknown },
    'notice',
    noticeOptions({ noticeId: 'one', workspace, attemptTimeoutMs: 60_000 }, registered),
  ],
]

const hasFailedTask = async (handle: WorkflowHandle) => {
  const { events } = await handle.fetchHistory()
  const failed = events?.find(({ workflowTaskFailedEventAttributes }) => workflowTaskFailedEventAttributes)
  return failed?.workflowTaskFailedEventAttributes?.failure?.message
}

test.each(stories)(
  '%s that this version does not know fails the task and leaves the workflow open',
  async (_, activities, type, options) => {
    await withWorker(env, activities, async (taskQueue) => {
      const handle = await env.client.workflow.start(type, { ...options, taskQueue })
      if (type === 'document') await handle.signal(deliveryChangedSignal, { destinationId: 'archive', ...unknown } as never)
      expect(await until('the task has failed', () => hasFailedTask(handle))).toMatch(
        /^the outcome \{.*"status":"postponed".*\} is unknown to this version$/,
      )
      expect((await handle.describe()).status.name).toBe('RUNNING')
      await handle.terminate()
    })
  },
)
