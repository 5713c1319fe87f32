import { createHash } from 'node:crypto'
import type { OutgoingHttpHeaders } from 'node:http'
import { storable } from '../db/database.ts'
import type { StreamingBody, TruncationReason } from './body.ts'
import { isOpaque, redactBody, runInSlices } from './redact-body.ts'
import { redactHeaders, redactQuery } from './redact.ts'

/** A request and its response as they are stored: redacted, with the bodies that may be stored. */
export interface Capture {
  id: string
  channel: 'receiver' | 'bridge'
  userSlug: string
  workspaceSlug: string
  httpMethod: string
  uri: string
  queryString: string
  /** The query string with its secKey, which only a replay can open. Null if it has none. */
  querySealed: Buffer | null
  repoId: string | null
  docId: string | null
  requestHeaders: Record<string, string>
  requestContentType: string | null
  requestContentLength: number
  /** Why the body is not stored. Null if it is, or was empty. */
  requestBodyTruncationReason: TruncationReason | null
  /** Null if the body was empty or is not stored. */
  requestBody: CapturedBody | null
  sourceIp: string
  requestAt: Date
  statusCode: number
  /** The code of the error that the request was answered with. Null if it has none. */
  errorCode: string | null
  responseHeaders: Record<string, string>
  responseContentType: string | null
  responseContentLength: number
  responseBodyTruncationReason: TruncationReason | null
  responseBody: CapturedBody | null
  durationMs: number
  responseAt: Date
  replayOf: string | null
}

/** The bytes of a body, or the pieces that make up the same bytes. */
type CapturedBody =
  | {
      data: Buffer
      /** True if redaction has replaced values. */
      redacted: boolean
      pieces: null
    }
  | { data: null; redacted: false; pieces: Piece[] }
  | {
      /** What is shown of the body. Null if that is nothing, because it could not be redacted. */
      data: Buffer | null
      redacted: true
      /** The body as it was received, for a replay alone. */
      pieces: Piece[]
    }

/** A request on any channel, as it was received. */
export interface RequestFacts {
  /** Request id, also sent to the client. It contains the time of arrival. */
  id: string
  channel: Capture['channel']
  userSlug: string
  workspaceSlug: string
  method: string
  /** Path and query string, not decoded. */
  uri: string
  queryString: string
  querySealed: Buffer | null
  repoId: string | null
  docId: string | null
  headers: OutgoingHttpHeaders
  body: StreamingBody
  /** The contents that the body was stored as, if they are committed together with the capture. */
  pieces?: Piece[] | undefined
  sourceIp: string
  requestAt: Date
  replayOf: string | null
}

/** The response to a request. */
export interface ResponseFacts {
  status: number
  errorCode: string | null
  headers: OutgoingHttpHeaders
  body: StreamingBody
  /** The contents that the body was read from. The body itself is then recorded only if it may have to be redacted. */
  pieces?: Piece[] | undefined
  /** True if the relay has failed. A request that is refused because a limit is reached has not failed, whatever its status. */
  isFailure?: boolean
  at: Date
}

// The status that nginx logs for a client that closed the connection.
export const clientGoneStatus = 499

/** Returns the facts for a client that closed the connection before there was a response. @param body an unused body */
export const noResponse = (body: StreamingBody): ResponseFacts => {
  body.end()
  return { status: clientGoneStatus, errorCode: null, headers: {}, body, at: new Date() }
}

/** Returns the time from the arrival of a request to its response. A clock may be set back in between. */
export const durationMs = ({ requestAt }: Pick<RequestFacts, 'requestAt'>, { at }: Pick<ResponseFacts, 'at'>): number =>
  Math.max(at.getTime() - requestAt.getTime(), 0)

/**
 * Returns a capture of a request and its response, redacted. The caller still owns both bodies, and must release them after the capture
 * has been written.
 */
export const captureOf = async (request: RequestFacts, response: ResponseFacts): Promise<Capture> => {
  const requestSide = await captureSide(request, { isReplayed: true })
  const responseSide = await captureSide(response, { isReplayed: false })
  return {
    id: request.id,
    channel: request.channel,
    userSlug: request.userSlug,
    workspaceSlug: request.workspaceSlug,
    httpMethod: request.method,
    uri: storable(request.uri),
    queryString: storable(redactQuery(request.queryString)),
    querySealed: request.querySealed,
    repoId: nameOrNull(request.repoId),
    docId: nameOrNull(request.docId),
    requestHeaders: requestSide.headers,
    requestContentType: requestSide.contentType,
    requestContentLength: requestSide.contentLength,
    requestBodyTruncationReason: requestSide.truncation,
    requestBody: requestSide.body,
    sourceIp: request.sourceIp,
    requestAt: request.requestAt,
    statusCode: response.status,
    errorCode: response.errorCode,
    responseHeaders: responseSide.headers,
    responseContentType: responseSide.contentType,
    responseContentLength: responseSide.contentLength,
    responseBodyTruncationReason: responseSide.truncation,
    responseBody: responseSide.body,
    durationMs: durationMs(request, response),
    responseAt: response.at,
    replayOf: request.replayOf,
  }
}

type Side = Pick<RequestFacts | ResponseFacts, 'headers' | 'body' | 'pieces'>

const captureSide = async ({ headers: rawHeaders, body, pieces = [] }: Side, { isReplayed }: { isReplayed: boolean }) => {
  const headers = flatten(rawHeaders)
  const contentType = headers['content-type'] ?? null
  const captured = await captureBody(body, contentType, { pieces, isReplayed })
  const announced = Number(headers['content-length'])
  return {
    headers: redactHeaders(headers),
    contentType,
    contentLength: Number.isSafeInteger(announced) && announced >= 0 ? announced : body.sizeBytes(),
    ...captured,
  }
}

/** Returns what is stored of a body, or the reason why nothing is. */
const captureBody = async (
  body: StreamingBody,
  contentType: string | null,
  { pieces, isReplayed }: { pieces: Piece[]; isReplayed: boolean },
): Promise<{ truncation: TruncationReason | null; body: CapturedBody | null }> => {
  const truncation = body.truncation()
  // The contents hold the body, so it needs no memory, and that of a request no limit.
  const isHeld = pieces.length > 0 && (truncation === null || truncation === 'memory' || (truncation === 'too_large' && isReplayed))
  const byReference = { truncation: null, body: { data: null, redacted: false, pieces } } as const
  if (isHeld && isOpaque(body.head(), contentType)) return byReference
  const shown = (data: Buffer | null): CapturedBody | null => {
    if (isHeld && isReplayed) return { data, redacted: true, pieces }
    return data && { data, redacted: true, pieces: null }
  }
  const data = body.whole()
  if (!data) return { truncation, body: shown(null) }
  // Nothing is recorded of an answer that is read from contents that are not redacted.
  if (data.length === 0) return isHeld ? byReference : { truncation: null, body: null }
  const redacted = await runInSlices(redactBody(data, contentType))
  if (!redacted) return { truncation: 'not_json', body: shown(null) }
  if (redacted !== data) return { truncation: null, body: shown(redacted) }
  return isHeld ? byReference : { truncation: null, body: { data, redacted: false, pieces: null } }
}

const flatten = (headers: OutgoingHttpHeaders): Record<string, string> => {
  const entries = Object.entries(headers).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), storable(String(value))]))
}

// Longer than any name that exists here, and short enough for an index.
const nameMaxCharacters = 255
const nameOrNull = (name: string | null) => (name !== null && name.length <= nameMaxCharacters ? storable(name) : null)

// The columns of `captured_requests`, by the field that they hold. The slugs lead to workspace_id; bodies have a table of their own.
const columns = {
  id: 'id',
  channel: 'channel',
  httpMethod: 'http_method',
  uri: 'uri',
  queryString: 'query_string',
  querySealed: 'query_sealed',
  repoId: 'repo_id',
  docId: 'doc_id',
  requestHeaders: 'request_headers',
  requestContentType: 'request_content_type',
  requestContentLength: 'request_content_length',
  requestBodyTruncationReason: 'request_body_truncation_reason',
  sourceIp: 'source_ip',
  requestAt: 'request_at',
  statusCode: 'status_code',
  errorCode: 'error_code',
  responseHeaders: 'response_headers',
  responseContentType: 'response_content_type',
  responseContentLength: 'response_content_length',
  responseBodyTruncationReason: 'response_body_truncation_reason',
  durationMs: 'duration_ms',
  responseAt: 'response_at',
  replayOf: 'replay_of',
} satisfies Record<Exclude<keyof Capture, 'userSlug' | 'workspaceSlug' | 'requestBody' | 'responseBody'>, string>

type ColumnField = keyof typeof columns

const columnFields = Object.keys(columns) as ColumnField[]

/** Returns what a query selects to read these fields. */
export const captureSelection = (...fields: ColumnField[]): string[] => fields.map((field) => `${columns[field]} as ${field}`)

/**
 * Returns the beginning of a statement that inserts rows named `capture`.
 * @param workspaceId expression for the column workspace_id
 */
export const insertCaptures = (workspaceId: string): string => `
  insert into captured_requests (workspace_id, ${Object.values(columns).join(', ')})
  select ${workspaceId}, ${Object.values(columns)
    .map((column) => `capture.${column}`)
    .join(', ')}`

/** Returns a capture as a row of `captured_requests`, with the slugs of its workspace. */
export const captureRow = (capture: Capture): Record<string, unknown> => ({
  ...Object.fromEntries(columnFields.map((field) => [columns[field], capture[field]])),
  query_sealed: capture.querySealed && `\\x${capture.querySealed.toString('hex')}`,
  user_slug: capture.userSlug,
  workspace_slug: capture.workspaceSlug,
})

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
