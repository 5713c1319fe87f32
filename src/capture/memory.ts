/** A part of the memory budget that one source uses. */
export interface Memory {
  /** Reserves memory. @returns false if not enough is left for this source */
  reserve(bytes: number): boolean
  release(bytes: number): void
}

/**
 * Creates a memory budget that source addresses share. A source gets more only while it has less than is still free: one source alone uses
 * at most half, two a third each, and the next one always finds room. The method is called "dynamic threshold" (Choudhury and Hahne, 1998).
 */
export const createSharedMemory = (maxBytes: number) => {
  let usedBytes = 0
  const usedBySource = new Map<string, number>()
  return {
    of: (source: string): Memory => ({
      reserve: (bytes) => {
        const ownBytes = (usedBySource.get(source) ?? 0) + bytes
        if (ownBytes > maxBytes - usedBytes) return false
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
  }
}
