/** Reasons why a body is not stored. docs/captured-requests.md explains them. */
export const truncationReasons = ['too_large', 'incomplete', 'not_json', 'unreadable', 'memory', 'refused', 'unread'] as const

export type TruncationReason = (typeof truncationReasons)[number]

// Enough to tell which kind of body it is.
const headMaxBytes = 64

/** Creates a recorder of a body that streams through the process: it keeps it completely or not at all. @param maxBytes largest body that is kept */
export const createStreamingBody = (maxBytes: number, memory: Memory) => {
  let chunks: Uint8Array[] = []
  let head = Buffer.alloc(0)
  let [sizeBytes, heldBytes] = [0, 0]
  let [isKept, hasEnded] = [true, false]
  let discardReason: TruncationReason | undefined

  /** Frees the memory. The owner of the body must call this in the end. */
  const release = (): void => {
    memory.release(heldBytes)
    chunks = []
    heldBytes = 0
    isKept = false
  }

  /** Returns why the body is not kept. An empty body is never truncated. */
  const truncation = (): TruncationReason | null => {
    if (hasEnded && sizeBytes === 0) return null
    if (discardReason) return discardReason
    if (sizeBytes > maxBytes) return 'too_large'
    if (!hasEnded) return 'incomplete'
    return isKept ? null : 'memory'
  }

  return {
    add: (chunk: Uint8Array): void => {
      sizeBytes += chunk.length
      if (head.length < headMaxBytes) head = Buffer.concat([head, chunk.subarray(0, headMaxBytes - head.length)])
      if (!isKept) return
      if (sizeBytes > maxBytes || !memory.reserve(chunk.length, 'body')) return release()
      heldBytes += chunk.length
      chunks.push(chunk)
    },
    /** Marks the body as complete. Without this call it counts as aborted. */
    end: (): void => {
      hasEnded = true
    },
    /** Keeps nothing of the body but its size. */
    discard: (reason: TruncationReason): void => {
      discardReason = reason
      release()
    },
    /** Returns the complete body, or null if it is truncated. */
    whole: (): Buffer | null => {
      if (truncation()) return null
      if (chunks.length !== 1) chunks = [Buffer.concat(chunks)]
      const [chunk] = chunks
      return Buffer.from(chunk!.buffer, chunk!.byteOffset, chunk!.byteLength)
    },
    /** Returns the first bytes of the body, even if it is truncated. */
    head: (): Buffer => head,
    truncation,
    /** Returns the number of bytes so far, kept or not. */
    sizeBytes: () => sizeBytes,
    /** Returns the number of bytes in memory. */
    heldBytes: () => heldBytes,
    release,
  }
}

export type StreamingBody = ReturnType<typeof createStreamingBody>

/** The part of the memory budget that one source uses. */
export interface Memory {
  /** Reserves memory for a body, or for a head: a request without its bodies. @returns false if not enough is left for this source */
  reserve(bytes: number, what: 'body' | 'head'): boolean
  release(bytes: number): void
}

const headFactor = 3

/**
 * Creates the memory of captured requests: at most `maxBytes`, which source addresses share.
 *
 * A source gets memory for bodies only as long as it has no more than is still free: one source alone uses at most half, two a third each,
 * and the next one always finds room. The method is called "dynamic threshold" (Choudhury and Hahne, 1998). For heads, a source may have
 * three times as much as is free, so that its bodies, however large, never keep its requests from being captured.
 */
export const createCaptureMemory = (maxBytes: number) => {
  let usedBytes = 0
  const usedBySource = new Map<string, number>()
  return {
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
  }
}
