import { Client, type Connection } from '@temporalio/client'
import { defaultPayloadConverter } from '@temporalio/common'
import { msToTs } from '@temporalio/common/lib/time.js'
import { createDeliveryWorkflows } from '../../src/temporal/delivery-workflows.ts'
import { manualRetryTimer } from '../../workflows/messages.ts'

// What the server answers about a workflow is a table here: most of these states last for a moment on a real server, unless it is slow.

const document = { documentId: 'D', workspace: 'acme/invoices', repoId: 'Z1', docId: '4711', compId: 'data' }
const running = 1
const paused = 8

type Event = Record<string, object>

interface Known {
  status?: number
  task?: { attempt: number }
  activities?: { paused?: boolean }[]
  /** The last events, the latest first. */
  events: Event[]
  /** Age of the events. */
  ageMs?: number
}

const timeOf = (ageMs: number) => msToTs(Date.now() - ageMs)
/** A number as protobuf has it. */
const long = (value: number) => msToTs(value * 1_000).seconds

const setUp = ({ status = running, task, activities = [], events, ageMs = 0 }: Known) => {
  const terminations: unknown[] = []
  const workflowService = {
    describeWorkflowExecution: async () => ({
      workflowExecutionInfo: {
        execution: { workflowId: 'w', runId: 'r' },
        type: { name: 'delivery' },
        status,
        historyLength: long(7),
        startTime: timeOf(ageMs),
        executionTime: timeOf(ageMs),
      },
      executionConfig: {},
      pendingActivities: activities,
      pendingChildren: [],
      pendingWorkflowTask: task ?? null,
    }),
    getWorkflowExecutionHistoryReverse: async () => ({
      history: { events: events.map((event) => ({ eventTime: timeOf(ageMs), ...event })) },
    }),
    terminateWorkflowExecution: async (request: unknown) => void terminations.push(request),
  } as unknown as Connection['workflowService']
  const connection = { workflowService, plugins: [] } as unknown as Connection
  const workflows = createDeliveryWorkflows(new Client({ connection }), connection, (call) => call())
  return { workflows, terminations, find: () => workflows.findDeliveryWorkflow(document, 1, 'X') }
}

const started = { workflowExecutionStartedEventAttributes: {} }
const signaled = { workflowExecutionSignaledEventAttributes: {} }
const scheduled = { workflowTaskScheduledEventAttributes: {} }
const begun = { workflowTaskStartedEventAttributes: {} }
const completed = { workflowTaskCompletedEventAttributes: {} }
const failed = { workflowTaskFailedEventAttributes: {} }
const timedOut = { workflowTaskTimedOutEventAttributes: {} }
const upserted = { upsertWorkflowSearchAttributesEventAttributes: {} }
const timer = (summary: string) => ({
  timerStartedEventAttributes: {},
  userMetadata: { summary: defaultPayloadConverter.toPayload(summary) },
})
const firstTask = [completed, begun, scheduled, started]

const waitingForServer: [string, Event[]][] = [
  ['a child has just been started, and has no task', [started]],
  ['a child without a task was signaled', [signaled, started]],
  ['a run has continued as new', [{ workflowExecutionContinuedAsNewEventAttributes: {} }, ...firstTask]],
  ['a signal has arrived', [signaled, ...firstTask]],
  ['its activity has ended', [{ activityTaskCompletedEventAttributes: {} }, ...firstTask]],
  ['its activity has failed', [{ activityTaskFailedEventAttributes: {} }, ...firstTask]],
  ['its activity was scheduled', [{ activityTaskScheduledEventAttributes: {} }, ...firstTask]],
  ['its timer has fired', [{ timerFiredEventAttributes: {} }, timer('until the delivery asks again'), ...firstTask]],
  ['it signals another workflow', [{ signalExternalWorkflowExecutionInitiatedEventAttributes: {} }, ...firstTask]],
  [
    'it signals another workflow, and shows its status',
    [upserted, { signalExternalWorkflowExecutionInitiatedEventAttributes: {} }, ...firstTask],
  ],
  ['its signal has arrived', [{ externalWorkflowExecutionSignaledEventAttributes: {} }, ...firstTask]],
  ['it starts a child', [{ startChildWorkflowExecutionInitiatedEventAttributes: {} }, ...firstTask]],
  ['its cancellation was requested', [{ workflowExecutionCancelRequestedEventAttributes: {} }, ...firstTask]],
  ['its task has timed out', [timedOut, begun, scheduled, started]],
  ['its task has failed', [failed, begun, scheduled, started]],
  ['its task is scheduled', [scheduled, started]],
  ['the server tells no events', []],
]

test.each(waitingForServer)('a workflow that waits for the server is at work: %s', async (_, events) => {
  expect(await setUp({ events }).find()).toEqual({ state: 'working' })
})

test.each(waitingForServer.slice(0, -1))(
  'what the server has owed a workflow for minutes is asked for by a call: %s',
  async (_, events) => {
    expect(await setUp({ events, ageMs: 600_000 }).find()).toEqual({ state: 'asleep' })
  },
)

test.each([0, 600_000])(
  'a workflow that has done its task and waits for nothing sleeps until it is called, however long (%d ms)',
  async (ageMs) => {
    expect(await setUp({ events: firstTask, ageMs }).find()).toEqual({ state: 'asleep' })
    expect(await setUp({ events: [upserted, ...firstTask], ageMs }).find()).toEqual({ state: 'asleep' })
  },
)

test('a workflow with a task, an activity or a timer is at work, and one with the timer of a manual retry waits for that', async () => {
  const old = { events: firstTask, ageMs: 600_000 }
  expect(await setUp({ ...old, task: { attempt: 1 } }).find()).toEqual({ state: 'working' })
  expect(await setUp({ ...old, activities: [{}] }).find()).toEqual({ state: 'working' })
  expect(await setUp({ ...old, events: [timer('until the delivery asks again'), ...firstTask] }).find()).toEqual({ state: 'working' })
  expect(await setUp({ ...old, events: [timer(manualRetryTimer), ...firstTask] }).find()).toEqual({ state: 'waiting' })
})

test('a workflow is stuck if its task fails again and again, but not if it was not answered in time, or an operator has paused it', async () => {
  const task = { attempt: 3 }
  const failing = [failed, begun, scheduled, started]
  expect(await setUp({ task, events: failing }).find()).toEqual({ state: 'stuck', runId: 'r', historyLength: 7 })
  expect(await setUp({ task: { attempt: 2 }, events: failing }).find()).toEqual({ state: 'working' })
  expect(await setUp({ task, events: [timedOut, begun, scheduled, started] }).find()).toEqual({ state: 'working' })
  expect(await setUp({ status: paused, task, events: failing }).find()).toEqual({ state: 'paused' })
  expect(await setUp({ activities: [{ paused: true }], events: firstTask }).find()).toEqual({ state: 'paused' })
})

test('a termination names the run, and says that the relay has done it and why', async () => {
  const { workflows, terminations } = setUp({ events: firstTask })
  await workflows.terminateDelivery(document, 'X', 'the run')
  await workflows.terminateBulkRetry({ bulkRetryId: 'B', workspace: 'acme/invoices' }, 'another run')
  const reason = expect.stringMatching(/^the relay ends this run, because .* no progress/)
  expect(terminations).toMatchObject([
    { workflowExecution: { workflowId: expect.stringMatching(/\/X$/), runId: 'the run' }, reason },
    { workflowExecution: { workflowId: 'bulk-retry/acme/invoices/B', runId: 'another run' }, reason },
  ])
})
