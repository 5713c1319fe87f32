import { Client, type Connection } from '@temporalio/client'
import { msToTs } from '@temporalio/common/lib/time.js'
import { createSchedules } from '../../src/temporal/schedules.ts'
import { testConfig } from '../support/factories.ts'

// The server tells of one run of the job whose task has failed often, and of how far that run has come at each check.

const job = { name: 'reconcile', description: 'Reconciles', intervalMs: 60_000 }

interface Seen {
  runId: string
  historyLength: number
  attempt?: number
}

const setUp = (answers: Seen[]) => {
  const terminations: unknown[] = []
  let triggers = 0
  const workflowService = {
    describeSchedule: async () => ({
      schedule: {
        spec: {},
        action: {
          startWorkflow: {
            workflowId: 'relay-reconcile',
            workflowType: { name: 'maintenance' },
            taskQueue: { name: 'relay' },
            input: { payloads: [] },
          },
        },
        policies: {},
        state: {},
      },
      info: { runningWorkflows: [{ workflowId: 'relay-reconcile-1', runId: 'first' }], createTime: msToTs(0) },
      searchAttributes: {},
      memo: {},
    }),
    describeWorkflowExecution: async () => {
      const { runId, historyLength, attempt = 9 } = answers.shift()!
      return {
        workflowExecutionInfo: {
          execution: { workflowId: 'relay-reconcile-1', runId },
          type: { name: 'maintenance' },
          status: 1,
          historyLength: msToTs(historyLength * 1_000).seconds,
          startTime: msToTs(0),
        },
        executionConfig: {},
        pendingWorkflowTask: { attempt },
      }
    },
    getWorkflowExecutionHistoryReverse: async () => ({ history: { events: [{ workflowTaskFailedEventAttributes: {} }] } }),
    terminateWorkflowExecution: async (request: unknown) => void terminations.push(request),
    patchSchedule: async () => {
      triggers += 1
    },
  } as unknown as Connection['workflowService']
  const connection = {
    workflowService,
    plugins: [],
    withDeadline: (_: number, call: () => Promise<unknown>) => call(),
  } as unknown as Connection
  const schedules = createSchedules(new Client({ connection }), connection, testConfig())
  return { check: () => schedules.replaceStuck([job]), terminations, triggers: () => triggers }
}

const stuck = { runId: 'first', historyLength: 7 }

test('the workflow of a job is replaced if two checks in a row find the same run at the same place, and the run is named', async () => {
  const { check, terminations, triggers } = setUp([stuck, stuck])
  expect([await check(), terminations, triggers()]).toEqual([[], [], 0])
  expect(await check()).toEqual(['relay-reconcile-1'])
  expect(terminations).toMatchObject([
    { workflowExecution: { workflowId: 'relay-reconcile-1', runId: 'first' }, reason: expect.stringMatching(/^the relay ends this run/) },
  ])
  expect(triggers()).toBe(1)
})

test.each<[string, Seen]>([
  ['its history has grown', { ...stuck, historyLength: 8 }],
  ['another run has followed', { ...stuck, runId: 'second' }],
  ['its task has not failed', { ...stuck, attempt: 1 }],
])('the workflow of a job goes on if it has made progress between two checks: %s', async (_, between) => {
  const { check, terminations } = setUp([stuck, between, stuck])
  for (let time = 0; time < 3; time += 1) expect(await check()).toEqual([])
  expect(terminations).toEqual([])
})
