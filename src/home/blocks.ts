import { createHash } from 'node:crypto'

// A content at its home has a digest for each block. A reader gets the bytes of a block after its digest was compared, so that no wrong byte
// leaves the relay, whole or in part, and a range costs no more than the blocks that it touches.

/** The size of a block. A reader holds one in memory. */
export const blockBytes = 4 * 1024 * 1024
const digestBytes = 32

/** Computes the digests of the blocks of a content while it is read. */
export const createBlockDigests = () => {
  const digests: Buffer[] = []
  let hash = createHash('sha256')
  let filled = 0
  const end = () => {
    digests.push(hash.digest())
    hash = createHash('sha256')
    filled = 0
  }
  return {
    update: (bytes: Buffer): void => {
      for (let at = 0; at < bytes.length;) {
        const part = bytes.subarray(at, at + blockBytes - filled)
        hash.update(part)
        filled += part.length
        at += part.length
        if (filled === blockBytes) end()
      }
    },
    /** Returns the digests, one after the other. Call it once. */
    digest: (): Buffer => {
      if (filled > 0) end()
      return Buffer.concat(digests)
    },
  }
}

/** The number of the block that holds a byte. */
export const blockOf = (byte: number): number => Math.floor(byte / blockBytes)

/** The bytes of a block of a content: the last one may be shorter. */
export const spanOf = (block: number, sizeBytes: number) => ({
  start: block * blockBytes,
  end: Math.min((block + 1) * blockBytes, sizeBytes) - 1,
})

/**
 * The bytes to ask a target for: those of some blocks, and one more after the end of the content, which must not be there.
 * @param first, last the numbers of the blocks
 */
export const askedSpan = ({ first, last }: { first: number; last: number }, sizeBytes: number) => ({
  start: spanOf(first, sizeBytes).start,
  end: last === blockOf(sizeBytes - 1) ? sizeBytes : spanOf(last, sizeBytes).end,
})

/**
 * Collects blocks from the bytes that a target sends, beginning with the first byte of a block, and compares their digests. The last block of
 * the content waits for the end of what is sent: see `askedSpan`.
 * @yields the bytes of each block that has its digest, in their order
 * @returns undefined if all blocks had theirs; otherwise what is wrong with the first one that has not
 */
export async function* verifiedBlocks(
  source: AsyncIterable<Buffer>,
  { sizeBytes, digests }: { sizeBytes: number; digests: Buffer },
  { first, last }: { first: number; last: number },
): AsyncGenerator<Buffer, string | undefined, undefined> {
  let block = first
  let pieces: Buffer[] = []
  let filled = 0
  let ending: Buffer | undefined
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length;) {
      if (ending) return `it has more than ${sizeBytes} bytes`
      if (block > last) return undefined
      const { start, end } = spanOf(block, sizeBytes)
      const part = chunk.subarray(at, at + end + 1 - start - filled)
      pieces.push(part)
      filled += part.length
      at += part.length
      if (start + filled <= end) continue
      const bytes = Buffer.concat(pieces)
      const digest = digests.subarray(block * digestBytes, (block + 1) * digestBytes)
      if (!createHash('sha256').update(bytes).digest().equals(digest))
        return `the bytes ${start} to ${end} are other ones than those that were delivered`
      if (end === sizeBytes - 1) ending = bytes
      else yield bytes
      block += 1
      pieces = []
      filled = 0
    }
  }
  if (ending) yield ending
  if (block > last) return undefined
  return `it ends after ${block * blockBytes + filled} of ${sizeBytes} bytes`
}
