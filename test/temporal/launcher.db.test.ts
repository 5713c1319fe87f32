import { setImmediate as nextTurn } from 'node:timers/promises'
import { newId } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { addMessages, createOutbox, outboxKey, type CancelDelivery, type OutboxMessage } from '../../src/db/outbox.ts'
import type { Start } from '../../src/db/starts.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { createTestDatabase } from '../support/database.ts'
import { dueMessages } from '../support/outbox.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const database = share(await createTestDatabase())
beforeEach(() => database.db('outbox').delete())

/** Commits commands, one after the other. */
const commit = async (count: number): Promise<CancelDelivery[]> => {
  const messages = Array.from({ length: count }, (): CancelDelivery => {
    const document = { documentId: newId(), workspace: 'acme/invoices', repoId: 'Z1', docId: 'D', compId: 'data' }
    return { kind: 'cancelDelivery', document, destinationId: 'archive', requestId: newId() }
  })
  for (const message of messages) await database.db.transaction((trx) => addMessages(trx, [message]))
  return messages
}

interface LauncherOptions {
  holds?: boolean
  fails?: (message: OutboxMessage | Start) => Error | undefined
  limits?: Parameters<typeof createLauncher>[3]
}

const unavailableError = Object.assign(new Error('14 UNAVAILABLE'), { code: 14 })
const refused = Object.assign(new Error('3 INVALID_ARGUMENT'), { code: 3 })

/** Starts a launcher whose messages go to a Temporal that notes them. `holds` holds them back until `release`. */
const startLauncher = ({ holds = false, fails = () => undefined, limits = {} }: LauncherOptions = {}) => {
  const sent: string[] = []
  let calls = 0
  let underWay = 0
  let mostUnderWay = 0
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  const send = async (message: OutboxMessage | Start) => {
    calls += 1
    underWay += 1
    mostUnderWay = Math.max(mostUnderWay, underWay)
    if (holds) await released
    else await nextTurn()
    underWay -= 1
    const failure = fails(message)
    if (failure) throw failure
    sent.push(outboxKey(message as OutboxMessage))
  }
  const launcher = createLauncher({ send }, createOutbox(database.db), createLog('silent'), { sweepAgeMs: 0, ...limits })
  return { ...launcher, sent, release, mostUnderWay: () => mostUnderWay, calls: () => calls }
}

const untilOutboxEmpty = () => until('the outbox is empty', async () => (await dueMessages(database.db)).length === 0)
const keysOf = (messages: OutboxMessage[]) => messages.map(outboxKey)

test('a process never sends more messages at a time than allowed, and the sweep sends what it has no room for', async () => {
  const messages = await commit(30)
  const launcher = startLauncher({ limits: { maxConcurrent: 3, maxWaiting: 4 } })
  launcher.launch(messages)
  await until('it has sent what it has room for', async () => (await dueMessages(database.db)).length === 23)
  expect(await launcher.sweep()).toBe(23)
  expect(launcher.sent).toEqual(keysOf(messages))
  expect(launcher.mostUnderWay()).toBe(3)
  await launcher.close()
})

test('a process that is sending, or is lost while it does, keeps no other from sending: what is sent twice has no further effect', async () => {
  const messages = await commit(20)
  const [first, second] = [startLauncher({ holds: true, limits: { maxConcurrent: 5 } }), startLauncher()]
  const sweeping = first.sweep()
  await until('the first process sends', () => first.mostUnderWay() === 5)
  expect(await second.sweep()).toBe(20)
  expect(second.sent.toSorted()).toEqual(keysOf(messages).toSorted())
  expect(await dueMessages(database.db)).toEqual([])
  first.release()
  expect(await sweeping).toBe(5)
  expect(keysOf(messages)).toEqual(expect.arrayContaining(first.sent))
  await Promise.all([first.close(), second.close()])
})

test.each([1, 20, 300])('%d messages that Temporal refuses do not hold up the messages after them', async (count) => {
  const bad = new Set(keysOf(await commit(count)))
  const good = await commit(3)
  const launcher = startLauncher({ fails: (message) => (bad.has(outboxKey(message as OutboxMessage)) ? refused : undefined) })
  expect(await launcher.sweep()).toBe(3)
  expect(launcher.sent).toEqual(keysOf(good))
  // They are sent again later.
  expect(await dueMessages(database.db)).toEqual([])
  expect(await database.db('outbox').select('key')).toHaveLength(count)
  await launcher.close()
})

test('all messages are kept while Temporal is unavailable, and few are tried', async () => {
  const messages = await commit(40)
  const unavailable = startLauncher({ fails: () => unavailableError, limits: { maxConcurrent: 5 } })
  expect(await unavailable.sweep()).toBe(0)
  expect(unavailable.calls()).toBe(5)
  await unavailable.close()
  expect(await dueMessages(database.db)).toHaveLength(40)
  const launcher = startLauncher()
  expect(await launcher.sweep()).toBe(40)
  expect(launcher.sent.toSorted()).toEqual(keysOf(messages).toSorted())
  await launcher.close()
})

test('recent messages are left to the process that wrote them', async () => {
  await commit(1)
  const launcher = startLauncher({ limits: { sweepAgeMs: 60_000 } })
  expect(await launcher.sweep()).toBe(0)
  await launcher.close()
})

test('closing leaves what waits in the outbox', async () => {
  const messages = await commit(6)
  const launcher = startLauncher({ holds: true, limits: { maxConcurrent: 2 } })
  launcher.launch(messages)
  const closing = launcher.close()
  launcher.release()
  await closing
  expect(keysOf(await dueMessages(database.db))).toEqual(keysOf(messages.slice(2)))
})

test('a command is not taken for an earlier one of the same delivery that has been sent and is just being removed', async () => {
  const [first] = await commit(1)
  const launcher = startLauncher({ holds: true })
  const sweeping = launcher.sweep()
  await until('it is being sent', () => launcher.mostUnderWay() === 1)
  const again = { ...first!, requestId: newId() }
  await database.db.transaction((trx) => addMessages(trx, [again]))
  launcher.release()
  await sweeping
  await untilOutboxEmpty()
  expect(launcher.sent).toEqual(keysOf([first!, again]))
  await launcher.close()
})
