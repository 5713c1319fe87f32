import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createReceive } from '../../src/archive/receive.ts'
import { createLog } from '../../src/base/log.ts'
import { createOutbox, type StartDocument } from '../../src/db/outbox.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { documentWorkflowId } from '../../workflows/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { createTimeSkippingTemporal } from '../support/temporal.ts'

let database: TestDatabase
let env: TestWorkflowEnvironment
const config = testConfig({
  TEMPORAL_MAX_CONCURRENT_STARTS: '3',
  // A busy machine can answer the first call late.
  TEMPORAL_START_TIMEOUT_MS: '60000',
})
const log = createLog('silent')
const limits = { sweepAgeMs: 0, maxWaiting: 1 }

beforeAll(async () => {
  database = await createTestDatabase()
  env = await createTimeSkippingTemporal()
})
afterAll(async () => {
  await env.teardown()
  await database.drop()
})
beforeEach(() => database.db('outbox').delete())

const receive = async (count: number): Promise<StartDocument[]> => {
  const routes = await createRoutes(database.db, [{ name: 'archive' }])
  const messages: StartDocument[] = []
  for (let index = 0; index < count; index += 1) {
    const received = await createReceive(database.db, config)(await receivedDocument(routes, { data: 'hello' }))
    if (received.created) messages.push(...received.messages)
  }
  return messages
}

const temporal = () => createTemporal(env.client, env.connection, config)
const outbox = () => createOutbox(database.db)
const countOutbox = async () => (await database.db('outbox').select('key')).length
const isStarted = async ({ input }: StartDocument) =>
  (await env.client.workflow.getHandle(documentWorkflowId(input)).describe()).status.name === 'RUNNING'

describe('the launcher', () => {
  test('starts the workflow of a committed document and empties the outbox', async () => {
    const messages = await receive(1)
    const launcher = createLauncher(temporal(), outbox(), config, log, limits)
    launcher.launch(messages)
    await launcher.close()
    expect(await isStarted(messages[0]!)).toBe(true)
    expect(await countOutbox()).toBe(0)
  })

  test('starts in its sweep the workflows that a crash left unstarted', async () => {
    const messages = await receive(10)
    expect(await createLauncher(temporal(), outbox(), config, log, limits).sweep()).toBe(10)
    expect(await Promise.all(messages.map(isStarted))).not.toContain(false)
    expect(await countOutbox()).toBe(0)
  })

  test('can start a workflow twice, as after a crash between the start and the deletion of its message', async () => {
    const [message] = await receive(1)
    await temporal().send(message!)
    expect(await createLauncher(temporal(), outbox(), config, log, limits).sweep()).toBe(1)
    expect(await countOutbox()).toBe(0)
  })

  test('keeps all messages while Temporal is unavailable', async () => {
    const messages = await receive(6)
    let calls = 0
    const unavailable = {
      send: async () => {
        calls += 1
        throw new Error('14 UNAVAILABLE')
      },
      hasBegun: async () => true,
    }
    const launcher = createLauncher(unavailable, outbox(), config, log, limits)
    launcher.launch(messages)
    expect(await launcher.sweep()).toBe(0)
    await launcher.close()
    expect(await countOutbox()).toBe(6)
    // The launch tries three at a time and one from the queue. The sweep, and the process for what it left, stop after a page of three.
    expect(calls).toBeGreaterThanOrEqual(3 + 3)
    expect(calls).toBeLessThanOrEqual(4 + 3 + 3)
    expect(await createLauncher(temporal(), outbox(), config, log, limits).sweep()).toBe(6)
  })

  test('finds that a document waits for a worker, and that an unknown or ended workflow does not', async () => {
    const [message, unsent] = await receive(2)
    await temporal().send(message!)
    expect(await temporal().hasBegun(message!)).toBe(false)
    expect(await temporal().hasBegun(unsent!)).toBe(true)
    await env.client.workflow.getHandle(documentWorkflowId(message!.input)).terminate()
    expect(await temporal().hasBegun(message!)).toBe(true)
  })

  test('leaves recent messages to the process that wrote them', async () => {
    await receive(1)
    expect(await createLauncher(temporal(), outbox(), config, log, { sweepAgeMs: 60_000 }).sweep()).toBe(0)
    expect(await countOutbox()).toBe(1)
  })
})
