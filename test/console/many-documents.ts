import { idPrefixAt } from '../../src/base/ids.ts'
import type { Database } from '../../src/db/database.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { foldAll } from '../support/counters.ts'
import type { createRoutes } from '../support/factories.ts'

const hourMs = 3_600_000
const hours = 30 * 24
const documentsPerStatement = 25_000
// The newest documents have not reached their second destination yet.
const newestCount = 40
// One of so many documents has failed at its second destination.
const failedEvery = 500

/** Returns the number of the invoice of a document, by the number of the document from 1. */
export const invoiceOf = (number: number) => String(90_000_000 + number)

/** Returns the number of documents that have failed, and of those whose second delivery is under way. */
export const openAmong = (count: number) => {
  const failed = (among: number) => Math.floor(among / failedEvery)
  return { failed: failed(count), underWay: newestCount - (failed(count) - failed(count - newestCount)) }
}

/** Facts of each document that the statements below insert: its second destination, and how the delivery to it has ended. */
const documents = `
  select
    n, hour, (:prefixes::text[])[1 + hour] || lpad(n::text, 16, '0') as id,
    :since::timestamptz + (n - 1)::float8 / :count * :hours * interval '1 hour' as received_at,
    case
      when n % ${failedEvery} = 0 then 'failed'
      when n <= :count - ${newestCount} then 'delivered'
      when n % 2 = 0 then 'retrying'
      else 'pending'
    end as status
  from generate_series(:first::integer, :last::integer) as n
  cross join lateral (select ((n - 1)::bigint * :hours / :count)::integer as hour) as received
`

const deliveries = `
  select
    document.*, is_first, destination_id, connection_id, path,
    case when is_first then 'delivered' else status end as delivery_status,
    received_at + n % 5 * interval '1 second' as started_at, 40 + n % 400 as duration_ms
  from (${documents}) as document
  cross join lateral (
    values
      (true, :firstDestination, :firstConnection, 'archive/' || id),
      (false, (:destinations::text[])[1 + n % :others], (:connections::text[])[1 + n % :others], 'in/' || id)
  ) as delivery (is_first, destination_id, connection_id, path)
`

const insertDocuments = `
  insert into documents (
    id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, erp_object_type, erp_object_id, ar_object,
    received_at, modified_at, request_id
  )
  select
    id, :workspaceId, :repositoryId, 'Z1', upper(md5(n::text)), 'data', 'application/pdf', 20000 + n % 300000, status, 'VBRK',
    lpad((90000000 + n)::text, 10, '0'), 'ZINVOICE', received_at, received_at, id
  from (${documents}) as document
`

const insertDeliveries = `
  insert into deliveries (
    document_id, destination_id, workspace_id, connection_id, status, path, location, attempts, delivered_at, status_since, last_error,
    last_error_code, ended_by, next_attempt_at
  )
  select
    id, destination_id, :workspaceId, connection_id, delivery_status, path,
    case when delivery_status = 'delivered' then path end,
    case when delivery_status = 'pending' then 0 else 1 end,
    case when delivery_status = 'delivered' then started_at + duration_ms * interval '1 millisecond' end,
    started_at + duration_ms * interval '1 millisecond',
    case delivery_status when 'failed' then 'the target answered 404 Not Found' when 'retrying' then 'the target answered 503' end,
    case delivery_status when 'failed' then 'http_404' when 'retrying' then 'http_503' end,
    case when delivery_status = 'failed' then 'permanent_error' end,
    case when delivery_status in ('pending', 'retrying') then now() + interval '1 hour' end
  from (${deliveries}) as delivery
`

const insertAttempts = `
  insert into delivery_attempts (
    id, workspace_id, document_id, destination_id, number, started_at, duration_ms, outcome, error_code, error_message, answer, bytes_sent
  )
  select
    (:prefixes::text[])[1 + hour] || lpad((2 * n + case when is_first then 0 else 1 end)::text, 16, '0'),
    :workspaceId, id, destination_id, 1, started_at, duration_ms,
    case delivery_status when 'failed' then 'permanent' when 'retrying' then 'retryable' else 'delivered' end,
    case delivery_status when 'failed' then 'http_404' when 'retrying' then 'http_503' end,
    case delivery_status when 'failed' then 'the target answered 404 Not Found' when 'retrying' then 'the target answered 503' end,
    jsonb_build_object('status', case delivery_status when 'failed' then 404 when 'retrying' then 503 else 200 end),
    20000 + n % 300000
  from (${deliveries}) as delivery
  where delivery_status <> 'pending'
`

/**
 * Inserts documents of the last 30 days with two deliveries each, their attempts, keys and counters: invoices with consecutive numbers,
 * the first to the destination `first`, the second to one of the others. The triggers of the schema write the keys and count.
 */
export const insertManyDocuments = async (
  db: Database,
  routes: Pick<Awaited<ReturnType<typeof createRoutes>>, 'workspaceId' | 'repositoryId' | 'destinations' | 'connections'>,
  first: string,
  count: number,
): Promise<void> => {
  // They end with the last whole hour, so that none is of the future.
  const since = new Date((Math.floor(Date.now() / hourMs) - hours) * hourMs)
  const others = Object.keys(routes.destinations).filter((name) => name !== first)
  const values = {
    since,
    hours,
    count,
    prefixes: Array.from({ length: hours }, (_, hour) => idPrefixAt(new Date(since.getTime() + hour * hourMs))),
    workspaceId: routes.workspaceId,
    repositoryId: routes.repositoryId,
    firstDestination: routes.destinations[first]!,
    firstConnection: routes.connections[first]!,
    destinations: others.map((name) => routes.destinations[name]!),
    connections: others.map((name) => routes.connections[name]!),
    others: others.length,
  }
  await ensurePartitions(db, since)
  for (let from = 1; from <= count; from += documentsPerStatement) {
    const range = { first: from, last: Math.min(count, from + documentsPerStatement - 1) }
    for (const insert of [insertDocuments, insertDeliveries, insertAttempts]) await db.raw(insert, { ...values, ...range })
  }
  await foldAll(db)
  for (const table of ['documents', 'document_keys', 'deliveries', 'delivery_attempts', 'counters', 'counter_deltas']) {
    await db.raw('vacuum analyze ??', [table])
  }
}
