import type { Content, ContentStore } from '../../content/store.ts'

/** A range of a content; both ends are inclusive, and `to` may lie behind the end of the content. */
export interface WindowRange {
  from: number
  to: number
  /** Reads from the end to the beginning. */
  isBackward: boolean
}

export interface WindowOptions {
  /** Ends the reading before the next window: it throws the reason of the signal. */
  signal?: AbortSignal
  windowBytes?: number
}

// The size that the PostgreSQL store reads at a time.
const defaultWindowBytes = 2 * 1024 * 1024

/**
 * Reads a content window by window, and no further than its reader asks. All windows are in one buffer: each is valid until the next one
 * is read. Threads can share the buffer. A buffer per window would fill the memory faster than it is collected.
 * @param overlapBytes number of bytes that a window repeats of the one before. Nothing is read of a range that is not longer
 */
export async function* readWindows(
  store: ContentStore,
  content: Content,
  { from, to, isBackward, overlapBytes = 0 }: WindowRange & { overlapBytes?: number },
  { signal, windowBytes = defaultWindowBytes }: WindowOptions = {},
): AsyncGenerator<{ bytes: Uint8Array; start: number }, void, undefined> {
  const last = Math.min(to, content.sizeBytes - 1)
  const readableBytes = Math.max(last - from + 1, 0)
  const wholeWindowBytes = Math.max(windowBytes, overlapBytes + 1)
  const buffer = new Uint8Array(new SharedArrayBuffer(Math.min(wholeWindowBytes, readableBytes)))
  for (let done = 0; done < readableBytes - overlapBytes; done += wholeWindowBytes - overlapBytes) {
    signal?.throwIfAborted()
    const start = isBackward ? Math.max(last - done - wholeWindowBytes + 1, from) : from + done
    const end = isBackward ? last - done : Math.min(start + wholeWindowBytes - 1, last)
    let filled = 0
    for await (const chunk of store.read(content, { start, end })) {
      buffer.set(chunk as Buffer, filled)
      filled += (chunk as Buffer).length
    }
    if (filled !== end - start + 1) throw new Error(`content ${content.id} lacks bytes between ${start} and ${end}`)
    yield { bytes: buffer.subarray(0, filled), start }
  }
}
