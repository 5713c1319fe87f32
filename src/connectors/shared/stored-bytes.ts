import type { ByteSpan, StoredCopy } from '../connector.ts'

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

/**
 * Gets a copy by its name, or its locked version if there is nothing of that name: a rule of a lifecycle hides what is locked, and keeps it as an
 * older version.
 * @throws what the look for the name has thrown, if that version is not there either, or may not be read
 */
export const nameOrVersion = async <Found>(
  get: (version?: string) => Promise<Found>,
  { versionId }: Pick<StoredCopy, 'versionId'>,
  isAbsent: (thrown: unknown) => boolean,
  statusOf: (thrown: unknown) => number | undefined,
): Promise<Found> => {
  try {
    return await get()
  } catch (thrown) {
    if (!isAbsent(thrown) || !versionId) throw thrown
    return get(versionId).catch((refused: unknown) => {
      throw [400, 403, 404].includes(statusOf(refused) ?? 0) ? thrown : refused
    })
  }
}
