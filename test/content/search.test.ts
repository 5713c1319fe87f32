import * as fc from 'fast-check'
import { Readable } from 'node:stream'
import { searchContent, type Search } from '../../src/content/search.ts'
import type { ContentStore } from '../../src/content/store.ts'

/** Bytes in memory that are read like any others; `reads` tells which ones were. */
const storeOf = (bytes: Buffer) => {
  const reads: { start: number; end: number }[] = []
  const store: Pick<ContentStore, 'read'> = {
    read: (_, { start = 0, end = bytes.length - 1 } = {}) => {
      reads.push({ start, end })
      return Readable.from([bytes.subarray(start, end + 1)], { objectMode: false })
    },
  }
  return { store: store as ContentStore, content: { id: 'x', sizeBytes: bytes.length }, reads }
}

/** The same without any cleverness. */
const naively = (bytes: Buffer, { pattern, from, to, isBackward, isCaseSensitive, maxResults }: Search): number[] => {
  const text = (buffer: Buffer) => {
    const characters = buffer.toString('latin1')
    return isCaseSensitive ? characters : characters.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
  }
  const found = [...bytes.keys()].filter(
    (offset) => offset >= from && offset <= to && text(bytes.subarray(offset, offset + pattern.length)) === text(pattern),
  )
  return (isBackward ? found.toReversed() : found).slice(0, maxResults)
}

// few different bytes, so that there is something to find; upper and lower case, and what only looks like it beyond ASCII
const bytesOf = (constraints: { minLength?: number; maxLength: number }) =>
  fc.array(fc.constantFrom(...Buffer.from('aAbBzZ@[\xe4\xc4', 'latin1')), constraints).map((bytes) => Buffer.from(bytes))

const search = fc.record({
  pattern: bytesOf({ minLength: 1, maxLength: 5 }),
  from: fc.nat(70),
  to: fc.oneof(fc.nat(70), fc.constant(Number.MAX_SAFE_INTEGER)),
  isBackward: fc.boolean(),
  isCaseSensitive: fc.boolean(),
  maxResults: fc.nat(70),
})

describe('a search window by window', () => {
  it('finds what a look at the whole finds, for any bytes, pattern, range and window', async () => {
    const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 2 ** 31)
    console.info(`TEST_SEED=${seed}`)
    const property = fc.asyncProperty(
      bytesOf({ maxLength: 60 }),
      search,
      fc.integer({ min: 1, max: 20 }),
      async (bytes, wanted, windowBytes) => {
        const { store, content } = storeOf(bytes)
        expect(await searchContent(store, content, wanted, { windowBytes })).toEqual(naively(bytes, wanted))
      },
    )
    await fc.assert(property, { seed, numRuns: 3_000 })
  })

  const all = { from: 0, to: Number.MAX_SAFE_INTEGER, isBackward: false, isCaseSensitive: true, maxResults: 1 }

  it('reads no further than it must, from either end', async () => {
    const bytes = Buffer.alloc(1_000, 'x')
    const forward = storeOf(bytes)
    await searchContent(forward.store, forward.content, { ...all, pattern: Buffer.from('x') }, { windowBytes: 100 })
    expect(forward.reads).toEqual([{ start: 0, end: 99 }])
    const backward = storeOf(bytes)
    const wanted = { ...all, isBackward: true, pattern: Buffer.from('xx') }
    expect(await searchContent(backward.store, backward.content, wanted, { windowBytes: 100 })).toEqual([998])
    expect(backward.reads).toEqual([{ start: 900, end: 999 }])
  })

  it('never holds more than a window', async () => {
    const { store, content, reads } = storeOf(Buffer.alloc(9 * 1024 * 1024))
    expect(await searchContent(store, content, { ...all, pattern: Buffer.from('x') })).toEqual([])
    expect(reads.map(({ start, end }) => end - start + 1)).toEqual([2, 2, 2, 2, 1].map((mebibytes) => mebibytes * 1024 * 1024))
  })

  it('ends as soon as nobody waits for it', async () => {
    const { store, content, reads } = storeOf(Buffer.alloc(1_000))
    const goOn = () => {
      if (reads.length === 2) throw new Error('gone')
    }
    await expect(searchContent(store, content, { ...all, pattern: Buffer.from('x') }, { windowBytes: 100, goOn })).rejects.toThrow('gone')
    expect(reads).toHaveLength(2)
  })
})
