import type { Content, ContentStore } from '../../content/store.ts'
import type { IndexWindow, SearchedIndexWindow } from './search-index-window.ts'
import { readWindows, type WindowOptions } from './windows.ts'

export type IndexSearch = Omit<IndexWindow, 'bytes' | 'line' | 'defined'>

interface Options extends WindowOptions {
  /** Searches one window, as a rule on a thread of its own. */
  searchIndexWindow: (window: IndexWindow) => Promise<SearchedIndexWindow>
}

/**
 * Searches the index of a print list for ranges of `data` whose values meet every condition.
 * @returns offset and length of each range in the order of the search, or undefined if the index does not define a field of a condition
 */
export const searchIndex = async (
  store: ContentStore,
  content: Content,
  search: IndexSearch,
  { searchIndexWindow, ...options }: Options,
): Promise<number[][] | undefined> => {
  const { isBackward, maxResults } = search
  const none = new Uint8Array()
  let [line, defined] = ['', search.conditions.map(() => false)]
  let found: number[] = []

  const searchNext = async (bytes: Uint8Array) => {
    const searched = await searchIndexWindow({ ...search, bytes, line, defined })
    ;({ line, defined } = searched)
    found = [...found, ...searched.found]
    const kept = 2 * maxResults
    if (found.length > kept) found = isBackward ? found.slice(found.length - kept) : found.slice(0, kept)
  }
  // The whole index is read in any case, because a later line may define a field.
  const wholeIndex = { from: 0, to: content.sizeBytes - 1, isBackward: false }
  for await (const { bytes } of readWindows(store, content, wholeIndex, options)) await searchNext(bytes)
  await searchNext(none)

  if (!defined.every(Boolean)) return undefined
  const ranges = Array.from({ length: found.length / 2 }, (_, index) => found.slice(2 * index, 2 * index + 2))
  return isBackward ? ranges.toReversed() : ranges
}
