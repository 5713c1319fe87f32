import type { Content, ContentStore } from '../../content/store.ts'
import type { SearchedWindow, SearchWindow } from './search-window.ts'
import { readWindows, type WindowOptions, type WindowRange } from './windows.ts'

/** A search for matches that begin in a range of a content. Matches may overlap. */
export type Search = Pick<SearchWindow, 'pattern' | 'isBackward' | 'isCaseSensitive' | 'maxResults'> & WindowRange

interface Options extends WindowOptions {
  /** Searches one window, as a rule on a thread of its own. */
  searchWindow: (window: SearchWindow) => Promise<SearchedWindow>
}

/** Returns the offsets of a pattern in stored bytes, in the order of the search. Reads window by window, and no further than necessary. */
export const searchContent = async (
  store: ContentStore,
  content: Content,
  { from, to, ...search }: Search,
  { searchWindow, ...options }: Options,
): Promise<number[]> => {
  const found: number[] = []
  if (search.maxResults === 0) return found
  let matched = 0
  const range = { from, to: to + search.pattern.length - 1, isBackward: search.isBackward }
  for await (const { bytes, start } of readWindows(store, content, range, options)) {
    const searched = await searchWindow({ ...search, bytes, matched, maxResults: search.maxResults - found.length })
    for (const offset of searched.found) found.push(start + offset)
    if (found.length === search.maxResults) break
    matched = searched.matched
  }
  return found
}
