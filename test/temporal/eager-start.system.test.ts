// The first task of a document comes with the answer to its start, to the worker that starts it.
import { repeatAttempts } from '../../activities/delivery.ts'
import { temporalOver } from '../../src/temporal/client.ts'
import { documentWorkflowId } from '../../workflows/ids.ts'
import { testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { temporalVariables } from '../support/temporal-cluster.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { withWorker } from '../support/temporal.ts'
import { documentTo, scriptedActivities } from '../workflows/scripted-activities.ts'

const env = share(await startTemporalServer())

test.each([
  { by: 'a worker that is alone', eager: true, buildId: undefined, isEager: true },
  { by: 'a worker beside others', eager: false, buildId: undefined, isEager: false },
  { by: 'a worker whose build may not be the current one', eager: true, buildId: '0.2.0', isEager: false },
])('a document that $by starts is delivered, and its first task comes with the answer: $isEager', async ({ eager, buildId, isEager }) => {
  const { activities } = scriptedActivities(() => 'delivered')
  const input = documentTo('archive')
  const started = await withWorker(env, repeatAttempts(activities), async (taskQueue) => {
    const config = { ...testConfig(temporalVariables(env)), TEMPORAL_TASK_QUEUE: taskQueue, TEMPORAL_WORKER_BUILD_ID: buildId }
    await temporalOver(env.nativeConnection, config).send({ kind: 'startDocument', input, eager })
    const handle = env.client.workflow.getHandle(documentWorkflowId(input))
    expect(await handle.result()).toMatchObject([{ status: 'delivered' }])
    const { events } = await handle.fetchHistory()
    return events![0]!.workflowExecutionStartedEventAttributes
  })
  expect(started!.eagerExecutionAccepted ?? false).toBe(isEager)
})
