/** What all bodies and waiting captures of this process may hold together. */
export const createMemory = (maxBytes: number) => {
  let usedBytes = 0
  return {
    /** False, and nothing is taken, where there is not that much left. */
    take: (bytes: number): boolean => {
      if (usedBytes + bytes > maxBytes) return false
      usedBytes += bytes
      return true
    },
    give: (bytes: number): void => {
      usedBytes -= bytes
    },
  }
}

export type Memory = ReturnType<typeof createMemory>

/** The body of a request or an answer, as far as it went by and may be kept. */
export interface PassingBody {
  add(piece: Uint8Array): void
  /** The last piece has gone by. Without this the body counts as broken off. */
  end(): void
  /** Null where not all of it went by, or where it was too much to keep. */
  whole(): Buffer | null
  /** How much went by, kept or not. */
  sizeBytes(): number
  /** How much of it is in memory. */
  heldBytes(): number
  /** Forgets it; whoever asked for it must come here in the end. */
  release(): void
}

/** Holds on to a body while it goes by: whole, or not at all. */
export const createPassingBody = (maxBytes: number, memory: Memory): PassingBody => {
  let pieces: Uint8Array[] = []
  let [sizeBytes, heldBytes] = [0, 0]
  let [isKept, hasEnded] = [true, false]

  const release = () => {
    memory.give(heldBytes)
    pieces = []
    heldBytes = 0
    isKept = false
  }

  return {
    add: (piece) => {
      sizeBytes += piece.length
      if (!isKept) return
      if (sizeBytes > maxBytes || !memory.take(piece.length)) return release()
      heldBytes += piece.length
      pieces.push(piece)
    },
    end: () => {
      hasEnded = true
    },
    whole: () => {
      if (!isKept || !hasEnded) return null
      if (pieces.length !== 1) pieces = [Buffer.concat(pieces)]
      const [piece] = pieces
      return Buffer.from(piece!.buffer, piece!.byteOffset, piece!.byteLength)
    },
    sizeBytes: () => sizeBytes,
    heldBytes: () => heldBytes,
    release,
  }
}
