import * as fc from 'fast-check'
import { setTimeout as delay } from 'node:timers/promises'

// few different things, so that what they mean to a parser meets by chance
export const bytesOf = (tokens: string[], maxLength: number): fc.Arbitrary<Buffer> =>
  fc
    .array(
      fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...tokens).map((token) => Buffer.from(token, 'latin1')) },
        { weight: 1, arbitrary: fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)) },
      ),
      { maxLength },
    )
    .map((pieces) => Buffer.concat(pieces))

interface Mutation {
  kind: 'flip' | 'drop' | 'duplicate' | 'insert' | 'truncate'
  at: number
  lengthBytes: number
  inserted: Buffer
}

/** What a network, a proxy or a bad program does to bytes. The tokens are what it may put in. */
export const mutationsOf = (tokens: string[]): fc.Arbitrary<Mutation[]> =>
  fc.array(
    fc.record({
      kind: fc.constantFrom<Mutation['kind'][]>('flip', 'drop', 'duplicate', 'insert', 'truncate'),
      at: fc.nat(),
      lengthBytes: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 40 })),
      inserted: bytesOf(tokens, 4),
    }),
    { minLength: 1, maxLength: 3 },
  )

export const mutate = (bytes: Buffer, mutations: Mutation[]): Buffer =>
  mutations.reduce((before, { kind, at, lengthBytes, inserted }) => {
    const offset = at % (before.length + 1)
    const [start, middle, rest] = [
      before.subarray(0, offset),
      before.subarray(offset, offset + lengthBytes),
      before.subarray(offset + lengthBytes),
    ]
    const flipped = middle.map((byte) => byte ^ (1 << (lengthBytes % 8)))
    const between = { flip: [flipped], drop: [], duplicate: [middle, middle], insert: [inserted, middle], truncate: [] }[kind]
    return Buffer.concat(kind === 'truncate' ? [start] : [start, ...between, rest])
  }, bytes)

const foreverMs = 30_000
const measuredAtMost = 3

/**
 * Fails where the work costs more than a second of processor time, or does not end. What seems to cost that much is measured again: an
 * input that is dear is so each time, and a garbage collection that came in between is not the input's.
 */
export const withinASecond = async <T>(work: () => T | Promise<T>): Promise<T> => {
  const costsMs: number[] = []
  for (;;) {
    const began = process.cpuUsage()
    const done = await orReject(work)
    costsMs.push(process.cpuUsage(began).user / 1_000)
    if (Math.min(...costsMs) < 1_000) return done
    if (costsMs.length === measuredAtMost) throw new Error(`costs more than a second each time: ${costsMs.join(', ')} ms`)
  }
}

const orReject = async <T>(work: () => T | Promise<T>): Promise<T> => {
  const abort = new AbortController()
  const late = delay(foreverMs, undefined, { signal: abort.signal }).then(
    () => Promise.reject(new Error(`has not ended in ${foreverMs} ms`)),
    () => new Promise<never>(() => {}),
  )
  try {
    return await Promise.race([work(), late])
  } finally {
    abort.abort()
  }
}

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 2 ** 31)
console.info(`TEST_SEED=${seed}`)

/** Checks a property; the same TEST_SEED checks it with the same values again. */
export const check = async <T>(property: fc.IAsyncPropertyWithHooks<T>, numRuns: number): Promise<void> => {
  // before jest ends the test, and with it what is known of a failure
  await fc.assert(property, { seed, numRuns, interruptAfterTimeLimit: 100_000, markInterruptAsFailure: true })
}
