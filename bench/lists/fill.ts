import { createKey } from '../../src/access/key-administration.ts'
import { idPrefixAt } from '../../src/base/ids.ts'
import { foldCounters } from '../../src/db/counters.ts'
import type { Database } from '../../src/db/database.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { auditEventNames } from '../../src/domain/audit-events.ts'
import { incidentEventNames } from '../../src/domain/notices.ts'
import { createWorkspace } from '../../src/workspace/administration.ts'
import { withoutIndexes } from './without-indexes.ts'

const days = 30
const hourMs = 3_600_000
const dayMs = 24 * hourMs
export const workspaceName = 'bench/lists'

/** Facts that requests name. The same conditions select the same part of the rows in each database. */
export interface Filled {
  key: string
  /** Ids of rows that nine tenths of the rows follow. */
  deep: { document: string; request: string; auditLog: string; notice: string }
  documentId: string
  destinationId: string
  notificationId: string
  dateFrom: string
  dateTo: string
}

export interface FillOptions {
  /** Documents, each with a delivery, an attempt, an archive document and a content whose bytes are elsewhere. */
  rowCount: number
  /** One of `logShare` blocks of a thousand documents has captured requests and audit entries. */
  logShare: number
  say(line: string): void
}

const ordinaryTables = ['archive_documents', 'contents', 'documents', 'document_keys', 'deliveries']
const filledTables = [...ordinaryTables, 'delivery_attempts', 'captured_requests', 'audit_logs']
// They write other rows for many rows at once. What the other triggers do, one row at a time, is done by the inserts below.
const statementTriggers = [
  ['documents', 'documents_added'],
  ['deliveries', 'deliveries_added'],
  ['delivery_attempts', 'attempts_added'],
] as const

/**
 * Fills an empty database with one workspace: a number of documents over the last 30 days in the order of their ids, with what belongs to
 * them. Of a thousand documents, at least 25 meet each condition, so that pages are equally long. The role of the database must be a
 * superuser, because foreign keys are not checked.
 */
export const fill = async (db: Database, { rowCount, logShare, say }: FillOptions): Promise<Filled> => {
  const since = new Date(Math.floor(Date.now() / hourMs) * hourMs - days * dayMs)
  // Partitions exist from the day before a date to two weeks after it.
  for (let time = since.getTime(); time < Date.now() + dayMs; time += 14 * dayMs) await ensurePartitions(db, new Date(time))
  await ensurePartitions(db, new Date())

  const { id: workspaceId } = await createWorkspace(db, workspaceName)
  const { key } = await createKey(db, { workspace: workspaceName, level: 'viewer' })
  const prefixes = Array.from({ length: days * 24 }, (_, hour) => idPrefixAt(new Date(since.getTime() + hour * hourMs)))
  const values = {
    workspaceId,
    since,
    prefixes,
    rowCount,
    logShare,
    events: auditEventNames,
    eventCount: auditEventNames.length,
    incidents: [...incidentEventNames],
  }
  // Numbers the rows from :first to :last: id and time grow with n.
  const rows = `
    select
      n,
      (:prefixes::text[])[1 + hour] || lpad(n::text, 16, '0') as id,
      :since::timestamptz + hour * interval '1 hour' + n % 3600 * interval '1 second' as moment
    from (
      select n, ((n - 1)::bigint * ${days * 24} / :rowCount::int)::int as hour
      from generate_series(:first::int, :last::int) as n
    ) as numbered`
  const run = (sql: string, { first = 1, last = rowCount } = {}) => db.raw(sql, { ...values, first, last })

  await run(`
    insert into repositories (id, workspace_id, repo_id, name, status)
    select (:prefixes::text[])[1] || lpad(n::text, 16, '0'), :workspaceId, 'R' || n, 'Repository', case when n = 9 then 'inactive' else 'active' end
    from generate_series(0, 9) as n`)
  await run(`
    insert into destinations (id, workspace_id, name, connector_type, config, credentials_sealed)
    select
      (:prefixes::text[])[1] || lpad(n::text, 16, '0'), :workspaceId, 'Destination ' || n,
      (array['webhook', 'sftp'])[1 + n % 2],
      (array['{"url": "https://example.com/"}', '{"host": "example.com"}'])[1 + n % 2]::jsonb, ''
    from generate_series(0, 7) as n`)
  await run(`
    insert into connections (id, workspace_id, name)
    select (:prefixes::text[])[1] || lpad(n::text, 16, '0'), :workspaceId, 'Connection ' || n from generate_series(0, 7) as n`)
  await run(`
    insert into connection_repositories (connection_id, repository_id, position)
    select (:prefixes::text[])[1] || lpad(n::text, 16, '0'), (:prefixes::text[])[1] || lpad(n::text, 16, '0'), 0 from generate_series(0, 7) as n`)
  await run(`
    insert into connection_destinations (connection_id, destination_id, position)
    select (:prefixes::text[])[1] || lpad(n::text, 16, '0'), (:prefixes::text[])[1] || lpad(n::text, 16, '0'), 0 from generate_series(0, 7) as n`)
  const fillDay = async (part: { first: number; last: number }) => {
    await run(
      `
      insert into archive_documents (id, workspace_id, repository_id, doc_id, created_at, modified_at)
      select id, :workspaceId, (:prefixes::text[])[1] || lpad((n % 10)::text, 16, '0'), 'D' || lpad(n::text, 31, '0'), moment, moment
      from (${rows}) as rows`,
      part,
    )
    await run(
      `
      insert into contents (id, workspace_id, store, size_bytes, sha256, owned_at, created_at)
      select id, :workspaceId, 's3', n % 1000, sha256(int8send(n)), moment, moment from (${rows}) as rows`,
      part,
    )
    await run(
      `
      insert into documents (
        id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at, request_id,
        erp_object_type, erp_object_id, ar_object, acknowledged_at, archive_document_id, content_id
      )
      select
        id, :workspaceId, (:prefixes::text[])[1] || lpad((n % 10)::text, 16, '0'), 'R' || n % 10, 'D' || lpad(n::text, 31, '0'), 'data',
        (array['application/pdf', 'image/tiff'])[1 + n / 3 % 2], n % 1000,
        case when n % 100 < 10 then 'failed' when n % 100 < 13 then 'retrying' when n % 100 < 19 then 'pending' when n % 100 < 22 then 'discarded' else 'delivered' end,
        moment, moment, id, (array['BKPF', 'VBRK'])[1 + n / 7 % 2], '1000' || lpad(n::text, 10, '0') || '2026', (array['FIIINVOICE', 'SDOINVOICE'])[1 + n / 11 % 2],
        case when n % 100 < 3 then moment end, id, id
      from (${rows}) as rows`,
      part,
    )
    // What document_keys_of() returns, which would take longer than all inserts together.
    await run(
      `
      insert into document_keys (workspace_id, key, document_id)
      select :workspaceId, key, id
      from (${rows}) as rows
      cross join lateral (select lpad(n::text, 10, '0') as number) as padded
      cross join lateral (
        values ('D' || lpad(n::text, 31, '0')), ('1000' || number || '2026'), (number || '2026'), (n || '2026'), (number)
      ) as keys (key)`,
      part,
    )
    await run(
      `
      insert into deliveries (
        document_id, destination_id, workspace_id, connection_id, status, path, attempts, delivered_at, last_error, last_error_code, ended_by,
        status_since, next_attempt_at, needs_attention
      )
      select
        id, (:prefixes::text[])[1] || lpad((n % 8)::text, 16, '0'), :workspaceId, (:prefixes::text[])[1] || lpad((n % 8)::text, 16, '0'),
        case
          when n % 100 < 7 then 'failed' when n % 100 < 10 then 'cancelled' when n % 100 < 13 then 'retrying' when n % 100 < 16 then 'held'
          when n % 100 < 19 then 'pending' else 'delivered'
        end,
        'R' || n % 10 || '/D' || n || '/data', 1, case when n % 100 >= 22 then moment end,
        case when n % 100 < 7 or n % 100 between 10 and 12 then 'the target answered' end,
        case when n % 100 < 7 or n % 100 between 10 and 12 then (array['http_404', 'http_503', 'timeout'])[1 + n / 100 % 3] end,
        case when n % 100 < 7 then 'permanent_error' end, moment + interval '1 second', case when n % 100 between 10 and 18 then now() + interval '1 hour' end,
        n % 100 between 3 and 9
      from (${rows}) as rows
      where n % 100 not between 19 and 21`,
      part,
    )
    await run(
      `
      insert into delivery_attempts (
        id, workspace_id, document_id, destination_id, number, started_at, duration_ms, outcome, error_code, error_message, bytes_sent
      )
      select
        id, :workspaceId, id, (:prefixes::text[])[1] || lpad((n % 8)::text, 16, '0'), 1, moment, n % 1000,
        case when n % 100 < 10 then 'permanent' when n % 100 < 13 then 'retryable' else 'delivered' end,
        case when n % 100 < 13 then (array['http_404', 'http_503', 'timeout'])[1 + n / 100 % 3] end,
        case when n % 100 < 13 then 'the target answered' end, 0
      from (${rows}) as rows
      where n % 100 not between 13 and 21`,
      part,
    )
    await run(
      `
      insert into captured_requests (
        id, workspace_id, channel, http_method, uri, query_string, repo_id, doc_id, request_headers, source_ip, request_at, status_code,
        response_headers, duration_ms, response_at
      )
      select
        id, :workspaceId, case when n % 20 = 0 then 'bridge' else 'receiver' end, (array['PUT', 'GET', 'POST'])[1 + n % 3], '/receiver/bench/lists', 'create',
        'R' || n % 10, 'D' || lpad(n::text, 31, '0'), '{}', '127.0.0.1', moment, case when n % 100 < 10 then 404 when n % 100 < 15 then 503 else 201 end, '{}', 5, moment
      from (${rows}) as rows
      where n / 1000 % :logShare::int = 0`,
      part,
    )
    await run(
      `
      insert into audit_logs (id, workspace_id, event, subject_type, subject_id, description, user_id, actor_type, created_at)
      select
        id, :workspaceId, (:events::text[])[1 + n % :eventCount::int], 'Repository', 'S' || n % 20, 'Something was changed.', 'U' || n % 10, 'api_key', moment
      from (${rows}) as rows
      where n / 1000 % :logShare::int = 0`,
      part,
    )
  }
  await withoutIndexes(db, filledTables, say, async () => {
    for (const table of filledTables) await db.raw('alter table ?? disable trigger all', [table])
    // Everything is vacuumed in the end.
    for (const table of ordinaryTables) await db.raw('alter table ?? set (autovacuum_enabled = false)', [table])
    for (const [table, trigger] of statementTriggers) await db.raw('alter table ?? enable trigger ??', [table, trigger])
    for (let day = 0; day < days; day += 1) {
      // Events are kept for 7 days by default.
      if (day === days - 7) await db.raw('alter table documents enable trigger events_of_new_documents')
      await fillDay({ first: Math.floor((rowCount * day) / days) + 1, last: Math.floor((rowCount * (day + 1)) / days) })
      if (day % 5 === 4) say(`${day + 1} of ${days} days are filled.`)
    }
    for (const table of filledTables) await db.raw('alter table ?? enable trigger all', [table])
  })
  for (const table of ordinaryTables) await db.raw('alter table ?? reset (autovacuum_enabled)', [table])
  await run(
    `
    insert into bulk_retries (id, workspace_id, action, status, filter, matched_documents, matched_deliveries, actor_type)
    select id, :workspaceId, 'retry', 'completed', '{}', 1, 1, 'api_key' from (${rows}) as rows`,
    { last: Math.max(30, rowCount / 1_000) },
  )
  await run(`
    insert into notifications (id, workspace_id, name, events, destination_id, quiet_seconds, silence_hours, is_active)
    select (:prefixes::text[])[1] || lpad('0', 16, '0'), :workspaceId, 'Notification', :incidents, (:prefixes::text[])[1] || lpad('0', 16, '0'), 60, 72, true`)
  await run(
    `
    insert into incidents (id, workspace_id, event, subject, count, details, opened_at, last_seen_at, closed_at)
    select id, :workspaceId, 'destination.failing', 'S' || n, 1, '{}', moment, moment, moment from (${rows}) as rows`,
    { last: Math.max(30, rowCount / 100) },
  )
  await run(
    `
    insert into notices (id, workspace_id, notification_id, incident_id, transition, data, status, attempts, created_at)
    select
      id, :workspaceId, (:prefixes::text[])[1] || lpad('0', 16, '0'), id, 'opened',
      jsonb_build_object('workspace', '${workspaceName}', 'incident_id', id, 'summary', 'A destination fails.', 'opened_at', moment, 'count', 1),
      'delivered', 1, moment
    from (${rows}) as rows`,
    { last: Math.max(30, rowCount / 100) },
  )
  await run(`
    insert into repository_counts (repository_id, shard, documents)
    select repository_id, 0, count(*) from archive_documents group by repository_id`)
  await run(`
    insert into workspace_storage (workspace_id, shard, bytes)
    select workspace_id, 0, sum(size_bytes) from contents group by workspace_id`)
  const { rows: wrong } = await db.raw<{ rows: object[] }>(
    `
    select documents.id
    from (select * from documents order by id desc limit 100) as documents
    where array(select key from document_keys where document_id = documents.id order by key)
      <> array(select key from document_keys_of(doc_id, erp_object_id, file_name, comp_id) as key order by key)
    `,
  )
  if (wrong.length > 0) throw new Error('The keys are not what document_keys_of() returns: change the insert.')
  await foldCounters(db, new AbortController().signal, 100_000)
  await db.raw('vacuum analyze')

  const idAt = async (table: string, part: number): Promise<string> => {
    const { rows: found } = await db.raw<{ rows: { id: string }[] }>(
      'select id from ?? order by id offset (select count(*) * ?::float8 from ??)::bigint limit 1',
      [table, part, table],
    )
    return found[0]!.id
  }
  return {
    key,
    deep: {
      document: await idAt('documents', 0.1),
      request: await idAt('captured_requests', 0.1),
      auditLog: await idAt('audit_logs', 0.1),
      notice: await idAt('notices', 0.9),
    },
    // A document whose request was also captured.
    documentId: await idAt('captured_requests', 0.5),
    destinationId: `${prefixes[0]}${'2'.padStart(16, '0')}`,
    notificationId: `${prefixes[0]}${'0'.padStart(16, '0')}`,
    // Neither end is at a full hour.
    dateFrom: new Date(since.getTime() + 10 * dayMs + 20 * 60_000).toISOString(),
    dateTo: new Date(since.getTime() + 20 * dayMs + 40 * 60_000).toISOString(),
  }
}
