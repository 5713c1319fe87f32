import { randomUUID } from 'node:crypto'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createWorker } from '../../src/temporal/worker.ts'
import {
  deliveryOptions,
  signals,
  type Activities,
  type AttemptOutcome,
  type DeliveryInput,
  type DeliveryState,
} from '../../workflows/messages.ts'
import { testConfig } from '../support/factories.ts'
import { startTemporalDevServer } from '../support/temporal.ts'
import { until } from '../support/until.ts'

let env: TestWorkflowEnvironment

beforeAll(async () => {
  env = await startTemporalDevServer()
})
afterAll(() => env.teardown())

const deploymentName = 'document-relay'

/** A worker of this version, whose attempts end this way. */
const startVersion = async (buildId: string, taskQueue: string, outcome: AttemptOutcome) => {
  const activities: Activities = {
    attemptDelivery: async () => outcome,
    recordCancellation: async () => {},
    recordTermination: async () => {},
  }
  const config = testConfig({ TEMPORAL_ADDRESS: env.address, TEMPORAL_TASK_QUEUE: taskQueue, TEMPORAL_WORKER_BUILD_ID: buildId })
  const { worker, close } = await createWorker(config, activities, { workflowBundle: { codePath: process.env.TEST_WORKFLOW_BUNDLE! } })
  const ended = worker.run()
  return async () => {
    worker.shutdown()
    await ended
    await close()
  }
}

/** What `temporal worker deployment set-current-version` does; refused until a worker of the version has been seen. */
const makeCurrent = (buildId: string) =>
  until(`${buildId} is current`, async () => {
    try {
      await env.connection.workflowService.setWorkerDeploymentCurrentVersion({ namespace: 'default', deploymentName, buildId })
      return true
    } catch {
      return false
    }
  })

describe('an upgrade by worker versions', () => {
  it('hands a delivery that waits for a retry from the old version to the new one', async () => {
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
      searchAttributes: true,
    }
    const stopOld = await startVersion('1', taskQueue, { status: 'failed', error: 'credentials refused' })
    await makeCurrent('1')
    const handle = await env.client.workflow.start('delivery', { ...deliveryOptions(input), taskQueue })
    await until('it waits', async () => (await handle.query<DeliveryState>('status')).status === 'failed')

    const stopNew = await startVersion('2', taskQueue, { status: 'delivered' })
    await makeCurrent('2')
    await stopOld()
    await handle.signal(signals.retry, { requestId: 'by hand', policy })
    expect(await handle.result()).toMatchObject({ status: 'delivered' })
    const { raw } = await handle.describe()
    expect(raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion).toMatchObject({ buildId: '2', deploymentName })
    await stopNew()
  })
})
