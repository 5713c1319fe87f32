import type { StartDocument } from '../../src/db/outbox.ts'
import { createStartPace } from '../../src/temporal/start-pace.ts'

const config = {
  TEMPORAL_START_MAX_LAG_MS: 2_000,
  TEMPORAL_MIN_UNTAKEN_STARTS: 100,
  TEMPORAL_MAX_CONCURRENT_STARTS: 50,
  TEMPORAL_START_TIMEOUT_MS: 5_000,
}
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
  const isTaken = async ({ input }: StartDocument) => {
    asked += 1
    return taken > Number(input.documentId)
  }
  const pace = createStartPace(isTaken, config, () => now)

  const startWaiting = async () => {
    while (arrived - started >= 1 && now >= nextAt) {
      nextAt = now + pace.delayMs()
      if (nextAt > now) return
      pace.begin()
      pace.succeeded(message(String(started)), now)
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
  const { run } = simulate({ arrivalsPerSecond: 50, takenPerSecond: 1_000 })
  const { started, asked } = await run(20)
  expect(started).toBeGreaterThan(990)
  expect(asked).toBeLessThan(60)
})

test.each([5, 16, 100, 250])('under a flood, %d documents per second are started if the workers take as many', async (takenPerSecond) => {
  const { run } = simulate({ arrivalsPerSecond: 300, takenPerSecond })
  await run(30)
  const { started, taken, asked, mostUntaken } = await run(60)
  // The workers are never without work.
  expect(taken).toBeGreaterThan(0.99 * 60 * takenPerSecond)
  expect(started).toBeLessThan(1.05 * 60 * takenPerSecond)
  expect(mostUntaken).toBeLessThanOrEqual(Math.max(100, 3 * takenPerSecond))
  expect(asked).toBeLessThan(60 * 10)
})

test('when the workers are faster again, so are the starts', async () => {
  const { run, load } = simulate({ arrivalsPerSecond: 300, takenPerSecond: 16 })
  await run(30)
  load.takenPerSecond = 10_000
  // Everything that has waited.
  expect((await run(20)).started).toBeGreaterThan(300 * 50 - 16 * 30 - 500)
  expect((await run(10)).started).toBeGreaterThan(2_990)
})

test('without workers, some documents are started and then one per second', async () => {
  const { run } = simulate({ arrivalsPerSecond: 300, takenPerSecond: 0 })
  expect((await run(10)).started).toBeLessThanOrEqual(100 + 10)
  const { started } = await run(10)
  expect(started).toBeGreaterThanOrEqual(9)
  expect(started).toBeLessThanOrEqual(11)
})

test('a few documents are started at once even if no worker takes them', async () => {
  const { run } = simulate({ arrivalsPerSecond: 1, takenPerSecond: 0 })
  expect((await run(90)).started).toBeGreaterThanOrEqual(89)
})

test('one workflow that no worker takes does not hold up the others', async () => {
  let now = 0
  const first = message('0')
  const pace = createStartPace(
    async (asked) => asked !== first,
    { ...config, TEMPORAL_MIN_UNTAKEN_STARTS: 4 },
    () => now,
  )
  for (let index = 0; index < 100; index += 1) {
    now += 250
    expect(pace.delayMs()).toBe(0)
    pace.begin()
    pace.succeeded(index === 0 ? first : message(String(index)), now)
    await settle()
  }
})

test('a server that takes no more calls gets none for a second; another error changes nothing', async () => {
  let now = 0
  const pace = createStartPace(
    async () => true,
    config,
    () => now,
  )
  pace.begin()
  pace.failed(Object.assign(new Error('3 INVALID_ARGUMENT'), { code: 3 }), now)
  expect(pace.delayMs()).toBe(0)
  pace.begin()
  pace.failed(Object.assign(new Error('8 RESOURCE_EXHAUSTED'), { code: 8 }), now)
  expect([pace.delayMs(), pace.room()]).toEqual([1_000, 0])
  now += 1_000
  expect([pace.delayMs(), pace.room()]).toEqual([0, 4])
})

test('starts that fail do not count as waiting for a worker', async () => {
  const pace = createStartPace(
    async () => false,
    config,
    () => 0,
  )
  for (let index = 0; index < 1_000; index += 1) {
    pace.begin()
    pace.failed(new Error('14 UNAVAILABLE'), 0)
  }
  expect(pace.room()).toBe(8)
})

test('more starts are under way the longer all are quick, and half as many as soon as one is slow', () => {
  let now = 0
  const pace = createStartPace(
    async () => true,
    config,
    () => now,
  )
  const startFor = (ms: number) => {
    const beganAt = now
    pace.begin()
    now += ms
    pace.succeeded(message(String(now)), beganAt)
  }
  expect(pace.concurrent()).toBe(8)
  for (let index = 0; index < 5_000; index += 1) startFor(10)
  expect(pace.concurrent()).toBe(50)
  const beganAt = now
  startFor(1_001)
  expect(pace.concurrent()).toBe(25)
  // Began before that, together with the slow one.
  pace.succeeded(message('X'), beganAt)
  expect(pace.concurrent()).toBe(25)
  for (let index = 0; index < 10; index += 1) startFor(1_001)
  expect(pace.concurrent()).toBe(1)
})
