/** The part of the memory budget that one source uses. */
export interface Memory {
  /** Reserves memory for a body, or for a head: a request without its bodies. @returns false if not enough is left for this source */
  reserve(bytes: number, what: 'body' | 'head'): boolean
  release(bytes: number): void
}

const hourMs = 3_600_000
const headFactor = 3

/**
 * Creates the budget of captured requests: at most `maxBytes` of memory, which source addresses share, and as many bytes on disk for the
 * refused requests of one workspace in one hour.
 *
 * A source gets memory for bodies only as long as it has no more than is still free: one source alone uses at most half, two a third each,
 * and the next one always finds room. The method is called "dynamic threshold" (Choudhury and Hahne, 1998). For heads, a source may have
 * three times as much as is free, so that its bodies, however large, never keep its requests from being captured.
 */
export const createCaptureBudget = (maxBytes: number, now: () => number = Date.now) => {
  let usedBytes = 0
  const usedBySource = new Map<string, number>()
  let hour = 0
  const refusedBytes = new Map<string, number>()
  const refusedInThisHour = () => {
    const thisHour = Math.floor(now() / hourMs)
    if (thisHour !== hour) refusedBytes.clear()
    hour = thisHour
    return refusedBytes
  }
  return {
    /** Returns the memory of a source. */
    of: (source: string): Memory => ({
      reserve: (bytes, what) => {
        const ownBytes = (usedBySource.get(source) ?? 0) + bytes
        const freeBytes = maxBytes - usedBytes - bytes
        if (ownBytes > (what === 'head' ? headFactor * freeBytes : freeBytes)) return false
        usedBytes += bytes
        usedBySource.set(source, ownBytes)
        return true
      },
      release: (bytes) => {
        usedBytes -= bytes
        const ownBytes = (usedBySource.get(source) ?? 0) - bytes
        if (ownBytes > 0) usedBySource.set(source, ownBytes)
        else usedBySource.delete(source)
      },
    }),

    /** Returns true if a workspace has stored as much of refused requests in this hour as it may. */
    isSpentOnRefused: (workspace: string): boolean => (refusedInThisHour().get(workspace) ?? 0) >= maxBytes,

    /** @param workspace an existing one: each takes memory until the end of the hour */
    spendOnRefused: (workspace: string, bytes: number): void => {
      const spent = refusedInThisHour()
      spent.set(workspace, (spent.get(workspace) ?? 0) + bytes)
    },
  }
}
