import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createOutbox } from '../../src/db/outbox.ts'
import type { DocumentMessage } from '../../src/db/outbox.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createLog } from '../../src/log.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { documentWorkflowId } from '../../workflows/messages.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring, receiptOf, testConfig } from '../support/factories.ts'
import { createTimeSkippingTemporal } from '../support/temporal.ts'
import { until } from '../support/until.ts'

let database: TestDatabase
let env: TestWorkflowEnvironment
const config = testConfig({ OUTBOX_SWEEP_AGE_MS: '0', TEMPORAL_MAX_CONCURRENT_STARTS: '3', TEMPORAL_MAX_WAITING_STARTS: '1' })
const log = createLog('silent')

beforeAll(async () => {
  database = await createTestDatabase()
  env = await createTimeSkippingTemporal()
})
afterAll(async () => {
  await env.teardown()
  await database.drop()
})
beforeEach(() => database.db('outbox').delete())

const receive = async (count: number): Promise<DocumentMessage[]> => {
  const wiring = await createWiring(database.db, [{ name: 'archive' }])
  const messages: DocumentMessage[] = []
  for (let made = 0; made < count; made += 1) {
    const received = await createReceipts(database.db, config).receive(await receiptOf(wiring, { data: 'hello' }))
    if (received.created) messages.push(...received.messages)
  }
  return messages
}

const temporal = () => createTemporal(env.client, env.connection, config)
const outbox = () => createOutbox(database.db)
const left = async () => (await database.db('outbox').select('key')).length
const isStarted = async ({ documentId }: DocumentMessage) =>
  (await env.client.workflow.getHandle(documentWorkflowId(documentId)).describe()).status.name === 'RUNNING'

describe('the launcher', () => {
  it('starts the workflow of a document straight after its commit, and empties the outbox', async () => {
    const messages = await receive(1)
    const launcher = createLauncher(temporal(), outbox(), config, log)
    launcher.launch(messages)
    await launcher.close()
    expect(await isStarted(messages[0]!)).toBe(true)
    expect(await left()).toBe(0)
  })

  it('finds by its sweep what a crash left unstarted', async () => {
    const messages = await receive(10)
    expect(await createLauncher(temporal(), outbox(), config, log).sweep()).toBe(10)
    expect(await Promise.all(messages.map(isStarted))).not.toContain(false)
    expect(await left()).toBe(0)
  })

  it('changes nothing by starting a second time: the crash may have come between start and clean-up', async () => {
    const [message] = await receive(1)
    await temporal().send(message!)
    expect(await createLauncher(temporal(), outbox(), config, log).sweep()).toBe(1)
    expect(await left()).toBe(0)
  })

  it('leaves to the sweep what exceeds the starts in flight and in line', async () => {
    const messages = await receive(6)
    const launcher = createLauncher(temporal(), outbox(), config, log)
    launcher.launch(messages)
    await until('the starts in flight and in line', left, (count) => count <= 2)
    await launcher.close()
    expect(await left()).toBe(2)
    expect(await launcher.sweep()).toBe(2)
  })

  it('loses nothing while Temporal is away', async () => {
    const messages = await receive(6)
    let calls = 0
    const away = {
      send: async () => {
        calls += 1
        throw new Error('14 UNAVAILABLE')
      },
    }
    const launcher = createLauncher(away, outbox(), config, log)
    launcher.launch(messages)
    expect(await launcher.sweep()).toBe(0)
    await launcher.close()
    expect(await left()).toBe(6)
    // the launch tries what it may, the sweep stops after its first batch
    expect(calls).toBeGreaterThanOrEqual(3 + 3)
    expect(calls).toBeLessThanOrEqual(4 + 3)
    expect(await createLauncher(temporal(), outbox(), config, log).sweep()).toBe(6)
  })

  it('leaves young messages to the process that wrote them', async () => {
    await receive(1)
    expect(await createLauncher(temporal(), outbox(), { ...config, OUTBOX_SWEEP_AGE_MS: 60_000 }, log).sweep()).toBe(0)
    expect(await left()).toBe(1)
  })
})
