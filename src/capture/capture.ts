import type { OutgoingHttpHeaders } from 'node:http'
import { dayOf } from '../base/day.ts'
import { storable } from '../base/text.ts'
import type { Database, Transaction } from '../db/database.ts'
import { snakeCase } from '../domain/casing.ts'
import { mediaTypeOf } from '../domain/content-type.ts'
import type { StreamingBody, TruncationReason } from './body.ts'
import { isOpaque, redactBody, runInSlices } from './redact-body.ts'
import { redactHeaders, redactQuery } from './redact.ts'
import { contentIdsOf, type Piece } from './stored-body.ts'

/** A request and its response as they are stored: redacted, with the bodies that may be stored. */
export interface Capture extends Omit<RequestFacts, 'method' | 'headers' | 'body' | 'pieces'> {
  httpMethod: string
  requestHeaders: Record<string, string>
  requestContentType: string | null
  requestContentLength: number
  /** Why the body is not stored. Null if it is, or was empty. */
  requestBodyTruncationReason: TruncationReason | null
  /** Null if the body was empty or is not stored. */
  requestBody: CapturedBody | null
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
  channel: 'receiver' | 'bridge'
  userSlug: string
  workspaceSlug: string
  method: string
  /** Path and query string, not decoded. */
  uri: string
  queryString: string
  /** The query string with its secKey, which only a replay can open. Null if it has none. */
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
  const { method, headers: _, body: __, pieces: ___, ...facts } = request
  return {
    ...facts,
    httpMethod: method,
    uri: storable(request.uri),
    queryString: storable(redactQuery(request.queryString)),
    repoId: nameOrNull(request.repoId),
    docId: nameOrNull(request.docId),
    requestHeaders: requestSide.headers,
    requestContentType: requestSide.contentType,
    requestContentLength: requestSide.contentLength,
    requestBodyTruncationReason: requestSide.truncation,
    requestBody: requestSide.body,
    statusCode: response.status,
    errorCode: response.errorCode,
    responseHeaders: responseSide.headers,
    responseContentType: responseSide.contentType,
    responseContentLength: responseSide.contentLength,
    responseBodyTruncationReason: responseSide.truncation,
    responseBody: responseSide.body,
    durationMs: durationMs(request, response),
    responseAt: response.at,
  }
}

type Side = Pick<RequestFacts | ResponseFacts, 'headers' | 'body' | 'pieces'>

const captureSide = async ({ headers: rawHeaders, body, pieces = [] }: Side, { isReplayed }: { isReplayed: boolean }) => {
  const headers = redactHeaders(rawHeaders)
  const contentType = headers['content-type'] ?? null
  const captured = await captureBody(body, contentType, { pieces, isReplayed })
  const announced = Number(headers['content-length'])
  return {
    headers,
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
  if (!redacted) return { truncation: mediaTypeOf(contentType).includes('json') ? 'not_json' : 'unreadable', body: shown(null) }
  if (redacted !== data) return { truncation: null, body: shown(redacted) }
  return isHeld ? byReference : { truncation: null, body: { data, redacted: false, pieces: null } }
}

// Longer than any name that exists here, and short enough for an index.
const nameMaxCharacters = 255
const nameOrNull = (name: string | null) => (name !== null && name.length <= nameMaxCharacters ? storable(name) : null)

/** The fields that `captured_requests` has columns for. The slugs lead to workspace_id; bodies have a table of their own. */
const columnFields = [
  'id',
  'channel',
  'httpMethod',
  'uri',
  'queryString',
  'querySealed',
  'repoId',
  'docId',
  'requestHeaders',
  'requestContentType',
  'requestContentLength',
  'requestBodyTruncationReason',
  'sourceIp',
  'requestAt',
  'statusCode',
  'errorCode',
  'responseHeaders',
  'responseContentType',
  'responseContentLength',
  'responseBodyTruncationReason',
  'durationMs',
  'responseAt',
  'replayOf',
] as const satisfies readonly (keyof Capture)[]

type ColumnField = (typeof columnFields)[number]

const columnOf = new Map(columnFields.map((field) => [field, snakeCase(field)]))
const columns = [...columnOf.values()]

/** Returns what a query selects to read these fields. */
export const captureSelection = (...fields: ColumnField[]): string[] => fields.map((field) => `${snakeCase(field)} as ${field}`)

/**
 * Returns the beginning of a statement that inserts rows named `capture`.
 * @param workspaceId expression for the column workspace_id
 */
export const insertCaptures = (workspaceId: string): string => `
  insert into captured_requests (workspace_id, ${columns.join(', ')})
  select ${workspaceId}, ${columns.map((column) => `capture.${column}`).join(', ')}`

/** Returns a capture as a row of `captured_requests`, with the slugs of its workspace. */
export const captureRow = (capture: Capture): Record<string, unknown> => ({
  ...Object.fromEntries(Array.from(columnOf, ([field, column]) => [column, capture[field]])),
  query_sealed: capture.querySealed && `\\x${capture.querySealed.toString('hex')}`,
  user_slug: capture.userSlug,
  workspace_slug: capture.workspaceSlug,
})

/**
 * Writes many captures at once. A capture that exists already, because its transaction was committed although the receiver could not
 * know, takes over the final response; its request is complete. Captures of unknown workspaces are dropped.
 * @returns the ids of the captures that belong to a workspace
 */
export const upsertCaptures = async (db: Database | Transaction, captures: Capture[]): Promise<string[]> => {
  const bodies = captures.flatMap(({ id, requestBody, responseBody }) => [
    ...(requestBody ? [{ id, kind: 'request', ...requestBody }] : []),
    ...(responseBody ? [{ id, kind: 'response', ...responseBody }] : []),
  ])
  const bodyRows = bodies.map(() => '(?::text, ?::text, ?::bytea, ?::boolean, ?::jsonb)').join(', ')
  const contentIds = contentIdsOf(bodies.flatMap(({ pieces }) => pieces ?? []))
  // The last day of the batch, for all of it. A content may then be kept for a day longer.
  const day = dayOf(new Date(Math.max(...captures.map(({ requestAt }) => requestAt.getTime()))))
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `
    with captured as (
      ${insertCaptures('workspaces.id')}
      from jsonb_array_elements(?::jsonb) as item (value)
      cross join lateral jsonb_populate_record(null::captured_requests, item.value) as capture
      join workspaces on user_slug = item.value ->> 'user_slug' and workspace_slug = item.value ->> 'workspace_slug'
      on conflict (id) do update
      set
        status_code = excluded.status_code,
        error_code = excluded.error_code,
        response_headers = excluded.response_headers,
        response_content_type = excluded.response_content_type,
        response_content_length = excluded.response_content_length,
        response_body_truncation_reason = excluded.response_body_truncation_reason,
        duration_ms = excluded.duration_ms,
        response_at = excluded.response_at
      returning id, workspace_id
    ), body (request_id, kind, data, redacted, pieces) as (
      values ${bodyRows || '(null::text, null::text, null::bytea, false, null::jsonb)'}
    ), captured_body as (
      insert into captured_bodies (request_id, kind, workspace_id, data, redacted, pieces)
      select captured.id, kind, captured.workspace_id, data, redacted, pieces
      from captured
      join body on body.request_id = captured.id
      on conflict (request_id, kind) do update
      set data = excluded.data, redacted = excluded.redacted, pieces = excluded.pieces
      where captured_bodies.kind = 'response'
    ), referenced as (
      -- Rows are locked in the order of their ids. Most of them have the day already. A content that was erased keeps none.
      select id
      from contents
      where id = any(?::text[])
        and (captured_on < ?::date or (captured_on is null and owned_at is not null))
      order by id
      for no key update
    ), kept as (
      update contents
      set captured_on = ?::date
      from referenced
      where contents.id = referenced.id
    )
    select id
    from captured
    `,
    [
      JSON.stringify(captures.map(captureRow)),
      ...bodies.flatMap(({ id, kind, data, redacted, pieces }) => [id, kind, data, redacted, pieces && JSON.stringify(pieces)]),
      contentIds,
      day,
      day,
    ],
  )
  return rows.map(({ id }) => id)
}

/** Returns the day on which the contents of a request are captured; null if the body of its capture does not refer to them. */
export const capturedOnOf = (capture: Capture | undefined): string | null =>
  capture?.requestBody?.pieces ? dayOf(capture.requestAt) : null

/** The end of a request whose capture a transaction has written, with the time at which the transaction had committed. */
export interface Completion {
  id: string
  responseAt: Date
  durationMs: number
}

/** Sets the final times of captures that were written in a transaction, which could not know when it would have committed. */
const completeCaptures = async (db: Database, completions: Completion[]): Promise<void> => {
  const ids = completions.map(({ id }) => id)
  await db.raw(
    `
    update captured_requests
    set response_at = completion.response_at, duration_ms = completion.duration_ms
    from jsonb_to_recordset(:completions::jsonb) as completion (id text, response_at timestamptz, duration_ms integer)
    where captured_requests.id = completion.id
      -- The ids of a batch are in one or two partitions.
      and captured_requests.id between :first and :last
    `,
    {
      completions: JSON.stringify(completions.map((each) => ({ id: each.id, response_at: each.responseAt, duration_ms: each.durationMs }))),
      first: ids.reduce((one, other) => (one < other ? one : other)),
      last: ids.reduce((one, other) => (one > other ? one : other)),
    },
  )
}

export const createCaptureStore = (db: Database) => ({
  upsert: (captures: Capture[]) => upsertCaptures(db, captures),
  complete: (completions: Completion[]) => completeCaptures(db, completions),
})

export type CaptureStore = ReturnType<typeof createCaptureStore>
