import type { StartDocument } from '../../src/db/outbox.ts'
import { createStartPace } from '../../src/temporal/start-pace.ts'

const message = (documentId: string) => ({ kind: 'startDocument', input: { documentId } }) as StartDocument

/** Lets the answers of a simulated Temporal arrive. */
const settle = async () => {
  for (let count = 0; count < 10; count += 1) await Promise.resolve()
}

interface Load {
  arrivalsPerSecond: number
  takenPerSecond: number
}

/** Simulates documents that arrive, and workers that take workflows in their order. Each step is a millisecond. */
const simulate = (load: Load) => {
  let now = 0
  let [arrived, started, taken, asked, nextAt] = [0, 0, 0, 0, 0]
  const hasBegun = async ({ input }: StartDocument) => {
    asked += 1
    return taken > Number(input.documentId)
  }
  const pace = createStartPace(hasBegun, () => now)

  const startWaiting = async () => {
    while (arrived - started >= 1 && now >= nextAt) {
      nextAt = now + pace.delayMs()
      if (nextAt > now) return
      pace.begin(message(String(started))).succeeded()
      started += 1
      await settle()
    }
  }
  /** @returns what has happened in this time */
  const run = async (seconds: number) => {
    const before = { started, taken, asked }
    let mostUntaken = 0
    for (const endsAt = now + 1_000 * seconds; now < endsAt; now += 1) {
      taken = Math.min(started, taken + load.takenPerSecond / 1_000)
      arrived += load.arrivalsPerSecond / 1_000
      await startWaiting()
      mostUntaken = Math.max(mostUntaken, started - taken)
    }
    return { started: started - before.started, taken: taken - before.taken, asked: asked - before.asked, mostUntaken }
  }
  return { pace, load, run }
}

test('documents that the workers take as fast as they arrive are started without a delay, and Temporal is asked now and then', async () => {
  const { run } = simulate({ arrivalsPerSecond: 20, takenPerSecond: 1_000 })
  const { started, asked } = await run(20)
  expect(started).toBeGreaterThan(390)
  expect(asked).toBeLessThan(200)
})

test.each([5, 16, 100, 250])('under a flood, %d documents per second are started if the workers take as many', async (takenPerSecond) => {
  const { run } = simulate({ arrivalsPerSecond: 300, takenPerSecond })
  await run(30)
  const { started, taken, asked, mostUntaken } = await run(60)
  // The workers are hardly ever without work.
  expect(taken).toBeGreaterThan(0.98 * 60 * takenPerSecond)
  expect(started).toBeLessThan(1.05 * 60 * takenPerSecond)
  expect(mostUntaken).toBeLessThanOrEqual(Math.max(50, 4 * takenPerSecond))
  expect(asked).toBeLessThanOrEqual(60 * 20)
})

test('when the workers are faster again, so are the starts', async () => {
  const { run, load } = simulate({ arrivalsPerSecond: 300, takenPerSecond: 16 })
  await run(30)
  load.takenPerSecond = 10_000
  // Everything that has waited.
  expect((await run(40)).started).toBeGreaterThan(300 * 70 - 16 * 30 - 500)
  expect((await run(10)).started).toBeGreaterThan(2_990)
})

test('without workers, some documents are started and then one per second', async () => {
  const { run } = simulate({ arrivalsPerSecond: 300, takenPerSecond: 0 })
  expect((await run(10)).started).toBeLessThanOrEqual(16 + 10)
  const { started } = await run(10)
  expect(started).toBeGreaterThanOrEqual(9)
  expect(started).toBeLessThanOrEqual(11)
})

test('documents that arrive once per second are started at once even if no worker takes them', async () => {
  const { run } = simulate({ arrivalsPerSecond: 1, takenPerSecond: 0 })
  expect((await run(90)).started).toBeGreaterThanOrEqual(89)
})

/** Starts documents as fast as the pace allows, for so many seconds. @returns their number */
const startFor = async (seconds: number, pace: ReturnType<typeof createStartPace>, clock: { now: number }) => {
  let started = 0
  for (const endsAt = clock.now + 1_000 * seconds; clock.now < endsAt; clock.now += 10) {
    while (pace.delayMs() === 0) {
      pace.begin(message(`${clock.now}`)).succeeded()
      started += 1
    }
    await settle()
  }
  return started
}

test('workflows that no worker takes hold up the others for seconds only', async () => {
  const clock = { now: 0 }
  const pace = createStartPace(
    // All that are started first.
    async ({ input }) => input.documentId !== '0',
    () => clock.now,
  )
  expect(await startFor(10, pace, clock)).toBeLessThan(16 + 11)
  expect(await startFor(10, pace, clock)).toBeGreaterThan(500)
})

test('a server that takes no more calls gets none for a second; another error changes nothing', async () => {
  const clock = { now: 0 }
  const pace = createStartPace(
    async () => true,
    () => clock.now,
  )
  pace.begin(message('1')).failed(Object.assign(new Error('3 INVALID_ARGUMENT'), { code: 3 }))
  expect(pace.delayMs()).toBe(0)
  // The limit has grown, and an overload halves it.
  await startFor(5, pace, clock)
  while (pace.delayMs() === 0) pace.begin(message('2')).succeeded()
  clock.now += 100
  pace.delayMs()
  await settle()
  const room = pace.room()
  expect(room).toBeGreaterThan(16)
  pace.begin(message('3')).failed(Object.assign(new Error('8 RESOURCE_EXHAUSTED'), { code: 8 }))
  expect([pace.delayMs(), pace.room()]).toEqual([1_000, 0])
  clock.now += 1_000
  expect(pace.delayMs()).toBe(0)
  expect(pace.room()).toBeLessThan(room)
})

test('starts that fail do not count as waiting for a worker', async () => {
  const pace = createStartPace(
    async () => false,
    () => 0,
  )
  for (let index = 0; index < 1_000; index += 1) pace.begin(message(String(index))).failed(new Error('14 UNAVAILABLE'))
  expect(pace.room()).toBe(16)
})
