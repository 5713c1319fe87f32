import { setTimeout as delay } from 'node:timers/promises'
import * as fc from 'fast-check'

/** Returns random bytes that consist mostly of these tokens, so that tokens with a meaning for a parser often meet. */
export const bytesOf = (tokens: string[], maxLength: number): fc.Arbitrary<Buffer> =>
  fc
    .array(
      fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...tokens).map((token) => Buffer.from(token, 'latin1')) },
        { weight: 1, arbitrary: fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)) },
      ),
      { maxLength },
    )
    .map((parts) => Buffer.concat(parts))

interface Mutation {
  kind: 'flip' | 'drop' | 'duplicate' | 'insert' | 'truncate'
  position: number
  lengthBytes: number
  inserted: Buffer
}

/** Generates damage that a network, a proxy or a faulty program does to bytes. Inserted bytes consist of the tokens. */
export const mutationsOf = (tokens: string[]): fc.Arbitrary<Mutation[]> =>
  fc.array(
    fc.record({
      kind: fc.constantFrom<Mutation['kind'][]>('flip', 'drop', 'duplicate', 'insert', 'truncate'),
      position: fc.nat(),
      lengthBytes: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 40 })),
      inserted: bytesOf(tokens, 4),
    }),
    { minLength: 1, maxLength: 3 },
  )

export const mutate = (bytes: Buffer, mutations: Mutation[]): Buffer =>
  mutations.reduce((before, { kind, position, lengthBytes, inserted }) => {
    const offset = position % (before.length + 1)
    const [start, middle, rest] = [
      before.subarray(0, offset),
      before.subarray(offset, offset + lengthBytes),
      before.subarray(offset + lengthBytes),
    ]
    const flipped = middle.map((byte) => byte ^ (1 << (lengthBytes % 8)))
    const between = { flip: [flipped], drop: [], duplicate: [middle, middle], insert: [inserted, middle], truncate: [] }[kind]
    return Buffer.concat(kind === 'truncate' ? [start] : [start, ...between, rest])
  }, bytes)

const timeoutMs = 90_000
const maxMeasurements = 3

/**
 * Runs the work and fails if it uses more than a second of CPU time or does not end. Work over the limit is measured again: an expensive
 * input is expensive every time, whereas a garbage collection during one measurement is not caused by the input.
 */
export const withinASecond = async <T>(work: () => T | Promise<T>): Promise<T> => {
  const costsMs: number[] = []
  for (;;) {
    const before = process.cpuUsage()
    const result = await withTimeout(work)
    costsMs.push(process.cpuUsage(before).user / 1_000)
    if (Math.min(...costsMs) < 1_000) return result
    if (costsMs.length === maxMeasurements) throw new Error(`used more than a second of CPU time each time: ${costsMs.join(', ')} ms`)
  }
}

const withTimeout = async <T>(work: () => T | Promise<T>): Promise<T> => {
  const abort = new AbortController()
  const timeout = delay(timeoutMs, undefined, { signal: abort.signal }).then(
    () => Promise.reject(new Error(`did not end within ${timeoutMs} ms`)),
    () => new Promise<never>(() => {}),
  )
  try {
    return await Promise.race([work(), timeout])
  } finally {
    abort.abort()
  }
}

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 2 ** 31)
console.info(`TEST_SEED=${seed}`)

/** Checks a property. The same TEST_SEED checks the same values again. */
export const check = async <T>(property: fc.IAsyncPropertyWithHooks<T>, numRuns: number): Promise<void> => {
  // Stop before the timeout of jest, which would hide the values of a failure.
  await fc.assert(property, { seed, numRuns, interruptAfterTimeLimit: 100_000, markInterruptAsFailure: true })
}
