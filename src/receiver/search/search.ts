import { threadTask } from '../../base/thread-task.ts'
import type { Content, ContentStore } from '../../content/store.ts'
import { readSections, type SectionOptions, type SectionRange } from './sections.ts'

interface SearchSection {
  bytes: Uint8Array
  pattern: Uint8Array
  /** Searches from the end to the beginning. */
  isBackward: boolean
  /** Otherwise, ASCII letters match in either case. The encoding of other bytes is unknown. */
  isCaseSensitive: boolean
  maxResults: number
}

const upperA = 0x41
const upperZ = 0x5a
const caseDistance = 0x20
const lowerCaseBytes = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= upperA && byte <= upperZ ? byte + caseDistance : byte))

const bufferOf = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const folded = (bytes: Uint8Array): Buffer => {
  const copy = Buffer.allocUnsafe(bytes.length)
  for (let at = 0; at < bytes.length; at += 1) copy[at] = lowerCaseBytes[bytes[at]!]!
  return copy
}

/**
 * Searches one section. `Buffer.indexOf` needs 10 ms for 2 MiB, and up to 2.5 s for a hostile pattern, such as 512 times "a", "b" and 511
 * times "a" in a text of "a". So it runs on a thread, and the end of the search ends the thread.
 * @returns where matches begin, relative to the section, in the order of the search. Matches may overlap
 */
export const searchSection = ({ bytes, pattern, isBackward, isCaseSensitive, maxResults }: SearchSection): number[] => {
  const [text, wanted] = isCaseSensitive ? [bufferOf(bytes), pattern] : [folded(bytes), folded(pattern)]
  const found: number[] = []
  let at = isBackward ? text.lastIndexOf(wanted) : text.indexOf(wanted)
  while (at >= 0 && found.length < maxResults) {
    found.push(at)
    // An offset of -1 would mean the last byte.
    if (isBackward) at = at === 0 ? -1 : text.lastIndexOf(wanted, at - 1)
    else at = text.indexOf(wanted, at + 1)
  }
  return found
}

export const searchSectionTask = threadTask(import.meta.url, searchSection)

/** A search for matches that begin in a range of a content. Matches may overlap. */
export type Search = Omit<SearchSection, 'bytes'> & SectionRange

interface Options extends SectionOptions {
  /** Searches one section, as a rule on a thread of its own. */
  searchSection: (section: SearchSection) => Promise<number[]>
}

/** Returns the offsets of a pattern in stored bytes, in the order of the search. Reads section by section, and no further than necessary. */
export const searchContent = async (
  store: ContentStore,
  content: Content,
  { from, to, ...search }: Search,
  { searchSection: searchOne, ...options }: Options,
): Promise<number[]> => {
  const found: number[] = []
  if (search.maxResults === 0) return found
  // Each match lies in exactly one section as a whole.
  const overlapBytes = search.pattern.length - 1
  const range = { from, to: to + overlapBytes, isBackward: search.isBackward, overlapBytes }
  for await (const { bytes, start } of readSections(store, content, range, options)) {
    const offsets = await searchOne({ ...search, bytes, maxResults: search.maxResults - found.length })
    for (const offset of offsets) found.push(start + offset)
    if (found.length === search.maxResults) break
  }
  return found
}
