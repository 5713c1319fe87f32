import { foldCounters } from '../../src/db/counters.ts'
import type { Database } from '../../src/db/database.ts'

const neverAborted = new AbortController().signal

/** Adds all changes to the counters. @returns the number of changes */
export const foldAll = (db: Database, batchSize?: number) => foldCounters(db, neverAborted, batchSize)

// How long a delivered attempt took is left out: an append to its document would change the answer. test/api/stats.db.test.ts checks it.
const comparedDetail = `case when kind like '%attempts' and status = 'delivered' then '' else detail end`

const sums = `
        cross join lateral (
          values ('all_' || kind, repo_id, ''), ('destination_' || kind, '', destination_id)
        ) as summed (kind, repo_id, destination_id)
        where counted.kind in ('deliveries', 'attempts')`

/**
 * Compares the counters, together with the changes that are not folded yet, with the rows themselves, in one statement.
 * @param attemptsSince attempts before it are left out
 * @returns what differs
 */
export const findWrongCounters = async (db: Database, attemptsSince = new Date(0)): Promise<unknown[]> => {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `
    with counted as (
      select workspace_id, 'documents' as kind, date_trunc('hour', received_at, 'UTC') as hour, repo_id, '' as destination_id, status,
        case when acknowledged_at is not null then 'acknowledged' when is_unconnected then 'unconnected' else '' end as detail, count(*) as rows
      from documents
      group by 1, 2, 3, 4, 5, 6, 7
      union all
      select deliveries.workspace_id, 'deliveries', date_trunc('hour', status_since, 'UTC'), repo_id, destination_id, deliveries.status, '', count(*)
      from deliveries
      join documents on documents.id = document_id
      group by 1, 2, 3, 4, 5, 6, 7
      union all
      select deliveries.workspace_id, 'failures', date_trunc('hour', status_since, 'UTC'), '', destination_id, deliveries.status,
        coalesce(last_error_code, 'none'), count(*)
      from deliveries
      join documents on documents.id = document_id
      where deliveries.status = 'retrying'
        or (deliveries.status in ('failed', 'cancelled') and documents.status = 'failed' and acknowledged_at is null)
      group by 1, 2, 3, 4, 5, 6, 7
      union all
      select delivery_attempts.workspace_id, 'attempts', date_trunc('hour', started_at, 'UTC'), coalesce(repo_id, ''), destination_id, outcome,
        coalesce(error_code, ''), count(*)
      from delivery_attempts
      left join documents on documents.id = document_id
      where started_at >= :attemptsSince
      group by 1, 2, 3, 4, 5, 6, 7
    ), totals as (
      select summed.*, period.name as period, period.since
      from (
        select * from counted
        union all
        select workspace_id, summed.kind, hour, summed.repo_id, summed.destination_id, status, detail, rows from counted ${sums}
      ) as summed
      cross join lateral (
        values ('hour', hour), ('day', date_trunc('day', hour, 'UTC')), ('all', '-infinity'::timestamptz)
      ) as period (name, since)
      where kind not like '%attempts' or period.name = 'hour'
    ), changes as (
      select changed.*, period.name as period, period.since
      from (
        select * from counter_deltas
        union all
        select workspace_id, summed.kind, hour, summed.repo_id, summed.destination_id, status, detail, change from counter_deltas as counted ${sums}
      ) as changed
      cross join lateral (
        values ('hour', hour), ('day', date_trunc('day', hour, 'UTC')), ('all', '-infinity'::timestamptz)
      ) as period (name, since)
      where kind not like '%attempts' or period.name = 'hour'
    )
    select workspace_id, kind, period, since, repo_id, destination_id, status, detail, sum(expected) as expected, sum(found) as found
    from (
      select workspace_id, kind, period, since, repo_id, destination_id, status, detail, rows as expected, 0 as found from totals
      union all
      select workspace_id, kind, period, since, repo_id, destination_id, status, ${comparedDetail}, 0, change from changes
      union all
      select workspace_id, kind, period, since, repo_id, destination_id, status, ${comparedDetail}, 0, count from counters
      where kind not like '%attempts' or (period = 'hour' and since >= :attemptsSince)
    ) as compared
    group by workspace_id, kind, period, since, repo_id, destination_id, status, detail
    having sum(expected) <> sum(found)
    limit 20
    `,
    { attemptsSince },
  )
  return rows
}
