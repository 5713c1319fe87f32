/** Returns the value below which a share of the numbers lies, or NaN if there are none. */
export const quantile = (numbers: number[], share: number): number => {
  const sorted = numbers.toSorted((one, other) => one - other)
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN
}

/** Returns the middle number, or the mean of the two in the middle. */
export const median = (numbers: number[]): number => {
  const sorted = numbers.toSorted((one, other) => one - other)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2
}

/** Values of several rounds: the middle one, and how far they lie apart. */
export interface Range {
  min: number
  median: number
  max: number
}

export const rangeOf = (numbers: number[]): Range => ({ min: Math.min(...numbers), median: median(numbers), max: Math.max(...numbers) })

/** Returns the median of each key. A key that a record lacks counts as 0. */
export const mediansOf = (records: Record<string, number>[]): Record<string, number> => {
  const keys = [...new Set(records.flatMap((record) => Object.keys(record)))]
  return Object.fromEntries(keys.map((key) => [key, median(records.map((record) => record[key] ?? 0))]))
}

export const sumOf = (record: Record<string, number>): number => Object.values(record).reduce((sum, value) => sum + value, 0)
