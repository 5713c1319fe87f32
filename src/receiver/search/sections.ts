import type { Content, ContentStore } from '../../content/store.ts'

/** A range of a content; both ends are inclusive, and `to` may lie behind the end of the content. */
export interface SectionRange {
  from: number
  to: number
  /** Reads from the end to the beginning. */
  isBackward: boolean
}

export interface SectionOptions {
  /** Ends the reading before the next section: it throws the reason of the signal. */
  signal?: AbortSignal
  sectionBytes?: number
}

// The size that the PostgreSQL store reads at a time.
const defaultSectionBytes = 2 * 1024 * 1024

/**
 * Reads a content section by section, and no further than its reader asks. All sections are in one buffer: each is valid until the next one
 * is read. Threads can share the buffer. A buffer per section would fill the memory faster than it is collected.
 * @param overlapBytes number of bytes that a section repeats of the one before. Nothing is read of a range that is not longer
 */
export async function* readSections(
  store: ContentStore,
  content: Content,
  { from, to, isBackward, overlapBytes = 0 }: SectionRange & { overlapBytes?: number },
  { signal, sectionBytes = defaultSectionBytes }: SectionOptions = {},
): AsyncGenerator<{ bytes: Uint8Array; start: number }, void, undefined> {
  const last = Math.min(to, content.sizeBytes - 1)
  const readableBytes = Math.max(last - from + 1, 0)
  const wholeSectionBytes = Math.max(sectionBytes, overlapBytes + 1)
  const buffer = new Uint8Array(new SharedArrayBuffer(Math.min(wholeSectionBytes, readableBytes)))
  for (let done = 0; done < readableBytes - overlapBytes; done += wholeSectionBytes - overlapBytes) {
    signal?.throwIfAborted()
    const start = isBackward ? Math.max(last - done - wholeSectionBytes + 1, from) : from + done
    const end = isBackward ? last - done : Math.min(start + wholeSectionBytes - 1, last)
    let filled = 0
    for await (const chunk of store.read(content, { start, end })) {
      buffer.set(chunk as Buffer, filled)
      filled += (chunk as Buffer).length
    }
    if (filled !== end - start + 1) throw new Error(`content ${content.id} lacks bytes between ${start} and ${end}`)
    yield { bytes: buffer.subarray(0, filled), start }
  }
}
