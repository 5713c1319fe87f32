import * as fc from 'fast-check'
import { layOutTimeline, type TimelineDelivery, type TimelineLane } from '../../console/timeline.ts'

const start = Date.UTC(2026, 10, 22, 9)
const [second, hour] = [1_000, 3_600_000]

const delivery = (change: Partial<TimelineDelivery> = {}): TimelineDelivery => ({
  id: 'D1',
  name: 'Archive',
  status: 'delivered',
  statusSinceMs: start + 2 * second,
  nextAttemptAtMs: null,
  attempts: [{ number: 1, startedAtMs: start + second, durationMs: second, outcome: 'delivered' }],
  ...change,
})

test('a document that was delivered at once ends with its delivery, and has no present', () => {
  const { lanes, now } = layOutTimeline(start, [delivery()], start + 100 * hour)
  expect(now).toBeNull()
  const [{ line, attempts, next }] = lanes as [(typeof lanes)[number]]
  expect(line.left).toBe(0)
  expect(line.width).toBeCloseTo(96)
  expect(attempts[0]!.left + attempts[0]!.width).toBeCloseTo(96)
  expect(next).toBeNull()
})

test('a delivery that waits reaches from the receipt over the present to its next attempt', () => {
  const waiting = delivery({
    status: 'retrying',
    nextAttemptAtMs: start + 4 * hour,
    attempts: [{ number: 1, startedAtMs: start + second, durationMs: 200, outcome: 'retryable' }],
  })
  const { lanes, now, ticks } = layOutTimeline(start, [waiting], start + hour)
  expect(now).toBeGreaterThan(lanes[0]!.attempts[0]!.left)
  expect(now).toBeLessThan(lanes[0]!.next!)
  expect(lanes[0]!.next).toBeCloseTo(96)
  expect(lanes[0]!.line.width).toBeCloseTo(96)
  expect(ticks.map(({ ms }) => ms)).toEqual([second, 10 * second, 60 * second, 600 * second, hour])
})

test('attempts that began after an hour are as visible as those of the first seconds', () => {
  const at = (ms: number, number: number) => ({ number, startedAtMs: start + ms, durationMs: 50, outcome: 'retryable' })
  const { lanes } = layOutTimeline(start, [delivery({ attempts: [at(second, 1), at(10 * second, 2), at(hour, 3)] })], start)
  const [first, other, last] = lanes[0]!.attempts as [TimelineLane['attempts'][0], TimelineLane['attempts'][0], TimelineLane['attempts'][0]]
  expect(other.left - first.left).toBeGreaterThan(10)
  expect(last.left - other.left).toBeGreaterThan(10)
  expect(last.width).toBeGreaterThanOrEqual(0.8)
})

test('every position is within the picture, in whatever order clocks put the events', () => {
  const ms = fc.integer({ min: -hour, max: 40 * 24 * hour })
  const attempt = fc.record({
    number: fc.nat(),
    startedAtMs: ms.map((each) => start + each),
    durationMs: fc.nat(hour),
    outcome: fc.string(),
  })
  const arbitrary = fc.record({
    id: fc.string(),
    name: fc.string(),
    status: fc.constantFrom('pending', 'held', 'retrying', 'delivered', 'failed', 'cancelled'),
    statusSinceMs: ms.map((each) => start + each),
    nextAttemptAtMs: fc.option(ms.map((each) => start + each)),
    attempts: fc.array(attempt, { maxLength: 5 }),
  })
  const run = () =>
    fc.assert(
      fc.property(fc.array(arbitrary, { maxLength: 4 }), ms, (deliveries, now) => {
        const timeline = layOutTimeline(start, deliveries, start + now)
        const positions = [
          ...timeline.ticks.map(({ left }) => left),
          timeline.now ?? 0,
          ...timeline.lanes.flatMap(({ line, attempts, next }) => [
            line.width,
            next ?? 0,
            ...attempts.flatMap(({ left, width }) => [left, width]),
          ]),
        ]
        return positions.every((position) => position >= 0 && position <= 96.001)
      }),
    )
  expect(run).not.toThrow()
})
