import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { dynamicConfig } from '../../src/embedded/temporal-dev-server.ts'
import { documentOptions, type Activities, type DocumentInput } from '../../workflows/messages.ts'
import { startTemporalDevServer, withWorker } from '../support/temporal.ts'

// with 2,000 in line the single one took 1.8 s here, alone 1.3 s; without fairness, behind 200, it took 37 s
const waiting = 200

let env: TestWorkflowEnvironment
beforeAll(async () => {
  env = await startTemporalDevServer(dynamicConfig)
})
afterAll(() => env.teardown())

const documentOf = (workspace: string): DocumentInput => ({
  documentId: randomUUID(),
  workspace,
  repoId: 'Z1',
  docId: '005056B5A3F21EEFA9C1D04F7B6E8C11',
  compId: 'data',
  destinations: [{ id: 'archive', name: 'archive', connector: 'webhook' }],
  policy: { maxRetries: 10, ttlMs: 3_600_000, initialIntervalMs: 1_000, maxIntervalMs: 1_000 },
  retryWindowMs: 60_000,
  attemptTimeoutMs: 60_000,
  heartbeatTimeoutMs: 30_000,
  searchAttributes: true,
})

test('a workspace whose documents wait in line by the hundred does not hold up the single one of another', async () => {
  const taskQueue = randomUUID()
  const start = (workspace: string) => {
    const input = documentOf(workspace)
    return env.client.workflow.start('document', { ...documentOptions(input), taskQueue })
  }
  let delivered = 0
  const activities: Activities = {
    attemptDelivery: async () => {
      await delay(50)
      delivered += 1
      return { status: 'delivered' }
    },
    recordCancellation: async () => {},
    recordTermination: async () => {},
  }
  for (let started = 0; started < waiting; started += 20) await Promise.all(Array.from({ length: 20 }, () => start('acme/busy')))
  const single = await start('acme/quiet')

  const untilSingle = async () => {
    await single.result()
    // without fairness it comes about as late as the last of them
    expect(delivered).toBeLessThan(waiting / 4)
  }
  await withWorker(env, activities, untilSingle, {
    taskQueue,
    maxConcurrentActivityTaskExecutions: 4,
    maxConcurrentWorkflowTaskExecutions: 4,
  })
}, 300_000)
