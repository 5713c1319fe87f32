import { threadTask } from '../../base/thread-task.ts'
import { splitLines } from './lines.ts'
import { createIndexSearch, lineMaxCharacters, type Condition } from './print-list.ts'

/** The bytes of one window of the index of a print list, and what the previous windows have left to it. */
export interface IndexWindow {
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
  /** For each condition, if a line so far has defined its field. */
  defined: boolean[]
}

export interface SearchedIndexWindow extends Pick<IndexWindow, 'line' | 'defined'> {
  /** Offset and length of each range, in the order of the index. Numbers are copied between threads faster than objects. */
  found: number[]
}

/** Searches one window of an index. A window without bytes ends the last line. */
export const searchIndexWindow = (window: IndexWindow): SearchedIndexWindow => {
  const { bytes, from, to, isBackward, maxResults } = window
  const index = createIndexSearch(window.conditions, window)
  const { lines, rest } = bytes.length > 0 ? splitLines(window.line, bytes, lineMaxCharacters) : { lines: [window.line], rest: '' }
  const found: number[] = []
  for (const line of lines) {
    const range = index.read(line)
    if (range && range.offset >= from && range.offset <= to) found.push(range.offset, range.length)
  }
  const kept = 2 * maxResults
  return { found: isBackward ? found.slice(Math.max(found.length - kept, 0)) : found.slice(0, kept), line: rest, defined: index.defined() }
}

export const searchIndexWindowTask = threadTask(import.meta.url, searchIndexWindow)
