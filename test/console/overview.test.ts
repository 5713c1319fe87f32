import { rangeNamed, startOf, statesOf, totalsOf } from '../../console/overview.ts'

const now = Date.parse('2026-11-22T22:15:30.000Z')

test.each([
  ['24h', '2026-11-21T23:00:00.000Z'],
  ['7d', '2026-11-15T23:00:00.000Z'],
  ['30d', '2026-10-24T00:00:00.000Z'],
] as const)('the range of %s starts with a whole period', (range, start) => {
  expect(startOf(range, now).toISOString()).toBe(start)
})

test('an unknown range is one day', () => {
  expect(rangeNamed('1y')).toBe('24h')
  expect(rangeNamed('7d')).toBe('7d')
})

test('the totals are the sums of the periods', () => {
  const latency = { p50_ms: null, p95_ms: null, p99_ms: null }
  const start = new Date(now).toISOString()
  expect(
    totalsOf([
      { start, received: 2, delivered: 3, failed: 1, latency },
      { start, received: null, delivered: 1, failed: 0, latency },
    ]),
  ).toEqual({ received: 2, delivered: 4, failed: 1 })
})

test('everything that is under way is shown, the most urgent first', () => {
  const none = {
    unacknowledged_failures: 0,
    unacknowledged_discards: 0,
    pending: 0,
    held: 0,
    retrying: 0,
    stored_bytes: 0,
    max_bytes: null,
  }
  expect(statesOf({ ...none, unacknowledged_failures: 1, pending: 2, held: 3, retrying: 4 })).toEqual([
    ['attention', 1],
    ['retrying', 4],
    ['held', 3],
    ['pending', 2],
  ])
  expect(statesOf({ ...none, held: 3 })).toEqual([['held', 3]])
  expect(statesOf({ ...none, unacknowledged_failures: null })).toEqual([])
})
