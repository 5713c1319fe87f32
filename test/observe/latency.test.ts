import { addHistograms, percentileOf } from '../../src/observe/statistics.ts'

test('a percentile lies in the bucket that contains it', () => {
  const histogram = { 64: 50, 128: 45, 4096: 5 }
  expect(percentileOf(histogram, 0.5)).toBe(64)
  expect(percentileOf(histogram, 0.25)).toBe(48)
  expect(percentileOf(histogram, 0.95)).toBe(128)
  expect(percentileOf(histogram, 0.99)).toBeGreaterThan(2048)
  expect(percentileOf(histogram, 0.99)).toBeLessThanOrEqual(4096)
})

test('without deliveries there is no percentile', () => {
  expect(percentileOf({}, 0.5)).toBeNull()
  expect(percentileOf({ 64: 0 }, 0.5)).toBeNull()
})

test('histograms of hours add up to that of the range', () => {
  expect(addHistograms([{ 64: 1 }, { 64: 2, 128: 3 }, {}])).toEqual({ 64: 3, 128: 3 })
})
