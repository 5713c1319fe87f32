import { threadTask } from '../../base/thread-task.ts'
import type { Content, ContentStore } from '../../content/store.ts'
import { createIndexSearch, lineMaxCharacters, type Condition } from './print-list.ts'
import { readSections, type SectionOptions } from './sections.ts'

/** The bytes of one section of the index of a print list, and what the previous sections have left to it. */
interface IndexSection {
  bytes: Uint8Array
  conditions: Condition[]
  isCaseSensitive: boolean
  /** Only ranges that begin between `from` and `to`, both inclusive, are found. */
  from: number
  to: number
  /** If more ranges are found, keeps the last ones instead of the first ones. */
  isBackward: boolean
  maxResults: number
  /** Beginning of the first line. */
  line: string
  /** Whether a line so far has defined the field, for each condition. */
  defined: boolean[]
}

interface SearchedIndexSection extends Pick<IndexSection, 'line' | 'defined'> {
  /** Offset and length of each range, in the order of the index. Numbers are copied between threads faster than objects. */
  found: number[]
}

const lineFeed = 0x0a

/**
 * Splits bytes into lines, with one character per byte and without line feeds. Longer lines are cut to `maxCharacters`.
 * @param line beginning of the first line, from the bytes before
 * @returns the lines that end in these bytes, and the beginning of the line after them
 */
export const splitLines = (line: string, bytes: Uint8Array, maxCharacters: number): { lines: string[]; rest: string } => {
  const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const lines: string[] = []
  let rest = line
  let start = 0
  const add = (end: number) => {
    rest += chunk.toString('latin1', start, Math.min(end, start + maxCharacters - rest.length))
  }
  for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
    add(end)
    lines.push(rest)
    rest = ''
    start = end + 1
  }
  add(chunk.length)
  return { lines, rest }
}

/** Searches one section of an index. A section without bytes ends the last line. */
export const searchLines = (section: IndexSection): SearchedIndexSection => {
  const { bytes, from, to, isBackward, maxResults } = section
  const index = createIndexSearch(section.conditions, section)
  const { lines, rest } = bytes.length > 0 ? splitLines(section.line, bytes, lineMaxCharacters) : { lines: [section.line], rest: '' }
  const found: number[] = []
  for (const line of lines) {
    const range = index.read(line)
    if (range && range.offset >= from && range.offset <= to) found.push(range.offset, range.length)
  }
  const kept = 2 * maxResults
  return { found: isBackward ? found.slice(Math.max(found.length - kept, 0)) : found.slice(0, kept), line: rest, defined: index.defined() }
}

export const searchIndexSectionTask = threadTask(import.meta.url, searchLines)

type IndexSearch = Omit<IndexSection, 'bytes' | 'line' | 'defined'>

interface Options extends SectionOptions {
  /** Searches one section, as a rule on a thread of its own. */
  searchIndexSection: (section: IndexSection) => Promise<SearchedIndexSection>
}

/**
 * Searches the index of a print list for ranges of `data` whose values meet every condition.
 * @returns offset and length of each range in the order of the search, or undefined if the index does not define a field of a condition
 */
export const searchIndex = async (
  store: ContentStore,
  content: Content,
  search: IndexSearch,
  { searchIndexSection, ...options }: Options,
): Promise<number[][] | undefined> => {
  const { isBackward, maxResults } = search
  const none = new Uint8Array()
  let [line, defined] = ['', search.conditions.map(() => false)]
  let found: number[] = []

  const searchNext = async (bytes: Uint8Array) => {
    const searched = await searchIndexSection({ ...search, bytes, line, defined })
    ;({ line, defined } = searched)
    found = [...found, ...searched.found]
    const kept = 2 * maxResults
    if (found.length > kept) found = isBackward ? found.slice(found.length - kept) : found.slice(0, kept)
  }
  // The whole index is read in any case, because a later line may define a field.
  const wholeIndex = { from: 0, to: content.sizeBytes - 1, isBackward: false }
  for await (const { bytes } of readSections(store, content, wholeIndex, options)) await searchNext(bytes)
  await searchNext(none)

  if (!defined.every(Boolean)) return undefined
  const ranges = Array.from({ length: found.length / 2 }, (_, index) => found.slice(2 * index, 2 * index + 2))
  return isBackward ? ranges.toReversed() : ranges
}
