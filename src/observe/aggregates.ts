import { Gauge, type Metric } from 'prom-client'
import { presentCounts } from '../db/counters.ts'
import type { Database } from '../db/database.ts'
import { createOnItsOwn } from '../db/on-its-own.ts'
import { listPartitionEnds } from '../db/partitions.ts'
import { isFailing } from '../enrichment/failing.ts'
import { lastRequestMetric, oldestUnderWay, unacknowledgedFailures } from './statistics.ts'

interface Sample {
  labels: Record<string, string>
  /** Null: nothing to measure. */
  value: number | null
}

interface Aggregate {
  name: string
  help: string
  labelNames: readonly string[]
  /** Returns the exported value. @param stored as `compute` has returned it @param nowSeconds since 1970 */
  exported?: (stored: number, nowSeconds: number) => number
  compute(db: Database): Promise<Sample[]>
}

/** Exports the age of a point in time. */
const age = (since: number, nowSeconds: number) => Math.max(0, nowSeconds - since)
/** Exports the time until a point in time. It is negative if the point is past. */
const remaining = (until: number, nowSeconds: number) => until - nowSeconds

const query =
  (sql: string) =>
  async (db: Database): Promise<Sample[]> =>
    (await db.raw<{ rows: Sample[] }>(sql)).rows

/** Returns the duty of a step of retention, as the table `duties` names it. */
export const retentionDuty = (step: string): string => `retention/${step}`

const computedName = 'relay_statistics_computed_timestamp_seconds'

/** Each query reads small tables, or asks an index once per workspace, destination or repository. */
export const aggregates: readonly Aggregate[] = [
  {
    name: 'relay_deliveries_open',
    help: 'Deliveries of a workspace that have not ended, by status: pending, held or retrying',
    labelNames: ['workspace', 'status'],
    compute: query(`
      select
        jsonb_build_object('workspace', user_slug || '/' || workspace_slug, 'status', open.status) as labels,
        coalesce(sum(counted.count), 0)::float8 as value
      from workspaces
      cross join (values ('pending'), ('held'), ('retrying')) as open (status)
      left join lateral (${presentCounts('all_deliveries', 'and status = open.status', 'workspaces.id')}) as counted on true
      group by user_slug, workspace_slug, open.status
    `),
  },
  {
    name: 'relay_documents_failed',
    help: 'Failed documents of a workspace that nobody has acknowledged',
    labelNames: ['workspace'],
    compute: query(`
      select jsonb_build_object('workspace', user_slug || '/' || workspace_slug) as labels, coalesce(sum(counted.count), 0)::float8 as value
      from workspaces
      left join lateral (${presentCounts('documents', `and ${unacknowledgedFailures}`, 'workspaces.id')}) as counted on true
      group by user_slug, workspace_slug
    `),
  },
  {
    name: 'relay_oldest_open_delivery_seconds',
    help: 'Age of the oldest document of a workspace with a pending or retrying delivery, by connector; 0 if there is none',
    labelNames: ['workspace', 'connector'],
    exported: (since, nowSeconds) => (since === 0 ? 0 : age(since, nowSeconds)),
    compute: query(`
      select
        jsonb_build_object('workspace', user_slug || '/' || workspace_slug, 'connector', connector_type) as labels,
        coalesce(extract(epoch from min(received_at)), 0)::float8 as value
      from destinations
      join workspaces on workspaces.id = destinations.workspace_id
      left join lateral ${oldestUnderWay} on true
      left join documents on documents.id = oldest.document_id
      where deleted_at is null
      group by user_slug, workspace_slug, connector_type
    `),
  },
  {
    name: 'relay_destination_slots_used',
    help: 'Slots of destinations that attempts hold, by connector',
    labelNames: ['connector'],
    compute: query(`
      select
        jsonb_build_object('connector', connector_type) as labels,
        (count(*) filter (where holder is not null and leased_until > now()))::float8 as value
      from destinations
      left join destination_slots on destination_slots.destination_id = destinations.id
      group by connector_type
    `),
  },
  {
    name: 'relay_circuits',
    help: 'Destinations by the state of their circuit: closed, open or half_open',
    labelNames: ['state'],
    compute: query(`
      select jsonb_build_object('state', known.state) as labels, count(destination.state)::float8 as value
      from (values ('closed'), ('open'), ('half_open')) as known (state)
      left join (
        select coalesce(circuit, 'closed') as state
        from destinations
        left join destination_gates on destination_id = destinations.id
        where deleted_at is null
      ) as destination using (state)
      group by known.state
    `),
  },
  {
    name: lastRequestMetric,
    help: 'Time of the last captured request for each active repository; without a value if there was none',
    labelNames: ['workspace', 'repo_id'],
    // Retention removes captured requests, but not what is known from them.
    compute: query(`
      select repository.labels, greatest(extract(epoch from request_at), known.value)::float8 as value
      from (
        select
          jsonb_build_object('workspace', user_slug || '/' || workspace_slug, 'repo_id', repo_id) as labels, request_at
        from repositories
        join workspaces on workspaces.id = repositories.workspace_id
        left join lateral (
          select request_at
          from captured_requests
          where workspace_id = repositories.workspace_id
            and repo_id = repositories.repo_id
          order by id desc
          limit 1
        ) as last on true
        where repositories.deleted_at is null
          and repositories.status = 'active'
      ) as repository
      left join aggregates as known
        on known.metric = '${lastRequestMetric}' and known.labels = repository.labels
    `),
  },
  {
    name: 'relay_certificate_not_after_timestamp_seconds',
    help: 'End of validity of the active certificate of a signer that is valid for the longest time',
    labelNames: ['workspace', 'repo_id', 'auth_id'],
    compute: query(`
      select
        jsonb_build_object('workspace', user_slug || '/' || workspace_slug, 'repo_id', repo_id, 'auth_id', auth_id) as labels,
        extract(epoch from max(valid_to))::float8 as value
      from certificates
      join repositories on repositories.id = certificates.repository_id
      join workspaces on workspaces.id = repositories.workspace_id
      where is_active
        and repositories.deleted_at is null
        and repositories.status = 'active'
      group by user_slug, workspace_slug, repo_id, auth_id
    `),
  },
  {
    name: 'relay_enrichment_documents',
    help: 'Documents of an enrichment by its status for them: pending, complete, partial, failed or skipped',
    labelNames: ['workspace', 'enrichment', 'status'],
    compute: query(`
      select
        jsonb_build_object(
          'workspace', user_slug || '/' || workspace_slug, 'enrichment', enrichments.name, 'status', counted.status) as labels,
        sum(counted.count)::float8 as value
      from enrichments
      join workspaces on workspaces.id = enrichments.workspace_id
      cross join lateral (
        ${presentCounts('enrichments', 'and detail = enrichments.id', 'enrichments.workspace_id')}
      ) as counted
      group by user_slug, workspace_slug, enrichments.name, counted.status
    `),
  },
  {
    name: 'relay_enrichment_failing',
    help: '1 if an active enrichment has missed its latest documents, otherwise 0',
    labelNames: ['workspace', 'enrichment'],
    compute: query(`
      select
        jsonb_build_object('workspace', user_slug || '/' || workspace_slug, 'enrichment', enrichments.name) as labels,
        max(case when ${isFailing('enrichments.id')} then 1 else 0 end)::float8 as value
      from enrichments
      join workspaces on workspaces.id = enrichments.workspace_id
      where is_active
      group by user_slug, workspace_slug, enrichments.name
    `),
  },
  {
    name: 'relay_contents_not_removed',
    help: 'Contents without an owner whose removal began more than an hour ago: the bytes could not be removed',
    labelNames: [],
    compute: query(`
      select '{}'::jsonb as labels, count(*)::float8 as value
      from contents
      where removal_began_at < now() - interval '1 hour'
    `),
  },
  {
    name: 'relay_retention_late_seconds',
    help: 'Time since a step of retention has last done its work in all workspaces, by step. It runs once an hour',
    labelNames: ['step'],
    exported: age,
    compute: query(`
      select jsonb_build_object('step', substr(name, length('${retentionDuty('')}') + 1)) as labels, extract(epoch from done_at)::float8 as value
      from duties
      where name like '${retentionDuty('')}%'
    `),
  },
  {
    name: 'relay_partitions_ahead_seconds',
    help: 'Time until rows of a table have no partition any more',
    labelNames: ['table'],
    exported: remaining,
    compute: async (db) => (await listPartitionEnds(db)).map(({ table, end }) => ({ labels: { table }, value: end.getTime() / 1_000 })),
  },
  {
    name: 'relay_database_bytes',
    help: 'Size of the database on disk',
    labelNames: [],
    compute: query(`select '{}'::jsonb as labels, pg_database_size(current_database())::float8 as value`),
  },
  {
    name: computedName,
    help: 'Time at which these metrics were computed; 0 if never',
    labelNames: [],
    compute: query(`select '{}'::jsonb as labels, extract(epoch from now())::float8 as value`),
  },
]

/** Computes all aggregates, each on its own, and stores them. An aggregate that fails keeps its values. @returns the number of samples */
export const computeAggregates = async (db: Database, onItsOwn = createOnItsOwn().onItsOwn): Promise<number> => {
  const kept: string[] = []
  const samples: { metric: string; labels: Sample['labels']; value: number }[] = []
  for (const { name, compute } of aggregates) {
    const computed = await onItsOwn('aggregates', { metric: name }, () => compute(db))
    if (!computed) kept.push(name)
    for (const { labels, value } of computed ?? []) if (value !== null) samples.push({ metric: name, labels, value })
  }
  await db.transaction(async (trx) => {
    // Two runs at the same time would lock rows in different orders.
    await trx.raw(`select pg_advisory_xact_lock(hashtext('compute-metrics'))`)
    await trx.raw(
      `
      with fresh as materialized (
        select metric, labels, value
        from jsonb_to_recordset(:samples::jsonb) as sample (metric text, labels jsonb, value float8)
      ), removed as (
        delete from aggregates
        where metric <> all (:kept::text[])
          and not exists (
            select
            from fresh
            where fresh.metric = aggregates.metric
              and fresh.labels = aggregates.labels
          )
      )
      insert into aggregates (metric, labels, value)
      select metric, labels, value
      from fresh
      on conflict (metric, labels) do update
      set value = excluded.value
      where aggregates.value <> excluded.value
      `,
      { samples: JSON.stringify(samples), kept },
    )
  })
  return samples.length
}

interface Stored {
  metric: string
  labels: Sample['labels']
  value: number
}

/** Creates gauges that export what was computed last. One scrape reads the table once. */
export const createAggregateMetrics = (db: Database): Metric[] => {
  let reading: Promise<Map<string, Stored[]>> | undefined
  const read = () =>
    (reading ??= db('aggregates')
      .select<Stored[]>('metric', 'labels', 'value')
      .then((rows) => Map.groupBy(rows, ({ metric }) => metric))
      .finally(() => (reading = undefined)))

  return aggregates.map(
    ({ name, help, labelNames, exported = (value) => value }) =>
      new Gauge({
        name,
        help,
        labelNames,
        registers: [],
        async collect() {
          const stored = await read().catch(() => undefined)
          this.reset()
          // A gauge without labels has a value at any time.
          if (labelNames.length === 0) this.set(stored ? 0 : Number.NaN)
          for (const { labels, value } of stored?.get(name) ?? []) {
            const inOrder = Object.fromEntries(labelNames.map((label) => [label, labels[label]!]))
            this.set(inOrder, exported(value, Date.now() / 1_000))
          }
        },
      }),
  )
}
