import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { AppError } from '../base/errors.ts'
import type { ByteRange, Content, ContentStore, Stores } from '../content/store.ts'
import type { Database } from '../db/database.ts'

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

export type BodyKind = 'request' | 'response'

/** A captured body in the database: its bytes, and the contents that it refers to. */
export interface StoredBody {
  sizeBytes: number
  /** True if redaction has replaced values. */
  redacted: boolean
  parts: (Buffer | ContentPart)[]
}

interface ContentPart {
  content: Content
  store: ContentStore['kind']
  range: ByteRange
}

interface BodyRow {
  data: Buffer | null
  redacted: boolean
  pieces: Piece[] | null
  /** The contents of the pieces that still exist. */
  contents: Record<string, { store: ContentStore['kind']; appends: number }> | null
}

export const emptyBody: StoredBody = { sizeBytes: 0, redacted: false, parts: [] }

/**
 * Finds a captured body as it is shown: redacted.
 * @param options.belowBytes finds shorter bodies only
 * @returns null if the body is not stored, or a content that it refers to was erased
 */
export const findStoredBody = async (
  db: Database,
  requestId: string,
  kind: BodyKind,
  { belowBytes = Number.MAX_SAFE_INTEGER } = {},
): Promise<StoredBody | null> => {
  const row = await findRow(db, requestId, kind, belowBytes)
  if (!row) return null
  const { data, redacted } = row
  const body = data || redacted ? bodyOfData(row) : bodyOfPieces(row)
  return body && body.sizeBytes < belowBytes ? body : null
}

/** Finds the body of a captured request for a replay: as it was received, if it is stored in contents. Nothing else may read it. */
export const findBodyToReplay = async (db: Database, requestId: string): Promise<StoredBody | null> => {
  const row = await findRow(db, requestId, 'request', Number.MAX_SAFE_INTEGER)
  return row ? (bodyOfPieces(row) ?? bodyOfData(row)) : null
}

const findRow = async (db: Database, requestId: string, kind: BodyKind, belowBytes: number): Promise<BodyRow | undefined> => {
  const { rows } = await db.raw<{ rows: BodyRow[] }>(
    `
    select
      case when octet_length(data) < :belowBytes::bigint then data end as data,
      redacted,
      pieces,
      (
        -- A content that nothing keeps is about to be removed.
        select jsonb_object_agg(contents.id, jsonb_build_object('store', store, 'appends', appends))
        from jsonb_array_elements(pieces) as piece (value)
        join contents on contents.id = piece.value ->> 'contentId'
        where owned_at is not null
          or captured_on is not null
      ) as contents
    from captured_bodies
    where request_id = :requestId
      and kind = :kind
    `,
    { requestId, kind, belowBytes },
  )
  return rows[0]
}

const bodyOfData = ({ data, redacted }: BodyRow): StoredBody | null => data && { sizeBytes: data.length, redacted, parts: [data] }

const bodyOfPieces = ({ pieces, contents }: BodyRow): StoredBody | null => {
  if (!pieces) return null
  const parts: StoredBody['parts'] = []
  let total = 0
  for (const piece of pieces) {
    if ('data' in piece) {
      const bytes = Buffer.from(piece.data, 'base64')
      total += bytes.length
      parts.push(bytes)
      continue
    }
    const { contentId: id, start, sizeBytes } = piece
    const found = contents?.[id]
    if (!found) return null
    const end = start + sizeBytes - 1
    total += sizeBytes
    // The content may have grown by appends since. Its first bytes are the same.
    parts.push({ content: { id, sizeBytes: end + 1, appends: found.appends }, store: found.store, range: { start, end } })
  }
  return { sizeBytes: total, redacted: false, parts }
}

/** Streams a captured body. @throws AppError 503 if this process has no access to a content store that holds a part of it */
export const openStoredBody = (stores: Stores, { parts }: StoredBody): Readable => {
  const sources = parts.map((part) => {
    if (Buffer.isBuffer(part)) return () => [part]
    const store = stores[part.store]
    if (!store) throw new AppError('unavailable', `The body is in the ${part.store} store, which this process is not configured to use.`)
    return () => store.read(part.content, part.range)
  })
  async function* read(): AsyncGenerator<Buffer, void, undefined> {
    for (const open of sources) yield* open()
  }
  return Readable.from(read(), { objectMode: false })
}
