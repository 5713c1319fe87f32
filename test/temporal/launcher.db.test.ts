import { setTimeout as delay } from 'node:timers/promises'
import { createReceive } from '../../src/archive/receive.ts'
import { createLog } from '../../src/base/log.ts'
import { createOutbox, outboxKey, type OutboxMessage, type StartDocument } from '../../src/db/outbox.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { paceLimits } from '../../src/temporal/start-pace.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { dueMessages } from '../support/outbox.ts'
import { until } from '../support/until.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())
beforeEach(() => database.db('outbox').delete())

type Routes = Awaited<ReturnType<typeof createRoutes>>

/** Commits documents that were received one after the other. */
const receive = async (count: number, routes?: Routes): Promise<StartDocument[]> => {
  const { db } = database
  const target = routes ?? (await createRoutes(db, [{ name: 'archive' }]))
  const messages: StartDocument[] = []
  for (let index = 0; index < count; index += 1) {
    const received = await createReceive(db, testConfig())(await receivedDocument(target, { data: 'hello' }))
    if (received.created) messages.push(...received.messages)
  }
  return messages
}

interface LauncherOptions {
  holds?: boolean
  /** How long sending a message takes, at least. */
  sendMs?: number
  hasBegun?: boolean
  fails?: (message: OutboxMessage) => boolean
  maxConcurrent?: number
  limits?: Parameters<typeof createLauncher>[4]
}

/** Starts a launcher whose messages go to a Temporal that notes them. `holds` holds starts back until `release`. */
const startLauncher = ({
  holds = false,
  sendMs = 0,
  hasBegun = true,
  fails = () => false,
  maxConcurrent = 50,
  limits = {},
}: LauncherOptions = {}) => {
  const sent: string[] = []
  let underWay = 0
  let mostUnderWay = 0
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  const send = async (message: OutboxMessage) => {
    underWay += 1
    mostUnderWay = Math.max(mostUnderWay, underWay)
    if (holds) await released
    else await delay(sendMs)
    underWay -= 1
    if (fails(message)) throw Object.assign(new Error('3 INVALID_ARGUMENT'), { code: 3 })
    sent.push(outboxKey(message))
  }
  const outbox = createOutbox(database.db)
  // How many messages each page of the outbox had.
  const pages: number[] = []
  const sendDue: typeof outbox.sendDue = async (page, sendAll) => {
    let found = 0
    const sentNow = await outbox.sendDue(page, async (messages) => {
      found = messages.length
      return sendAll(messages)
    })
    pages.push(found)
    return sentNow
  }
  const launcher = createLauncher(
    { send, hasBegun: async () => hasBegun },
    { ...outbox, sendDue },
    { TEMPORAL_MAX_CONCURRENT_STARTS: maxConcurrent },
    createLog('silent'),
    { sweepAgeMs: 0, ...limits },
  )
  return {
    ...launcher,
    sent,
    release,
    mostUnderWay: () => mostUnderWay,
    pages,
  }
}

const untilOutboxEmpty = () => until('the outbox is empty', async () => (await dueMessages(database.db)).length === 0)
const keysOf = (messages: OutboxMessage[]) => messages.map(outboxKey)

test('a process never sends more messages at a time than allowed, and sends from the outbox what it has no room for', async () => {
  const messages = await receive(30)
  const launcher = startLauncher({ maxConcurrent: 3, limits: { maxWaiting: 4 } })
  launcher.launch(messages)
  await untilOutboxEmpty()
  expect(new Set(launcher.sent)).toEqual(new Set(keysOf(messages)))
  expect(launcher.mostUnderWay()).toBe(3)
  await launcher.close()
})

test('documents are started in the order of their arrival, also those that waited in the outbox', async () => {
  const messages = await receive(30)
  // Older than the limit for messages that other processes may be sending.
  await database.db('outbox').update({ due_at: database.db.raw(`due_at - interval '1 minute'`) })
  const launcher = startLauncher({
    maxConcurrent: 1,
    limits: { sweepAgeMs: 30_000, maxWaiting: 9 },
  })
  launcher.launch(messages)
  await untilOutboxEmpty()
  expect(launcher.sent).toEqual(keysOf(messages))
  await launcher.close()
})

test('starts go on without a pause when they begin to come from the outbox', async () => {
  const messages = await receive(30)
  const launcher = startLauncher({
    sendMs: 100,
    maxConcurrent: 1,
    limits: { sweepAgeMs: 2_000 },
  })
  launcher.launch(messages)
  await untilOutboxEmpty()
  expect(launcher.sent).toEqual(keysOf(messages))
  await launcher.close()
  // The process looks into the outbox when its first message there is due: no page before the last message is empty.
  const last = launcher.pages.findLastIndex(Boolean)
  expect(last).toBeGreaterThanOrEqual(0)
  expect(launcher.pages.slice(0, last)).not.toContain(0)
})

test('a document of one workspace does not wait for the thousands of another', async () => {
  const flood = await receive(40)
  const [single] = await receive(1)
  const launcher = startLauncher({ holds: true, maxConcurrent: 2, limits: { maxWaiting: 8 } })
  launcher.launch(flood)
  launcher.launch([single!])
  launcher.release()
  await untilOutboxEmpty()
  expect(launcher.sent.indexOf(outboxKey(single!))).toBeLessThan(5)
  await launcher.close()
})

test('neither does one that waits in the outbox behind them', async () => {
  await receive(40)
  const [single] = await receive(1)
  const launcher = startLauncher({ maxConcurrent: 4 })
  expect(await launcher.sweep()).toBe(41)
  expect(launcher.sent.indexOf(outboxKey(single!))).toBeLessThan(4)
  await launcher.close()
})

test('processes share the outbox: none sends what another one is sending', async () => {
  const messages = await receive(20)
  const [first, second] = [startLauncher({ holds: true, maxConcurrent: 5 }), startLauncher()]
  const sweeping = first.sweep()
  await until('the first process sends', () => first.mostUnderWay() === 5)
  expect(await second.sweep()).toBe(15)
  first.release()
  expect(await sweeping).toBe(5)
  expect([...first.sent, ...second.sent].toSorted()).toEqual(keysOf(messages).toSorted())
  expect(await dueMessages(database.db)).toEqual([])
  await Promise.all([first.close(), second.close()])
})

test('what a process was sending when it was lost is free for the others at once', async () => {
  await receive(5)
  const lost = startLauncher({ holds: true })
  const sweeping = lost.sweep()
  await until('the process sends', () => lost.mostUnderWay() > 0)
  // As when the process is killed: PostgreSQL ends its transaction.
  await database.db.raw(`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database()
      and state = 'idle in transaction'
  `)
  const second = startLauncher()
  await until('the messages are free', async () => (await second.sweep()) === 5)
  lost.release()
  await expect(sweeping).rejects.toThrow(/connection/i)
  await Promise.all([lost.close(), second.close()])
})

test('while the workers take nothing, a few documents are started and the rest waits in the outbox', async () => {
  const messages = await receive(40)
  const launcher = startLauncher({
    hasBegun: false,
    limits: { pace: { ...paceLimits, minimum: 5 }, maxWaiting: 10, sweepAgeMs: 60_000 },
  })
  const startedAt = performance.now()
  launcher.launch(messages)
  await until('five are started', () => launcher.sent.length >= 5)
  await until('the started ones are removed', async () => (await dueMessages(database.db)).length <= 35)
  await until('it goes on slowly', () => launcher.sent.length >= 6)
  await launcher.close()
  // One more per second.
  const most = 5 + Math.floor((performance.now() - startedAt) / 1_000)
  expect(launcher.sent.length).toBeLessThanOrEqual(most)
  expect(launcher.sent).toEqual(keysOf(messages.slice(0, launcher.sent.length)))
})

test.each([1, 3])('a message that Temporal refuses does not hold up the messages after it, %d at a time', async (atATime) => {
  const messages = await receive(12)
  const refused = outboxKey(messages[0]!)
  const launcher = startLauncher({
    fails: (message) => outboxKey(message) === refused,
    maxConcurrent: atATime,
  })
  expect(await launcher.sweep()).toBe(11)
  expect(keysOf(await dueMessages(database.db))).toEqual([refused])
  await launcher.close()
})

test('a cancellation does not wait for the starts of documents', async () => {
  await receive(10)
  const cancellation = { kind: 'cancelDelivery', document: { documentId: 'D' }, destinationId: 'X' } as OutboxMessage
  await database.db('outbox').insert({ key: outboxKey(cancellation), message: JSON.stringify(cancellation) })
  const launcher = startLauncher({ maxConcurrent: 1 })
  expect(await launcher.sweep()).toBe(11)
  expect(launcher.sent[0]).toBe(outboxKey(cancellation))
  await launcher.close()
})

test('closing leaves what waits in the outbox', async () => {
  const messages = await receive(6)
  const launcher = startLauncher({ holds: true, maxConcurrent: 2 })
  launcher.launch(messages)
  const closing = launcher.close()
  launcher.release()
  await closing
  expect(keysOf(await dueMessages(database.db))).toEqual(keysOf(messages.slice(2)))
})
