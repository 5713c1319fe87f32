import { formatBytes, formatDuration, formatRelative } from '../../console/format.ts'

test.each([
  [0, 'en', '0 B'],
  [999, 'en', '999 B'],
  [1_000, 'en', '1 kB'],
  [1_500_000, 'en', '1.5 MB'],
  [1_500_000, 'de', '1,5 MB'],
  [4_294_967_296, 'en', '4.3 GB'],
  [5e15, 'en', '5,000 TB'],
])('%p bytes in %s are %s', (bytes, locale, text) => {
  expect(formatBytes(bytes, locale)).toBe(text)
})

test.each([
  [-5, '0 ms'],
  [850, '850 ms'],
  [1_200, '1.2 s'],
  [60_000, '1 min'],
  [185_000, '3 min 5 s'],
  [7_800_000, '2 h 10 min'],
  [273_600_000, '3 d 4 h'],
])('%p milliseconds are %s', (ms, text) => {
  expect(formatDuration(ms, 'en')).toBe(text)
})

test.each([
  [-30_000, 'en', '30 seconds ago'],
  [-3 * 3_600_000, 'en', '3 hours ago'],
  [90_000, 'en', 'in 1 minute'],
  [-2 * 86_400_000, 'de', 'vorgestern'],
  [0, 'en', 'now'],
])('%p milliseconds from now in %s are "%s"', (offset, locale, text) => {
  const now = Date.UTC(2026, 10, 22)
  expect(formatRelative(new Date(now + offset).toISOString(), now, locale)).toBe(text)
})
