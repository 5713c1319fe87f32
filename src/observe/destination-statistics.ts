import { countsOfRange, presentCounts, wholePeriods } from '../db/counters.ts'
import type { Database } from '../db/database.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import { deliveryStatuses, type DeliveryStatus } from '../domain/delivery-states.ts'
import { zeros, type destinationStatisticsFields } from './statistics-fields.ts'
import { hourlyMaxMs, oldestUnderWay, type StatisticsFilter } from './statistics.ts'

type DestinationStatistics = CamelCasedOutput<typeof destinationStatisticsFields> & { id: string }

interface Row {
  id: string
  /** Seconds since 1970, delivered, failed. */
  series: [number, number, number][] | null
  deliveries: Partial<Record<DeliveryStatus, number>> | null
  oldest: (Omit<NonNullable<DestinationStatistics['oldestDelivery']>, 'receivedAt'> & { receivedAt: string }) | null
}

const ofDestinations = 'and destination_id = any (:ids)'

const statement = `
  with period as (
    select
      destination_id, start,
      coalesce(sum(count) filter (where status = 'delivered'), 0) as delivered,
      coalesce(sum(count) filter (where status in ('retryable', 'permanent', 'interrupted')), 0) as failed
    from (
      ${countsOfRange('destination_attempts', ofDestinations)}
    ) as counted
    group by destination_id, start
  ), series as (
    select destination_id, jsonb_agg(jsonb_build_array(extract(epoch from start), delivered, failed)) as series
    from period
    group by destination_id
  ), delivery as (
    select destination_id, status, sum(count) as count
    from (
      ${presentCounts('destination_deliveries', ofDestinations)}
    ) as counted
    group by destination_id, status
  ), present_deliveries as (
    select destination_id, jsonb_object_agg(status, count) as deliveries
    from delivery
    group by destination_id
  )
  select
    destinations.id, series, deliveries,
    case when document_id is not null then jsonb_build_object(
      'documentId', document_id, 'status', oldest.status, 'receivedAt', received_at) end as oldest
  from destinations
  left join series on series.destination_id = destinations.id
  left join present_deliveries on present_deliveries.destination_id = destinations.id
  left join lateral ${oldestUnderWay} on true
  left join documents on documents.id = document_id
  where destinations.id = any (:ids)
`

export const createDestinationStatistics = (db: Database) => ({
  /** Adds up the counters of the destinations of a page, which are those of the list of destinations with the same page. */
  list: async (
    workspaceId: string,
    { since, before, destinationId, ...page }: Pick<StatisticsFilter, 'since' | 'before' | 'destinationId'> & PageRequest,
  ): Promise<Page<DestinationStatistics>> => {
    const interval = before.getTime() - since.getTime() <= hourlyMaxMs ? 'hour' : 'day'
    const { lengthMs, ...range } = wholePeriods(interval, { since, before })
    const query = db('destinations').where({ workspace_id: workspaceId }).whereNull('deleted_at').orderBy('id')
    if (destinationId !== undefined) query.where({ id: destinationId })
    const { items, total } = await pageOf<{ id: string; name: string }>(query, ['id', 'name'], page)
    const bindings = { workspaceId, interval, ...range, ids: items.map(({ id }) => id) }
    const { rows } = await db.raw<{ rows: Row[] }>(statement, bindings)
    const byId = new Map(rows.map((row) => [row.id, row]))
    const length = (range.before.getTime() - range.since.getTime()) / lengthMs
    return {
      total,
      items: items.map(({ id, name }) => {
        const { series, deliveries, oldest } = byId.get(id)!
        const byTime = new Map((series ?? []).map(([seconds, ...counts]) => [seconds * 1_000, counts]))
        return {
          id,
          destinationName: name,
          series: Array.from({ length }, (_, index) => {
            const start = new Date(range.since.getTime() + index * lengthMs)
            const [delivered, failed] = byTime.get(start.getTime()) ?? [0, 0]
            return { start, delivered, failed }
          }),
          currentDeliveries: zeros(deliveryStatuses, deliveries),
          oldestDelivery: oldest && { ...oldest, receivedAt: new Date(oldest.receivedAt) },
        }
      }),
    }
  },
})

export type DestinationStatisticsReader = ReturnType<typeof createDestinationStatistics>
