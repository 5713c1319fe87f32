import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import type { WakeDelivery } from '../../src/db/outbox.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { transition } from '../../src/delivery/transition.ts'
import { callNext, createWakeNext, listLines } from '../../src/delivery/wake.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { logsTo } from '../support/logs.ts'
import { share } from '../support/share.ts'

const config = testConfig({ DELIVERY_CIRCUIT_PAUSE_MS: '60000' })
const database = share(await createTestDatabase())
const { db } = database

/** Creates a destination with these limits, and documents for it, numbered from 1, that were not attempted. */
const arrange = async (count: number, limits: object = {}, workerConfig = config) => {
  const routes = await createRoutes(db, [{ name: 'archive', config: limits }])
  const destinationId = routes.destinations['archive']!
  const ids: string[] = []
  while (ids.length < count) {
    const { messages } = await createReceive(db, workerConfig)(await receivedDocument(routes, { data: 'hello' }))
    ids.push(messages[0]!.input.documentId)
  }
  const numberOf = (id: string) => ids.indexOf(id) + 1
  const launched: WakeDelivery[] = []
  const wakeNext = createWakeNext(db, workerConfig, (messages) => launched.push(...messages), logsTo([]).log)
  const load = createLoadJob(db, workerConfig)
  const record = createRecordAttempt(db, workerConfig, wakeNext)
  const refOf = (number: number) => ({ documentId: ids[number - 1]!, destinationId })
  /** The delivery asks for a slot, as the activity does. @returns a function that ends the attempt, or why the delivery waits */
  const ask = async (number: number, { isCalled = false, hasPlace = true } = {}) => {
    const attemptId = newId()
    const job = (await load({ ...refOf(number), ...firstRound }, { attemptId, continues: undefined, hasPlace, isCalled }))!
    if (!job.hasSlot) return job.refusal!
    const end = (signal: 'answered' | 'failed') =>
      record(refOf(number), job, {
        id: attemptId,
        operation: signal === 'answered' ? 'attemptDelivered' : 'attemptRetryable',
        outcome: signal === 'answered' ? 'delivered' : 'retryable',
        durationMs: 1,
        bytesSent: 1,
        signal,
      })
    return end
  }
  const mustStart = async (number: number, options = {}) => {
    const end = await ask(number, options)
    if (typeof end !== 'function') throw new Error(`delivery ${number} has to wait`)
    return end
  }
  return {
    destinationId,
    refOf,
    ask,
    mustStart,
    wakeNext: () => wakeNext(destinationId),
    /** Returns the numbers of the deliveries that were woken since the last call. */
    woken: () => launched.splice(0).map(({ input }) => numberOf(input.documentId)),
    waiting: async () =>
      (await db('deliveries').where({ destination_id: destinationId }).whereNotNull('waiting').orderBy('document_id')).map(
        ({ document_id, waiting }) => [numberOf(document_id), waiting],
      ),
    gate: () => db('destination_gates').where({ destination_id: destinationId }),
    open: async () => {
      await (
        await mustStart(count)
      )('failed')
      await db('destination_gates')
        .where({ destination_id: destinationId })
        .update({ circuit: 'open', pause_ms: 60_000, trial_at: db.raw(`now() + interval '1 hour'`) })
    },
  }
}

describe('a delivery that finds no free slot', () => {
  test('waits in line, and is woken by the end of an attempt, in the order of the documents', async () => {
    const { ask, mustStart, woken, waiting } = await arrange(4, { max_concurrent_deliveries: 1 })
    const end = await mustStart(2)
    expect(await ask(4)).toEqual({ waitingFor: 'slot', circuit: null, askAgainMs: null })
    expect(await ask(3)).toEqual({ waitingFor: 'slot', circuit: null, askAgainMs: null })
    expect(await waiting()).toEqual([
      [3, 'in_line'],
      [4, 'in_line'],
    ])
    expect(woken()).toEqual([])
    await end('answered')
    expect(woken()).toEqual([3])
    expect(await waiting()).toEqual([
      [3, 'called'],
      [4, 'in_line'],
    ])
    const next = await mustStart(3, { isCalled: true })
    expect(await waiting()).toEqual([[4, 'in_line']])
    await next('failed')
    expect(woken()).toEqual([4])
  })

  test('is not overtaken by a delivery that arrives later', async () => {
    const { ask, mustStart, woken } = await arrange(4, { max_concurrent_deliveries: 2 })
    const [first, second] = [await mustStart(1), await mustStart(2)]
    await ask(3)
    await first('answered')
    await second('answered')
    expect(woken()).toEqual([3])
    await (
      await mustStart(3, { isCalled: true })
    )('answered')
    await mustStart(4)
  })

  test('keeps its place if a slot is free but others wait, until it is called', async () => {
    const { ask, mustStart, woken, wakeNext } = await arrange(3, { max_concurrent_deliveries: 1 })
    const end = await mustStart(1)
    await ask(2)
    await db('outbox').delete()
    // What a process has done that was lost between the record and the call.
    await end('answered')
    woken()
    await db('deliveries').where({ waiting: 'called' }).update({ waiting: 'in_line', next_attempt_at: 'infinity' })
    expect(await ask(3)).toEqual({ waitingFor: 'slot', circuit: null, askAgainMs: null })
    await wakeNext()
    expect(woken()).toEqual([2])
  })

  test('is woken once: a call that is on its way keeps a place', async () => {
    const { ask, mustStart, woken, wakeNext } = await arrange(8, { max_concurrent_deliveries: 3 })
    const ends = [await mustStart(1), await mustStart(2), await mustStart(3)]
    for (const number of [4, 5, 6, 7, 8]) await ask(number)
    await ends[0]!('answered')
    await wakeNext()
    await ends[1]!('answered')
    expect(woken()).toEqual([4, 5])
    // A call that leads to nothing loses its place.
    await db('deliveries')
      .where({ waiting: 'called' })
      .update({ next_attempt_at: db.raw(`now() - interval '1 minute'`) })
    await wakeNext()
    expect(woken()).toEqual([6, 7])
  })

  test('is woken although it has joined the line while the last attempt ended', async () => {
    const { ask, mustStart, woken, wakeNext } = await arrange(12, { max_concurrent_deliveries: 1 })
    for (let round = 0; round < 5; round += 1) {
      const number = 2 * round + 1
      const end = await mustStart(number)
      const [asked] = await Promise.all([ask(number + 1), end('answered')])
      if (typeof asked === 'function') {
        await asked('answered')
        continue
      }
      // What the activity does after a refusal. Otherwise, a delivery that the end has not seen would sleep for ever.
      await wakeNext()
      expect(woken()).toEqual([number + 1])
      await (
        await mustStart(number + 1, { isCalled: true })
      )('answered')
    }
  })

  test('leaves the line when its status changes', async () => {
    const { ask, mustStart, refOf, waiting, woken } = await arrange(2, { max_concurrent_deliveries: 1 })
    const end = await mustStart(1)
    await ask(2)
    await transition(db, 'cancel', refOf(2))
    expect(await waiting()).toEqual([])
    await end('answered')
    expect(woken()).toEqual([])
  })

  test('is woken by a committed message', async () => {
    const { ask, mustStart, destinationId, refOf } = await arrange(2, { max_concurrent_deliveries: 1 })
    const end = await mustStart(1)
    await ask(2)
    // While no slot is free, no delivery has to be called.
    expect(await listLines(db, config)).not.toContain(destinationId)
    await db('destination_slots').update({ leased_until: '-infinity' })
    expect(await listLines(db, config)).toContain(destinationId)
    const [message] = await db.transaction((trx) => callNext(trx, destinationId, config))
    expect(message).toMatchObject({ kind: 'wakeDelivery', input: { documentId: refOf(2).documentId, destination: { id: destinationId } } })
    expect(
      await db('outbox')
        .where('key', 'like', `wake/${refOf(2).documentId}/%`)
        .pluck('message'),
    ).toEqual([message])
    expect(await listLines(db, config)).not.toContain(destinationId)
    await end('answered')
  })
})

describe('while nobody may start', () => {
  test('the first in line has a timer for the trial, and the others sleep', async () => {
    const { ask, open, gate, woken, waiting } = await arrange(4)
    await open()
    expect(await ask(3)).toMatchObject({ waitingFor: 'circuit', circuit: 'open', askAgainMs: expect.any(Number) })
    expect(await ask(2)).toMatchObject({ waitingFor: 'circuit', askAgainMs: expect.any(Number) })
    expect(await ask(4)).toEqual({ waitingFor: 'circuit', circuit: 'open', askAgainMs: null })
    const due = await db('deliveries').whereNotNull('waiting').where({ waiting: 'in_line' }).orderBy('document_id').pluck('next_attempt_at')
    expect(due.at(-1)).toBe(Infinity)
    expect(woken()).toEqual([])
    expect((await waiting()).length).toBe(3)
    await gate().update({ trial_at: db.fn.now() })
    expect(typeof (await ask(2))).toBe('function')
  })

  test('the end of a trial that fails wakes the next one, which takes over the timer', async () => {
    const { ask, mustStart, open, gate, woken } = await arrange(4)
    await open()
    await ask(1)
    await ask(2)
    await gate().update({ trial_at: db.fn.now() })
    const end = await mustStart(1)
    await end('failed')
    expect(woken()).toEqual([2])
    expect(await ask(2, { isCalled: true })).toMatchObject({ waitingFor: 'circuit', circuit: 'open', askAgainMs: expect.any(Number) })
    expect(woken()).toEqual([])
  })

  test('the end of a trial that succeeds wakes as many as there are slots', async () => {
    const { ask, mustStart, open, gate, woken } = await arrange(8, { max_concurrent_deliveries: 3 })
    await open()
    for (const number of [1, 2, 3, 4, 5, 6]) await ask(number)
    await gate().update({ trial_at: db.fn.now() })
    const end = await mustStart(1)
    await end('answered')
    expect(woken()).toEqual([2, 3, 4])
  })

  test('a limit per minute gives the first in line a timer for the next start', async () => {
    const { ask, mustStart, woken } = await arrange(4, { max_deliveries_per_minute: 1 })
    await (
      await mustStart(1)
    )('answered')
    const refusal = await ask(2)
    expect(refusal).toMatchObject({ waitingFor: 'slot', circuit: null })
    expect((refusal as { askAgainMs: number }).askAgainMs).toBeGreaterThan(55_000)
    expect(await ask(3)).toEqual({ waitingFor: 'slot', circuit: null, askAgainMs: null })
    expect(woken()).toEqual([])
  })

  test('a worker without a free place makes the first in line ask again soon', async () => {
    const { ask } = await arrange(3)
    expect(await ask(1, { hasPlace: false })).toEqual({ waitingFor: 'slot', circuit: null, askAgainMs: 5_000 })
    expect(await ask(2)).toEqual({ waitingFor: 'slot', circuit: null, askAgainMs: null })
  })
})

test('a call that fails is left to the job', async () => {
  const lines: string[] = []
  const wakeNext = createWakeNext(
    { transaction: () => Promise.reject(new Error('no connection')) } as never,
    config,
    () => {},
    logsTo(lines).log,
  )
  await wakeNext('archive')
  expect(lines.join()).toContain('no connection')
})
