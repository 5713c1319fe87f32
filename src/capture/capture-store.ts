import type { Database, Transaction } from '../db/database.ts'
import { capturedDay, captureRow, contentIdsOf, insertCaptures, type Capture } from './capture.ts'

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
  const day = capturedDay(new Date(Math.max(...captures.map(({ requestAt }) => requestAt.getTime()))))
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
  capture?.requestBody?.pieces ? capturedDay(capture.requestAt) : null

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
      completions: JSON.stringify(
        completions.map(({ id, responseAt, durationMs }) => ({ id, response_at: responseAt, duration_ms: durationMs })),
      ),
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
