/**
 * Limits the time spent waiting for the chunks of a source: `waitMaxMs` in total until it has sent `minBytes`, and the same again for the
 * next. The time that the reader takes between two chunks does not count.
 * @param end is called when the time is up. It must end the source, so that the chunk that is waited for fails
 */
export const createStallLimit = ({ waitMaxMs, minBytes }: { waitMaxMs: number; minBytes: number }, end: () => void) => {
  let waitedMs = 0
  let receivedBytes = 0

  /** Waits for a chunk. @returns undefined at the end of the source */
  return async <Chunk extends Uint8Array>(next: () => Promise<IteratorResult<Chunk, undefined>>): Promise<Chunk | undefined> => {
    const startedAt = performance.now()
    const timer = setTimeout(end, Math.max(0, waitMaxMs - waitedMs))
    try {
      const { done, value } = await next()
      if (done) return undefined
      waitedMs += performance.now() - startedAt
      receivedBytes += value.length
      if (receivedBytes >= minBytes) {
        waitedMs = 0
        receivedBytes = 0
      }
      return value
    } finally {
      clearTimeout(timer)
    }
  }
}
