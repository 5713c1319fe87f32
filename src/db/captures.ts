import type { Database, Transaction } from './database.ts'

/** A request and its answer as they are kept: redacted, and with whatever of the bodies may be kept. */
export interface Capture {
  id: string
  channel: 'receiver' | 'bridge'
  userSlug: string
  workspaceSlug: string
  httpMethod: string
  uri: string
  queryString: string
  repoId: string | null
  docId: string | null
  requestHeaders: Record<string, string>
  requestContentType: string | null
  requestContentLength: number
  requestBodyTruncated: boolean
  /** Null where there was none, or it is not kept. */
  requestBody: CapturedBody | null
  sourceIp: string
  requestAt: Date
  statusCode: number
  responseHeaders: Record<string, string>
  responseContentType: string | null
  responseContentLength: number
  responseBodyTruncated: boolean
  responseBody: CapturedBody | null
  durationMs: number
  responseAt: Date
  replayOf: string | null
}

export interface CapturedBody {
  data: Buffer
  /** Something in it has been replaced. */
  redacted: boolean
}

const columns: [name: string, type: string][] = [
  ['id', 'text'],
  ['channel', 'text'],
  ['http_method', 'text'],
  ['uri', 'text'],
  ['query_string', 'text'],
  ['repo_id', 'text'],
  ['doc_id', 'text'],
  ['request_headers', 'jsonb'],
  ['request_content_type', 'text'],
  ['request_content_length', 'bigint'],
  ['request_body_truncated', 'boolean'],
  ['source_ip', 'text'],
  ['request_at', 'timestamptz'],
  ['status_code', 'smallint'],
  ['response_headers', 'jsonb'],
  ['response_content_type', 'text'],
  ['response_content_length', 'bigint'],
  ['response_body_truncated', 'boolean'],
  ['duration_ms', 'integer'],
  ['response_at', 'timestamptz'],
  ['replay_of', 'text'],
]
// what a row that is there already takes over: the answer that was given in the end, and what became of a body that followed it
const ofTheEnd = columns.map(([name]) => name).filter((name) => /^(response_|status_code|duration_ms|request_body_)/.test(name))

// a mistyped workspace names none: there is nobody whose request that would be
const insertRequests = (captures: ':captures' | '?', onlyIf = '') => `
      insert into captured_requests (workspace_id, ${columns.map(([name]) => name).join(', ')})
      select workspaces.id, ${columns.map(([name]) => `capture.${name}`).join(', ')}
      from ${onlyIf}jsonb_to_recordset(${captures}::jsonb) as capture (
        user_slug text, workspace_slug text, ${columns.map(([name, type]) => `${name} ${type}`).join(', ')})
      join workspaces on workspaces.user_slug = capture.user_slug and workspaces.workspace_slug = capture.workspace_slug`

/**
 * The common table expressions that write one capture, or none, in a document's own statement: where `onlyIf`, another one of them,
 * has a row. Its bindings are `bindCapture`'s.
 */
export const captureWith = (onlyIf: string): string => `
    captured as (
      ${insertRequests(':captures', `${onlyIf}, `)}
      on conflict (id) do nothing
      returning id, workspace_id
    ), captured_body as (
      insert into captured_bodies (request_id, kind, workspace_id, data, redacted)
      select captured.id, body.kind, captured.workspace_id, body.data, body.redacted
      from captured, (values
        ('request', :requestBody::bytea, :requestRedacted::boolean),
        ('response', :responseBody::bytea, :responseRedacted::boolean)) as body (kind, data, redacted)
      where body.data is not null
    )`

export const bindCapture = (capture: Capture | undefined) => ({
  captures: JSON.stringify(capture ? [toRecord(capture)] : []),
  requestBody: capture?.requestBody?.data ?? null,
  requestRedacted: capture?.requestBody?.redacted ?? false,
  responseBody: capture?.responseBody?.data ?? null,
  responseRedacted: capture?.responseBody?.redacted ?? false,
})

/** Writes one capture in the transaction of what the request did. */
export const insertCapture = async (trx: Transaction, capture: Capture): Promise<void> => {
  await trx.raw(`with always as (select 1), ${captureWith('always')} select 1`, bindCapture(capture)).options({ name: 'insert-capture' })
}

/**
 * Writes many captures at once. One that is there already, because its transaction may have been committed though nobody could tell,
 * takes over the answer that was given in the end.
 * @returns how many belong to a workspace
 */
export const upsertCaptures = async (db: Database, captures: Capture[]): Promise<number> => {
  const bodies = captures.flatMap(({ id, requestBody, responseBody }) => [
    ...(requestBody ? [id, 'request', requestBody.data, requestBody.redacted] : []),
    ...(responseBody ? [id, 'response', responseBody.data, responseBody.redacted] : []),
  ])
  const rowOfBody = '(?::text, ?::text, ?::bytea, ?::boolean)'
  const { rows } = await db.raw<{ rows: { count: number }[] }>(
    `
    with captured as (
      ${insertRequests('?')}
      on conflict (id) do update
      set ${ofTheEnd.map((name) => `${name} = excluded.${name}`).join(', ')}
      returning id, workspace_id
    ), body (request_id, kind, data, redacted) as (
      values ${Array.from({ length: bodies.length / 4 }, () => rowOfBody).join(', ') || '(null::text, null::text, null::bytea, false)'}
    ), captured_body as (
      insert into captured_bodies (request_id, kind, workspace_id, data, redacted)
      select captured.id, kind, captured.workspace_id, data, redacted
      from captured
      join body on body.request_id = captured.id
      on conflict (request_id, kind) do update
      set data = excluded.data, redacted = excluded.redacted
    )
    select count(*) from captured
    `,
    [JSON.stringify(captures.map(toRecord)), ...bodies],
  )
  return rows[0]!.count
}

const toRecord = (capture: Capture) => ({
  id: capture.id,
  user_slug: capture.userSlug,
  workspace_slug: capture.workspaceSlug,
  channel: capture.channel,
  http_method: capture.httpMethod,
  uri: capture.uri,
  query_string: capture.queryString,
  repo_id: capture.repoId,
  doc_id: capture.docId,
  request_headers: capture.requestHeaders,
  request_content_type: capture.requestContentType,
  request_content_length: capture.requestContentLength,
  request_body_truncated: capture.requestBodyTruncated,
  source_ip: capture.sourceIp,
  request_at: capture.requestAt,
  status_code: capture.statusCode,
  response_headers: capture.responseHeaders,
  response_content_type: capture.responseContentType,
  response_content_length: capture.responseContentLength,
  response_body_truncated: capture.responseBodyTruncated,
  duration_ms: capture.durationMs,
  response_at: capture.responseAt,
  replay_of: capture.replayOf,
})
