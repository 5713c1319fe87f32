import { createHash } from 'node:crypto'

/** Counts and hashes a source while it is read. */
export const measure = (source: AsyncIterable<Uint8Array>) => {
  const hash = createHash('sha256')
  let sizeBytes = 0
  let fault: { thrown: unknown } | undefined

  async function* measured(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const piece of source) {
        hash.update(piece)
        sizeBytes += piece.length
        yield piece
      }
    } catch (thrown) {
      fault = { thrown }
      throw thrown
    }
  }

  return {
    source: measured(),
    /** Once, after the source has been read to its end. */
    result: () => ({ sizeBytes, sha256: hash.digest() }),
    /** What the source threw, if it did: then the store that was reading it is not to blame. */
    fault: () => fault,
  }
}
