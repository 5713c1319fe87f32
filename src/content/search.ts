import { buffer } from 'node:stream/consumers'
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

// what the PostgreSQL store reads in one go; a search holds a few of them
const defaultWindowBytes = 2 * 1024 * 1024

const upperA = 0x41
const upperZ = 0x5a
const caseDistance = 0x20

/** Changes the bytes in place. */
const toLowerCase = (bytes: Buffer): Buffer => {
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index]!
    if (byte >= upperA && byte <= upperZ) bytes[index] = byte + caseDistance
  }
  return bytes
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
  const pattern = isCaseSensitive ? search.pattern : toLowerCase(Buffer.from(search.pattern))
  const carryBytes = pattern.length - 1
  const first = search.from
  const last = Math.min(search.to + carryBytes, content.sizeBytes - 1)
  const found: number[] = []

  const read = async (start: number, end: number): Promise<Buffer> => {
    goOn()
    const bytes = await buffer(store.read(content, { start, end }))
    if (bytes.length !== end - start + 1) throw new Error(`content ${content.id} lacks bytes between ${start} and ${end}`)
    return isCaseSensitive ? bytes : toLowerCase(bytes)
  }

  let carry: Buffer = Buffer.alloc(0)
  if (isBackward) {
    for (let end = last; end >= first && found.length < maxResults; end -= windowBytes) {
      const start = Math.max(end - windowBytes + 1, first)
      const bytes = Buffer.concat([await read(start, end), carry])
      for (
        let at = bytes.lastIndexOf(pattern);
        at >= 0 && found.length < maxResults;
        at = at > 0 ? bytes.lastIndexOf(pattern, at - 1) : -1
      ) {
        found.push(start + at)
      }
      carry = Buffer.from(bytes.subarray(0, carryBytes))
    }
  } else {
    for (let start = first; start <= last && found.length < maxResults; start += windowBytes) {
      const bytes = Buffer.concat([carry, await read(start, Math.min(start + windowBytes - 1, last))])
      const offset = start - carry.length
      for (let at = bytes.indexOf(pattern); at >= 0 && found.length < maxResults; at = bytes.indexOf(pattern, at + 1)) {
        found.push(offset + at)
      }
      carry = Buffer.from(bytes.subarray(Math.max(bytes.length - carryBytes, 0)))
    }
  }
  return found
}
