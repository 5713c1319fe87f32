import { createStartWindow } from '../../src/temporal/start-window.ts'

let nowMs = 0
const now = () => nowMs

beforeEach(() => {
  nowMs = 0
})

type Window = ReturnType<typeof createStartWindow>

/** Documents begin at a constant rate. */
const begin = (window: Window, { perSecond, tookMs, forMs }: { perSecond: number; tookMs: number; forMs: number }) => {
  for (const end = nowMs + forMs; nowMs < end;) {
    nowMs += 1_000 / perSecond
    window.noteBegun(tookMs)
  }
}

test('is at its minimum until the unloaded time is known', () => {
  const window = createStartWindow(now, { minimum: 4, maximum: 200 })
  expect(window.size()).toBe(4)
  nowMs += 2_000
  for (let time = 0; time < 4; time += 1) window.noteBegun(1_000)
  expect(window.size()).toBe(4)
})

test.each([
  [100, 50, 10],
  [500, 50, 50],
  [10, 50, 4],
  [4_000, 50, 200],
])('lets %d documents per second that take %d ms each take twice as long: %d', (perSecond, tookMs, size) => {
  const window = createStartWindow(now, { minimum: 4, maximum: 200 })
  begin(window, { perSecond, tookMs, forMs: 3_000 })
  expect(Math.abs(window.size() - size)).toBeLessThanOrEqual(1)
})

test('does not grow when documents take longer, as it aims at the unloaded time', () => {
  const window = createStartWindow(now, { minimum: 4, maximum: 200 })
  begin(window, { perSecond: 100, tookMs: 50, forMs: 3_000 })
  begin(window, { perSecond: 100, tookMs: 500, forMs: 25_000 })
  expect(Math.abs(window.size() - 10)).toBeLessThanOrEqual(1)
})

test('is at its minimum while the unloaded time is measured anew, and what was started before does not count', () => {
  const window = createStartWindow(now, { minimum: 4, maximum: 200 })
  begin(window, { perSecond: 100, tookMs: 50, forMs: 30_020 })
  begin(window, { perSecond: 100, tookMs: 500, forMs: 490 })
  expect(window.size()).toBe(4)
  begin(window, { perSecond: 100, tookMs: 100, forMs: 3_000 })
  expect(Math.abs(window.size() - 20)).toBeLessThanOrEqual(1)
})

test('shrinks when fewer begin, and grows if others slow the machine down', () => {
  const window = createStartWindow(now, { minimum: 4, maximum: 200 })
  begin(window, { perSecond: 500, tookMs: 20, forMs: 3_000 })
  expect(window.size()).toBeGreaterThan(18)
  begin(window, { perSecond: 50, tookMs: 200, forMs: 10_000 })
  expect(window.size()).toBe(4)
  begin(window, { perSecond: 50, tookMs: 200, forMs: 60_000 })
  expect(Math.abs(window.size() - 20)).toBeLessThanOrEqual(1)
})

test('dispatchers that have divided the workspaces let as many wait together as one that has all of them', () => {
  const whole = createStartWindow(now)
  const shares = [6, 6, 4]
  const parts = shares.map(() => createStartWindow(now))
  const sum = () => parts.reduce((total, window, index) => total + window.size(shares[index]! / 16), 0)
  expect([whole.size(), sum()]).toEqual([8, 8])
  // Each begins its part of 320 documents per second.
  for (const end = nowMs + 3_000; nowMs < end;) {
    nowMs += 50
    for (let count = 0; count < 16; count += 1) whole.noteBegun(100)
    parts.forEach((window, index) => {
      for (let count = 0; count < shares[index]!; count += 1) window.noteBegun(100)
    })
  }
  expect(Math.abs(whole.size() - 64)).toBeLessThanOrEqual(2)
  expect(Math.abs(sum() - 64)).toBeLessThanOrEqual(4)
})

test('a dispatcher with one share has a place for a workspace that has nothing open', () => {
  expect(createStartWindow(now).size(1 / 16)).toBe(2)
})
