import { retryAfterMs, waitOf } from '../../../src/connectors/shared/retry-after.ts'

const now = new Date('2026-11-29T10:00:00Z')

test.each([
  ['7', 7_000],
  [' 7 ', 7_000],
  ['"7"', 7_000],
  ['0', 0],
  ['2.542', 2_542],
  ['2.0', 2_000],
  ['0.503', 503],
  ['.5', 500],
  ['1e3', 1_000_000],
  ['2.542s', 2_542],
  ['30 seconds', 30_000],
  ['120, 60', 120_000],
  ['60,soon,120', 120_000],
  ['Sun, 29 Nov 2026 10:00:30 GMT', 30_000],
  ['Sunday, 29-Nov-26 10:00:30 GMT', 30_000],
  ['Sun Nov 29 10:00:30 2026', 30_000],
  ['2026-11-29T10:00:30Z', 30_000],
  ['2026-11-29T11:00:30+01:00', 30_000],
  ['Sun, 29 Nov 2026 10:00:30 GMT, Sun, 29 Nov 2026 10:00:20 GMT', 30_000],
  ['15, Sun, 29 Nov 2026 10:00:30 GMT', 30_000],
  ['Sun, 29 Nov 2026 09:00:00 GMT', 0],
  ['Sat, 31 Dec 2099 23:59:59 GMT', 365 * 86_400_000],
  ['999999999999999999999999', 365 * 86_400_000],
  ['-1', undefined],
  ['-0.5', undefined],
  ['9'.repeat(400), 365 * 86_400_000],
  ['NaN', undefined],
  ['Infinity', undefined],
  ['0x10', undefined],
  ['120.5.1', undefined],
  ['soon', undefined],
  ['Sun, 99 Nov 2026 99:00:00 GMT', undefined],
  ['', undefined],
  [undefined, undefined],
  [null, undefined],
])('Retry-After: %j is %s ms', (header, expected) => {
  expect(retryAfterMs(header, now)).toBe(expected)
})

test('of several headers, the longest time counts', () => {
  expect(retryAfterMs(['3', '5', 'soon'], now)).toBe(5_000)
})

test.each([
  [{ 'retry-after': '2.5', 'retry-after-ms': '9000' }, 2_500],
  [{ 'retry-after-ms': '250' }, 250],
  [{ 'x-ms-retry-after-ms': '1500.5' }, 1_501],
  [{ 'retry-after': '-1', 'x-ms-retry-after-ms': '40' }, 40],
  [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(now.getTime() / 1_000 + 90) }, 90_000],
  [{ 'ratelimit-remaining': '0', 'ratelimit-reset': '42' }, 42_000],
  [{ 'ratelimit-remaining': '3', 'ratelimit-reset': '42' }, undefined],
  [{ 'ratelimit-reset': '42' }, undefined],
  // The clock of the target is an hour ahead.
  [{ date: 'Sun, 29 Nov 2026 11:00:00 GMT', 'retry-after': 'Sun, 29 Nov 2026 11:00:05 GMT' }, 5_000],
  [{}, undefined],
])('%j asks for %s ms', (headers: Record<string, string>, expected) => {
  expect(waitOf(headers, now)).toBe(expected)
})
