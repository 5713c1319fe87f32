import { randomUUID } from 'node:crypto'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import type { AttemptOutcome } from '../../src/domain/delivery-run.ts'
import { startTemporalWorker } from '../../src/temporal/worker.ts'
import { type DeliveryActivities, type DeliveryInput, deliveryStatusQuery, retrySignal } from '../../workflows/messages.ts'
import { deliveryOptions } from '../../workflows/options.ts'
import { testConfig } from '../support/factories.ts'
import { temporalVariables } from '../support/temporal-cluster.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'

let env: TestWorkflowEnvironment

beforeAll(async () => {
  env = await startTemporalServer()
})
afterAll(() => env.teardown())

const deploymentName = 'document-relay'

/** Starts a worker of this version whose attempts all have this outcome. @returns a function that stops it */
const startVersion = async (buildId: string, taskQueue: string, outcome: AttemptOutcome) => {
  const activities: DeliveryActivities = {
    attemptDelivery: async () => outcome,
    recordCancellation: async () => {},
    recordTermination: async () => {},
  }
  const config = testConfig({ ...temporalVariables(env), TEMPORAL_TASK_QUEUE: taskQueue, TEMPORAL_WORKER_BUILD_ID: buildId })
  const worker = await startTemporalWorker(
    config,
    { targets: activities, control: activities },
    { workflowBundle: { codePath: process.env.TEST_WORKFLOW_BUNDLE! } },
  )
  return worker.stop
}

/** Does the same as `temporal worker deployment set-current-version`. The server refuses it until a worker of the version has polled. */
const makeCurrent = (buildId: string) =>
  until(`${buildId} is current`, async () => {
    try {
      await env.connection.workflowService.setWorkerDeploymentCurrentVersion({
        namespace: env.namespace ?? 'default',
        deploymentName,
        buildId,
      })
      return true
    } catch {
      return false
    }
  })

describe('an upgrade with worker versions', () => {
  test('moves a delivery that waits for a retry from the old version to the new one', async () => {
    const taskQueue = randomUUID()
    const policy = { maxRetries: 0, ttlMs: 60_000, initialIntervalMs: 1_000, maxIntervalMs: 1_000 }
    const input: DeliveryInput = {
      documentId: randomUUID(),
      workspace: 'acme/invoices',
      repoId: 'Z1',
      docId: 'DOC1',
      compId: 'data',
      destination: { id: 'archive', name: 'archive', connector: 'webhook' },
      policy,
      retryWindowMs: 3_600_000,
      attemptTimeoutMs: 60_000,
      heartbeatTimeoutMs: 30_000,
    }
    const stopOld = await startVersion('1', taskQueue, { status: 'failed', error: 'credentials refused' })
    await makeCurrent('1')
    const handle = await env.client.workflow.start('delivery', { ...deliveryOptions(input, { registered: true }), taskQueue })
    await until('the delivery is failed', async () => (await handle.query(deliveryStatusQuery)).status === 'failed')

    const stopNew = await startVersion('2', taskQueue, { status: 'delivered' })
    await makeCurrent('2')
    await stopOld()
    await handle.signal(retrySignal, { requestId: 'manual', policy })
    expect(await handle.result()).toMatchObject({ status: 'delivered' })
    const { raw } = await handle.describe()
    expect(raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion).toMatchObject({ buildId: '2', deploymentName })
    await stopNew()
  })
})
