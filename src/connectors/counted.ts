import { Readable } from 'node:stream'

/**
 * A body of known length, and whether all of it was taken. That its stream has ended does not tell: a source may need a while to find
 * its end, and a quick target answers the last byte before.
 */
export const counted = (source: Readable, sizeBytes: number): { body: Readable; isTaken(): boolean } => {
  let left = sizeBytes
  const bytes = async function* () {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      yield chunk
      left -= chunk.length
    }
  }
  return { body: Readable.from(bytes(), { objectMode: false }), isTaken: () => left <= 0 }
}
