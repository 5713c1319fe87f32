export interface Random {
  /** Returns an integer from 0 to `limit - 1`. */
  below(limit: number): number
  /** Returns true with this probability. */
  chance(probability: number): boolean
  pick<T>(values: readonly T[]): T
  /** Returns a number of values. */
  several<T>(values: readonly T[], maxCount: number): T[]
  /** Returns a text of this many characters of the alphabet. */
  text(alphabet: string, length: number): string
}

/** Creates the generator of the request with this index. The same seed and index generate the same request. */
export const createRandom = (seed: number, index = 0): Random => {
  // mulberry32, started at a point of its own for each index.
  let state = (Math.imul(seed, 0x9e37_79b1) ^ Math.imul(index + 1, 0x85eb_ca6b)) >>> 0
  const next = () => {
    state = (state + 0x6d2b_79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  const pick = <T>(values: readonly T[]): T => values[below(values.length)]!
  return {
    below,
    pick,
    chance: (probability) => next() < probability,
    several: (values, maxCount) => Array.from({ length: below(maxCount + 1) }, () => pick(values)),
    text: (alphabet, length) => Array.from({ length }, () => alphabet[below(alphabet.length)]!).join(''),
  }
}
