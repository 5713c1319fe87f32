import type { Database } from '../../db/database.ts'
import type { RelayState } from '../../domain/relay-state.ts'

/** Kinds of things whose changes are reported. */
export const changeKinds = ['deliveries', 'bulk_retries', 'configuration', 'requests', 'relay'] as const
type ChangeKind = (typeof changeKinds)[number]

/** A text for each kind that differs once something of the kind has changed. */
export type Versions = Record<ChangeKind, string>

// The numbers of documents, deliveries, enrichments and attempts stand for what is behind them: each attempt adds to one. Attempts are counted by hour.
const statement = `
  select
    listened.id as "workspaceId",
    (
      select md5(coalesce(string_agg(concat_ws(' ', kind, status, detail, total), ',' order by kind, status, detail), ''))
      from (
        select kind, status, detail, sum(count) as total
        from (
          select replace(kind, 'all_', '') as kind, status, detail, count
          from counters
          where workspace_id = listened.id
            and kind in ('documents', 'all_deliveries', 'enrichments')
            and period = 'all'
            and since = '-infinity'
          union all
          select 'attempts', status, detail, count
          from counters
          where workspace_id = listened.id
            and kind = 'all_attempts'
            and period = 'hour'
            and since >= date_trunc('hour', now(), 'UTC') - interval '1 hour'
          union all
          select kind, status, detail, change
          from counter_deltas
          where workspace_id = listened.id
            and (kind <> 'attempts' or hour >= date_trunc('hour', now(), 'UTC') - interval '1 hour')
        ) as part
        group by kind, status, detail
        having sum(count) <> 0
      ) as counted
    ) as deliveries,
    (
      select coalesce(string_agg(concat_ws(' ', id, status, retried_documents, retried_deliveries), ','), '')
      from (
        select id, status, retried_documents, retried_deliveries
        from bulk_retries
        where workspace_id = listened.id
        order by id desc
        limit 10
      ) as newest
    ) as bulk_retries,
    coalesce((select id from audit_logs where workspace_id = listened.id order by id desc limit 1), '') as configuration,
    coalesce((select id from captured_requests where workspace_id = listened.id order by id desc limit 1), '') as requests
  from unnest(:workspaceIds::text[]) as listened (id)
`

/**
 * Returns a function that reads the versions of workspaces. It asks indexes and adds up counters, so that transactions that write documents
 * or deliveries need no statement for it: notifications of PostgreSQL would make their commits wait for one another.
 */
export const createReadVersions =
  (db: Database, relayWatch: { read(): Pick<RelayState, 'status'> }) =>
  async (workspaceIds: readonly string[]): Promise<Map<string, Versions>> => {
    const { rows } = await db.raw<{ rows: (Omit<Versions, 'relay'> & { workspaceId: string })[] }>(statement, {
      workspaceIds: [...workspaceIds],
    })
    const relay = relayWatch.read().status
    return new Map(rows.map(({ workspaceId, ...versions }) => [workspaceId, { ...versions, relay }]))
  }

export type ReadVersions = ReturnType<typeof createReadVersions>
