import { largestOf, layOutBars, roundUp, totalsOf } from '../../console/bars.ts'
import { healthOf } from '../../console/destination-health.ts'

const period = (delivered: number, failed: number) => ({ start: '2026-11-22T10:00:00.000Z', delivered, failed })

test('the highest bar fits, and few failures among many deliveries are visible', () => {
  const series = [period(1_000, 1), period(0, 500), period(0, 0)]
  const bars = layOutBars(series, 2_000)
  expect(bars.map(({ delivered, failed }) => [delivered, failed])).toEqual([
    [50, 4],
    [0, 25],
    [0, 0],
  ])
  for (const { left, width } of bars) expect(left + width).toBeLessThanOrEqual(100)
  for (const { delivered, failed } of layOutBars(series, largestOf(series))) expect(delivered + failed).toBeLessThanOrEqual(100)
  expect(totalsOf(series)).toEqual({ delivered: 1_000, failed: 501 })
})

test('a series without attempts, and an empty one, have a scale', () => {
  expect([largestOf([period(0, 0)]), largestOf([]), largestOf([period(2, 3), period(4, 0)])]).toEqual([1, 1, 5])
  expect(layOutBars([], 1)).toEqual([])
})

test.each([
  [0, 1],
  [1, 1],
  [3, 5],
  [10, 10],
  [11, 20],
  [99, 100],
  [2_001, 5_000],
])('%d is rounded up to %d', (value, expected) => {
  expect(roundUp(value)).toBe(expected)
})

const delivered = '2026-11-22T10:00:00.000Z'

test.each([
  ['connected', 'closed', delivered, 'healthy'],
  ['connected', 'closed', null, 'unused'],
  ['failing', 'closed', delivered, 'failing'],
  ['failing', 'open', delivered, 'paused'],
  // The circuit of a destination may open before a delivery ends failed.
  ['connected', 'open', delivered, 'paused'],
  ['failing', 'half_open', null, 'trying'],
] as const)('a destination that is %s with a circuit that is %s (last delivery: %s) is %s', (status, circuit, last, health) => {
  expect(healthOf({ status, circuit, last_delivered_at: last })).toBe(health)
})
