import { setTimeout as delay } from 'node:timers/promises'
import { createOnItsOwn } from '../../src/db/on-its-own.ts'
import { workThrough, type RunLimits, type Worked } from '../../src/db/work-through.ts'
import { until } from '../support/until.ts'

const never = new AbortController().signal
const { onItsOwn } = createOnItsOwn()
const answered: Worked = { signal: 'answered' }
const failed: Worked = { signal: 'failed', error: 'no answer' }

/** Runs a queue of numbered pieces. `work` decides how each ends. */
const runQueue = (
  pieces: number[],
  work: (piece: number) => Promise<Worked>,
  {
    failures = 0,
    cancelled = never,
    limits = {},
    postpone = async () => {},
  }: { failures?: number; cancelled?: AbortSignal; limits?: Partial<RunLimits>; postpone?: (piece: number) => Promise<void> } = {},
) => {
  const due = [...pieces]
  const begun: number[] = []
  let running = 0
  let most = 0
  const ended = workThrough(
    {
      idOf: String,
      take: async (limit, except) => due.filter((piece) => !except.includes(String(piece))).slice(0, limit),
      work: async (piece) => {
        begun.push(piece)
        running += 1
        most = Math.max(most, running)
        try {
          const worked = await work(piece)
          due.splice(due.indexOf(piece), 1)
          return worked
        } finally {
          running -= 1
        }
      },
      postpone: async (piece) => {
        await postpone(piece)
        due.splice(due.indexOf(piece), 1)
      },
    },
    { failures, cancelled, onItsOwn, limits: { lingerMs: 0, lookMs: 5, ...limits } },
  )
  return { ended, due, begun, most: () => most, running: () => running }
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)

test('everything that is due is done, ten at a time', async () => {
  const run = runQueue(numbers(50), async () => (await delay(5), answered))
  expect(await run.ended).toEqual({ status: 'idle', failures: 0 })
  expect([run.begun.length, run.most(), run.due]).toEqual([50, 10, []])
})

test('what becomes due during a run is done in it, also beside a piece of work that hangs, and for a while after it', async () => {
  const hangs = Promise.withResolvers<Worked>()
  const run = runQueue([0], (piece) => (piece === 0 ? hangs.promise : Promise.resolve(answered)), {
    limits: { lingerMs: 60_000, runMs: 600 },
  })
  await until('it hangs', () => run.running() === 1)
  run.due.push(1)
  await until('the next one is done', () => run.begun.includes(1) && run.running() === 1)
  hangs.resolve(answered)
  await until('nothing is under way', () => run.running() === 0)
  run.due.push(2)
  await until('the last one is done', () => run.begun.includes(2))
  expect(await run.ended).toEqual({ status: 'more', failures: 0 })
})

test('a run ends after its time, unless a piece of work hangs: then the others go on', async () => {
  const run = runQueue(numbers(1_000), async () => (await delay(1), answered), { limits: { runMs: 30 } })
  expect(await run.ended).toEqual({ status: 'more', failures: 0 })
  expect(run.begun.length).toBeLessThan(1_000)

  const hangs = Promise.withResolvers<Worked>()
  const other = runQueue([0], (piece) => (piece === 0 ? hangs.promise : Promise.resolve(answered)), {
    limits: { runMs: 10, drainMs: 10, longestRunMs: 600_000 },
  })
  await delay(50)
  other.due.push(1)
  await until('the next one is done', () => other.begun.includes(1))
  hangs.resolve(answered)
  expect(await other.ended).toMatchObject({ failures: 0 })
})

test('failures in a row open the circuit, no more are begun than may fail, and an answer forgets them', async () => {
  const run = runQueue(numbers(100), async () => failed)
  expect(await run.ended).toEqual({ status: 'retrying', failures: 5, delayMs: 5_000, error: 'no answer' })
  expect(run.begun).toHaveLength(10)
  const mixed = runQueue(numbers(30), async (piece) => (piece % 5 === 4 ? answered : failed), { limits: { maxConcurrent: 1 } })
  expect(await mixed.ended).toEqual({ status: 'idle', failures: 0 })
  expect(mixed.begun).toHaveLength(30)
})

test('a trial is alone. If it fails, the pause doubles, up to five minutes; if it succeeds, the others follow', async () => {
  for (const [failures, delayMs] of [
    [5, 10_000],
    [6, 20_000],
    [60, 300_000],
  ] as const) {
    const run = runQueue(numbers(20), async () => failed, { failures })
    expect(await run.ended).toEqual({ status: 'retrying', failures: failures + 1, delayMs, error: 'no answer' })
    expect(run.begun).toEqual([0])
  }
  const beside: number[] = []
  const run = runQueue(
    numbers(20),
    async () => {
      beside.push(run.running())
      await delay(5)
      return answered
    },
    { failures: 9 },
  )
  expect(await run.ended).toEqual({ status: 'idle', failures: 0 })
  expect([beside.slice(0, 1), run.most()]).toEqual([[1], 10])
})

test('what says nothing about the system changes no count', async () => {
  const run = runQueue(numbers(10), async () => ({ signal: 'unknown' }), { failures: 3 })
  expect(await run.ended).toEqual({ status: 'idle', failures: 3 })
})

test('a piece of work in which the relay fails is postponed, and the others are done', async () => {
  const postponed: number[] = []
  const work = async (piece: number) => {
    if (piece === 3) throw new Error('a statement has failed')
    return answered
  }
  const run = runQueue(numbers(10), work, { postpone: async (piece) => void postponed.push(piece) })
  expect(await run.ended).toEqual({ status: 'idle', failures: 0 })
  expect([postponed, run.due]).toEqual([[3], []])
  // The database is away.
  const lost = runQueue(numbers(10), work, { postpone: () => Promise.reject(new Error('the database is away')) })
  await expect(lost.ended).rejects.toThrow('the database is away')
})

test('a cancelled run begins nothing more, and ends with what is under way', async () => {
  const cancelled = new AbortController()
  const run = runQueue(
    numbers(50),
    async () => {
      await delay(10)
      cancelled.signal.throwIfAborted()
      return answered
    },
    { cancelled: cancelled.signal, postpone: () => Promise.reject(new Error('must not be postponed')) },
  )
  await until('some are under way', () => run.running() > 0)
  cancelled.abort(new Error('the worker stops'))
  await expect(run.ended).rejects.toThrow('the worker stops')
  expect(run.running()).toBe(0)
})
