import type { ByteSpan } from '../connector.ts'

/** Returns the header that asks for a part of a stored document. */
export const rangeHeader = ({ start, end }: ByteSpan): string => `bytes=${start}-${end}`

/** Returns true for an answer that says that the stored document ends before the part begins. */
export const endsBefore = (status: number | undefined): boolean => status === 416

/**
 * Cuts the wanted bytes out of what a target sends.
 * @param from the position of its first byte in the document: 0 if the target does not know ranges and sends the whole
 */
export async function* cutBytes(
  source: AsyncIterable<Uint8Array>,
  { start, end }: ByteSpan,
  from: number,
): AsyncGenerator<Buffer, void, undefined> {
  let at = from
  for await (const chunk of source) {
    const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end + 1 - at))
    at += chunk.length
    if (part.length > 0) yield Buffer.from(part.buffer, part.byteOffset, part.length)
    if (at > end) return
  }
}
