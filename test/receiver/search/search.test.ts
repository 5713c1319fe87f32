import { Readable } from 'node:stream'
import * as fc from 'fast-check'
import type { ContentStore } from '../../../src/content/store.ts'
import { searchContent, searchSection as searchOneSection, type Search } from '../../../src/receiver/search/search.ts'

/** Creates a store that holds bytes in memory and records in `reads` which of them are read. */
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

const searchSection = async (section: Parameters<typeof searchOneSection>[0]) => searchOneSection(section)

/** Searches without sections, as the expected result. */
const searchNaively = (bytes: Buffer, { pattern, from, to, isBackward, isCaseSensitive, maxResults }: Search): number[] => {
  const text = (buffer: Buffer) => {
    const characters = buffer.toString('latin1')
    return isCaseSensitive ? characters : characters.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
  }
  const found = [...bytes.keys()].filter(
    (offset) => offset >= from && offset <= to && text(bytes.subarray(offset, offset + pattern.length)) === text(Buffer.from(pattern)),
  )
  return (isBackward ? found.toReversed() : found).slice(0, maxResults)
}

// Few different bytes, so that patterns are found: both cases, and bytes beyond ASCII that are not letters here.
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

describe('a search section by section', () => {
  test('finds the same as a search of the whole content, for any bytes, pattern, range and section', async () => {
    const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 2 ** 31)
    console.info(`TEST_SEED=${seed}`)
    const property = fc.asyncProperty(
      bytesOf({ maxLength: 60 }),
      search,
      fc.integer({ min: 1, max: 20 }),
      async (bytes, query, sectionBytes) => {
        const { store, content } = storeOf(bytes)
        expect(await searchContent(store, content, query, { sectionBytes, searchSection })).toEqual(searchNaively(bytes, query))
      },
    )
    await fc.assert(property, { seed, numRuns: 3_000 })
  })

  const all = { from: 0, to: Number.MAX_SAFE_INTEGER, isBackward: false, isCaseSensitive: true, maxResults: 1 }

  test('reads only as far as necessary, from either end', async () => {
    const bytes = Buffer.alloc(1_000, 'x')
    const forward = storeOf(bytes)
    await searchContent(forward.store, forward.content, { ...all, pattern: Buffer.from('x') }, { sectionBytes: 100, searchSection })
    expect(forward.reads).toEqual([{ start: 0, end: 99 }])
    const backward = storeOf(bytes)
    const query = { ...all, isBackward: true, pattern: Buffer.from('xx') }
    expect(await searchContent(backward.store, backward.content, query, { sectionBytes: 100, searchSection })).toEqual([998])
    expect(backward.reads).toEqual([{ start: 900, end: 999 }])
  })

  test('never reads more than a section at once', async () => {
    const { store, content, reads } = storeOf(Buffer.alloc(9 * 1024 * 1024))
    expect(await searchContent(store, content, { ...all, pattern: Buffer.from('x') }, { searchSection })).toEqual([])
    expect(reads.map(({ start, end }) => end - start + 1)).toEqual([2, 2, 2, 2, 1].map((mebibytes) => mebibytes * 1024 * 1024))
  })

  test('ends at the next section if its caller has stopped waiting', async () => {
    const { store, content, reads } = storeOf(Buffer.alloc(1_000))
    const stop = new AbortController()
    const untilSecond = async (section: Parameters<typeof searchOneSection>[0]) => {
      if (reads.length === 2) stop.abort(new Error('gone'))
      return searchSection(section)
    }
    const options = { sectionBytes: 100, searchSection: untilSecond, signal: stop.signal }
    await expect(searchContent(store, content, { ...all, pattern: Buffer.from('x') }, options)).rejects.toThrow('gone')
    expect(reads).toHaveLength(2)
  })
})
