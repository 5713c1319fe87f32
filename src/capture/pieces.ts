import { createHash } from 'node:crypto'

// The body of a request that creates or reads a document has the same bytes as the content of the document. Its capture refers to the
// content instead of storing the bytes again.

/** A part of a captured body: a range of a content, or bytes of its own in Base64. */
export type Piece = ContentPiece | { data: string }

interface ContentPiece {
  contentId: string
  start: number
  sizeBytes: number
}

export const bytesPiece = (bytes: Buffer): Piece => ({ data: bytes.toString('base64') })

/** Returns the ids of the contents that captured bodies refer to, each once. */
export const contentIdsOf = (pieces: Piece[]): string[] => [
  ...new Set(pieces.flatMap((piece) => ('contentId' in piece ? piece.contentId : []))),
]

/** Returns the day (UTC) on which a content was captured. Retention counts from it. */
export const capturedDay = (requestAt: Date): string => requestAt.toISOString().slice(0, 10)

const endOfHeader = '\r\n\r\n'
const sha256Of = (bytes: Buffer) => createHash('sha256').update(bytes).digest()

/**
 * Describes a multipart body as the contents of its parts and the bytes around them.
 * @param contents the contents of the parts, in their order
 * @returns undefined if the contents are not found in the body, for example because another part is between them
 */
export const splitMultipart = (body: Buffer, contents: { id: string; sizeBytes: number; sha256: Buffer }[]): Piece[] | undefined => {
  const pieces: Piece[] = []
  let [described, position] = [0, 0]
  for (const { id, sizeBytes, sha256 } of contents) {
    const header = body.indexOf(endOfHeader, position)
    const start = header + endOfHeader.length
    position = start + sizeBytes
    if (header < 0 || !sha256Of(body.subarray(start, position)).equals(sha256)) return undefined
    if (sizeBytes === 0) continue
    pieces.push(bytesPiece(body.subarray(described, start)), { contentId: id, start: 0, sizeBytes })
    described = position
  }
  return [...pieces, bytesPiece(body.subarray(described))]
}
