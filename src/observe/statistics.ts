import type { Config } from '../config/config.ts'
import { countsOfRange, presentCounts, wholePeriods, type Sum } from '../db/counters.ts'
import type { Database } from '../db/database.ts'
import { attemptOutcomes, type AttemptOutcomeName } from '../delivery/attempt-log.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import { nameable } from '../domain/date-range.ts'
import { deliveryStatuses, documentStatuses, type DeliveryStatus, type DocumentStatus } from '../domain/delivery-states.ts'
import { zeros, type statisticsFields } from './statistics-fields.ts'

export interface StatisticsFilter {
  /** Both ends are rounded to whole hours or days, so that the range becomes longer. `before` is exclusive. */
  since: Date
  before: Date
  repoId?: string | undefined
  destinationId?: string | undefined
  connectorType?: string | undefined
}

type Statistics = CamelCasedOutput<typeof statisticsFields>
type Present = Statistics['present']
type Latency = Statistics['latency']

interface Row {
  documents: Partial<Record<DocumentStatus, number>> | null
  deliveries: Partial<Record<DeliveryStatus, number>> | null
  attempts: Partial<Record<AttemptOutcomeName, number>> | null
  /** Seconds since 1970, received, delivered, failed, latencies. */
  series: [number, number, number, number, LatencyHistogram | null][] | null
  errors: Statistics['errors'] | null
}

const maxErrors = 10
const maxOldestDeliveries = 100
// A longer range is counted by day: it would read too many counters otherwise.
export const hourlyMaxMs = 7 * 86_400_000

const ofRepository = 'and (:repoId::text is null or repo_id = :repoId)'
const ofDeliveries = `${ofRepository}
    and (:destinationId::text is null or destination_id = :destinationId)
    and (
      :connectorType::text is null
      or destination_id in (select id from destinations where workspace_id = :workspaceId and connector_type = :connectorType)
    )
`

const conditionsOf = (sum: Sum) => (sum === 'all_' ? ofRepository : ofDeliveries)

const statementOf = (sum: Sum) => `
  with part as materialized (
    select kind, start, status, detail, sum(count) as count
    from (
      ${countsOfRange('documents', `${ofRepository} and :countsDocuments`)}
      union all
      ${countsOfRange(`${sum}deliveries`, conditionsOf(sum))}
      union all
      ${countsOfRange(`${sum}attempts`, conditionsOf(sum))}
    ) as counted
    group by kind, start, status, detail
    having sum(count) <> 0
  ), total as (
    select kind, status, sum(count) as count
    from part
    group by kind, status
  ), period as (
    select
      start,
      coalesce(sum(count) filter (where kind = 'documents'), 0) as received,
      coalesce(sum(count) filter (where kind = 'attempts' and status = 'delivered'), 0) as delivered,
      coalesce(sum(count) filter (where kind = 'attempts' and status in ('retryable', 'permanent', 'interrupted')), 0) as failed,
      jsonb_object_agg(detail, count) filter (where kind = 'attempts' and status = 'delivered' and detail <> '') as latencies
    from part
    group by start
  ), error as (
    select detail as code, sum(count) as attempts
    from part
    where kind = 'attempts'
      and status <> 'delivered'
      and detail <> ''
    group by detail
    order by attempts desc, code
    limit ${maxErrors}
  )
  select
    (select jsonb_object_agg(status, count) from total where kind = 'documents') as documents,
    (select jsonb_object_agg(status, count) from total where kind = 'deliveries') as deliveries,
    (select jsonb_object_agg(status, count) from total where kind = 'attempts') as attempts,
    (select jsonb_agg(jsonb_build_array(extract(epoch from start), received, delivered, failed, latencies)) from period) as series,
    (select jsonb_agg(jsonb_build_object('code', code, 'attempts', attempts) order by attempts desc, code) from error) as errors
`

/** SQL: the counters of failed documents that are not acknowledged. */
export const unacknowledgedFailures = `status = 'failed' and detail = ''`
/** SQL: the counters of documents that need attention: also those that were discarded, and neither acknowledged nor replayed. */
export const needsAttention = `(${unacknowledgedFailures} or status = 'discarded' and detail = 'unconnected')`

const presentStatementOf = (sum: Sum) => `
  select
    coalesce(sum(count) filter (where kind = 'documents' and status = 'failed'), 0)::bigint as "unacknowledgedFailures",
    coalesce(sum(count) filter (where kind = 'documents' and status = 'discarded'), 0)::bigint as "unacknowledgedDiscards",
    coalesce(sum(count) filter (where kind = 'deliveries' and status = 'pending'), 0)::bigint as pending,
    coalesce(sum(count) filter (where kind = 'deliveries' and status = 'held'), 0)::bigint as held,
    coalesce(sum(count) filter (where kind = 'deliveries' and status = 'retrying'), 0)::bigint as retrying
  from (
    ${presentCounts('documents', `${ofRepository} and :countsDocuments and ${needsAttention}`)}
    union all
    ${presentCounts(`${sum}deliveries`, conditionsOf(sum))}
  ) as counted
`

/** The metric that has the last request of each repository, also after retention has removed the captured request. */
export const lastRequestMetric = 'relay_repository_last_request_timestamp_seconds'

const latencyOf = (histogram: LatencyHistogram): Latency => ({
  p50Ms: percentileOf(histogram, 0.5),
  p95Ms: percentileOf(histogram, 0.95),
  p99Ms: percentileOf(histogram, 0.99),
})

/**
 * SQL of a lateral join: the oldest delivery of a row of `destinations` that is under way, as `oldest` (document_id, status). It asks the
 * index twice. Ids of documents are in the order of receipt.
 */
export const oldestUnderWay = `(
      select first.document_id, under_way.status
      from (values ('pending'), ('retrying')) as under_way (status)
      cross join lateral (
        select document_id
        from deliveries
        where destination_id = destinations.id
          and deliveries.status = under_way.status
        order by document_id
        limit 1
      ) as first
      order by first.document_id
      limit 1
    ) as oldest`

const oldestStatement = `
  select
    destinations.id as "destinationId", destinations.name as "destinationName", connector_type as "connectorType",
    oldest.document_id as "documentId", oldest.status, received_at as "receivedAt"
  from destinations
  cross join lateral ${oldestUnderWay}
  join documents on documents.id = oldest.document_id
  where destinations.workspace_id = :workspaceId
    and destinations.deleted_at is null
    and (:destinationId::text is null or destinations.id = :destinationId)
    and (:connectorType::text is null or connector_type = :connectorType)
  order by oldest.document_id
  limit ${maxOldestDeliveries}
`

const storedStatement = `
  select
    (select coalesce(sum(bytes), 0)::bigint from workspace_storage where workspace_id = workspaces.id) as "storedBytes",
    least(nullif(:maxBytes::bigint, 0), (settings ->> 'receiver_max_bytes')::bigint) as "maxBytes"
  from workspaces
  where id = :workspaceId
`

export const createStatistics = (db: Database, { RELAY_WORKSPACE_MAX_BYTES: maxBytes }: Pick<Config, 'RELAY_WORKSPACE_MAX_BYTES'>) => ({
  /** Adds up counters. Documents themselves are not read, except the oldest of each destination. */
  read: async (workspaceId: string, filter: StatisticsFilter): Promise<Statistics> => {
    const { repoId, destinationId, connectorType } = filter
    const interval = filter.before.getTime() - filter.since.getTime() <= hourlyMaxMs ? 'hour' : 'day'
    const { lengthMs, ...range } = wholePeriods(interval, filter)
    const countsDocuments = destinationId === undefined && connectorType === undefined
    const sum = countsDocuments ? 'all_' : repoId === undefined ? 'destination_' : ''
    const bindings = {
      workspaceId,
      ...range,
      interval,
      countsDocuments,
      repoId: repoId ?? null,
      destinationId: destinationId ?? null,
      connectorType: connectorType ?? null,
    }
    const [{ rows }, present, stored, oldest] = await Promise.all([
      db.raw<{ rows: Row[] }>(statementOf(sum), bindings),
      db.raw<{ rows: Present[] }>(presentStatementOf(sum), bindings),
      db.raw<{ rows: Pick<Present, 'storedBytes' | 'maxBytes'>[] }>(storedStatement, { workspaceId, maxBytes }),
      repoId === undefined ? db.raw<{ rows: NonNullable<Statistics['oldestDeliveries']> }>(oldestStatement, bindings) : undefined,
    ])
    const { documents, deliveries, attempts, series, errors } = rows[0]!
    const byTime = new Map((series ?? []).map(([seconds, ...counts]) => [seconds * 1_000, counts]))
    const histograms = (series ?? []).map(([, , , , histogram]) => histogram ?? {})
    const now = { ...present.rows[0]!, ...stored.rows[0]! }
    const length = (range.before.getTime() - range.since.getTime()) / lengthMs
    return {
      dateFrom: range.since,
      dateTo: nameable(range.before),
      documents: countsDocuments ? zeros(documentStatuses, documents) : null,
      deliveries: zeros(deliveryStatuses, deliveries),
      attempts: zeros(attemptOutcomes, attempts),
      interval,
      series: Array.from({ length }, (_, index) => {
        const start = new Date(range.since.getTime() + index * lengthMs)
        const [received, delivered, failed, histogram] = byTime.get(start.getTime()) ?? [0, 0, 0, null]
        return { start, received: countsDocuments ? received : null, delivered, failed, latency: latencyOf(histogram ?? {}) }
      }),
      oldestDeliveries: oldest?.rows ?? null,
      errors: errors ?? [],
      latency: latencyOf(addHistograms(histograms)),
      present: countsDocuments ? now : { ...now, unacknowledgedFailures: null, unacknowledgedDiscards: null },
    }
  },
})

export type StatisticsReader = ReturnType<typeof createStatistics>

/** The number of deliveries by the upper bound of their latency in milliseconds, which is a power of two. */
export type LatencyHistogram = Readonly<Record<string, number>>

export const addHistograms = (histograms: readonly LatencyHistogram[]): LatencyHistogram => {
  const sum: Record<string, number> = {}
  for (const histogram of histograms) {
    for (const [bound, count] of Object.entries(histogram)) sum[bound] = (sum[bound] ?? 0) + count
  }
  return sum
}

/**
 * Estimates a percentile. The buckets double, and latencies are taken to be spread evenly in each.
 * @param share 0.95 for the 95th percentile
 * @returns whole milliseconds, or null without deliveries
 */
export const percentileOf = (histogram: LatencyHistogram, share: number): number | null => {
  const buckets = Object.entries(histogram)
    .map(([bound, count]) => ({ bound: Number(bound), count }))
    .filter(({ count }) => count > 0)
    .toSorted((one, other) => one.bound - other.bound)
  const rank = share * buckets.reduce((sum, { count }) => sum + count, 0)
  let below = 0
  for (const { bound, count } of buckets) {
    if (below + count >= rank) return Math.round(bound / 2 + (bound / 2) * ((rank - below) / count))
    below += count
  }
  return null
}
