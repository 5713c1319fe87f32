import type { Content, ContentStore } from './store.ts'

/** What is looked for: matches that begin at `from` to `to`, both inclusive; may overlap. */
export interface Search {
  pattern: Buffer
  from: number
  to: number
  /** From the end to the beginning. */
  isBackward: boolean
  /** If not, A to Z are a to z. Beyond ASCII nobody says what the bytes mean. */
  isCaseSensitive: boolean
  maxResults: number
}

interface Options {
  windowBytes?: number
  /** Called before each window: may throw where nobody waits for the result any more. */
  goOn?: () => void
}

// what the PostgreSQL store reads in one go
const defaultWindowBytes = 2 * 1024 * 1024

const upperA = 0x41
const upperZ = 0x5a
const caseDistance = 0x20

const toLowerCaseInPlace = (bytes: Buffer): void => {
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index]!
    if (byte >= upperA && byte <= upperZ) bytes[index] = byte + caseDistance
  }
}

/**
 * Offsets of a pattern in stored bytes, in the order of the search. Reads window by window and no further than it must; what may be
 * the beginning (backward: the end) of a match that crosses a border is carried over to the next window.
 */
export const searchContent = async (
  store: ContentStore,
  content: Content,
  search: Search,
  { windowBytes = defaultWindowBytes, goOn = () => {} }: Options = {},
): Promise<number[]> => {
  const { isBackward, isCaseSensitive, maxResults } = search
  const pattern = Buffer.from(search.pattern)
  if (!isCaseSensitive) toLowerCaseInPlace(pattern)
  const carryBytes = pattern.length - 1
  const first = search.from
  const last = Math.min(search.to + carryBytes, content.sizeBytes - 1)
  // one for all windows: a new one each would be garbage faster than it is collected
  const bytes = Buffer.alloc(Math.min(windowBytes, Math.max(last - first + 1, 0)) + carryBytes)
  let carried = 0
  const found: number[] = []

  const readInto = async (at: number, start: number, end: number): Promise<void> => {
    goOn()
    let filled = 0
    for await (const piece of store.read(content, { start, end })) filled += (piece as Buffer).copy(bytes, at + filled)
    if (filled !== end - start + 1) throw new Error(`content ${content.id} lacks bytes between ${start} and ${end}`)
    if (!isCaseSensitive) toLowerCaseInPlace(bytes.subarray(at, at + filled))
  }

  if (isBackward) {
    for (let end = last; end >= first && found.length < maxResults; end -= windowBytes) {
      const start = Math.max(end - windowBytes + 1, first)
      const length = end - start + 1
      bytes.copyWithin(length, 0, carried)
      await readInto(0, start, end)
      const window = bytes.subarray(0, length + carried)
      for (let at = window.lastIndexOf(pattern); at >= 0 && found.length < maxResults;) {
        found.push(start + at)
        at = at > 0 ? window.lastIndexOf(pattern, at - 1) : -1
      }
      carried = Math.min(window.length, carryBytes)
    }
  } else {
    for (let start = first; start <= last && found.length < maxResults; start += windowBytes) {
      const end = Math.min(start + windowBytes - 1, last)
      await readInto(carried, start, end)
      const window = bytes.subarray(0, carried + end - start + 1)
      const offset = start - carried
      for (let at = window.indexOf(pattern); at >= 0 && found.length < maxResults; at = window.indexOf(pattern, at + 1)) {
        found.push(offset + at)
      }
      carried = Math.min(window.length, carryBytes)
      bytes.copyWithin(0, window.length - carried, window.length)
    }
  }
  return found
}
