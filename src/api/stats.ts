import { z } from 'zod'
import { deliveryStatus } from '../archive/document-fields.ts'
import { invalidRequest } from '../base/refusals.ts'
import { attemptOutcomes } from '../delivery/attempt-log.ts'
import { dateFrom, dateTo, nameable, timestamp } from '../domain/date-range.ts'
import { deliveryStatuses, documentStatuses } from '../domain/delivery-states.ts'
import type { DestinationStatistics, DestinationStatisticsReader } from '../observe/destination-statistics.ts'
import type { Statistics, StatisticsReader } from '../observe/statistics.ts'
import { connectorTypeName } from '../workspace/inputs.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { one, resource } from './schemas.ts'

/** A number for each name. */
const countsOf = <Name extends string>(names: readonly Name[]) =>
  z.object(Object.fromEntries(names.map((name) => [name, z.int()])) as Record<Name, z.ZodInt>)

const milliseconds = z.int().nullable()
const latency = z.object({ p50_ms: milliseconds, p95_ms: milliseconds, p99_ms: milliseconds }).meta({
  id: 'Latency',
  description:
    'Time from the receipt of a document, or from the last append to it, to its delivery: percentiles in milliseconds, or null without ' +
    'deliveries. They are estimated from a histogram whose buckets double.',
})

const attributes = z.object({
  date_from: timestamp.describe('Start of the range: `date_from`, rounded down to a whole hour or day in UTC.'),
  date_to: timestamp.describe('End of the range, exclusive: `date_to`, rounded up to a whole hour or day in UTC.'),
  documents: countsOf(documentStatuses)
    .meta({ id: 'DocumentCounts' })
    .nullable()
    .describe(
      'Documents received in the range, by their present status. Null with `destination_id` or `connector_type`: a document may go to ' +
        'several destinations.',
    ),
  deliveries: countsOf(deliveryStatuses).meta({
    id: 'DeliveryCounts',
    description: 'Deliveries that got their present status in the range, by that status.',
  }),
  attempts: countsOf(attemptOutcomes).meta({ id: 'AttemptCounts', description: 'Attempts that started in the range, by outcome.' }),
  interval: z.enum(['hour', 'day']).meta({ id: 'StatsInterval' }).describe('`hour` for a range of up to 7 days, otherwise `day`.'),
  series: z
    .array(
      z
        .object({
          start: timestamp.describe('Start of the hour or day.'),
          received: z.int().nullable().describe('Documents received. Null if `documents` is null.'),
          delivered: z.int().describe('Attempts that have delivered a document.'),
          failed: z.int().describe('Attempts that have failed.'),
          latency,
        })
        .meta({ id: 'StatsPeriod' }),
    )
    .describe('Every hour or day of the range.'),
  oldest_deliveries: z
    .array(
      z
        .object({
          destination_id: z.string(),
          destination_name: z.string(),
          connector_type: connectorTypeName,
          document_id: z.string(),
          status: deliveryStatus,
          received_at: timestamp.describe('When the document was received.'),
        })
        .meta({ id: 'OldestDelivery' }),
    )
    .nullable()
    .describe(
      'The oldest `pending` or `retrying` delivery of each destination at present, the oldest first: at most 100. Null with `repo_id`.',
    ),
  errors: z
    .array(z.object({ code: z.string(), attempts: z.int() }).meta({ id: 'ErrorCount' }))
    .describe('The 10 most frequent error codes of these attempts.'),
  latency,
  present: z
    .object({
      unacknowledged_failures: z.int().nullable().describe('Failed documents that nobody has acknowledged. Null if `documents` is null.'),
      unacknowledged_discards: z
        .int()
        .nullable()
        .describe(
          'Documents that were discarded for lack of a connection, and that nobody has acknowledged or replayed. Null if `documents` is null.',
        ),
      pending: z.int(),
      held: z.int(),
      retrying: z.int(),
      stored_bytes: z.int().describe('Bytes of content that the workspace stores, whatever the filter.'),
      max_bytes: z
        .int()
        .nullable()
        .describe(
          'The lower of `receiver_max_bytes` and the limit of the installation, from which on nothing is accepted. Null if there is none.',
        ),
    })
    .meta({
      id: 'PresentCounts',
      description: 'Failed documents, and deliveries that have not ended, at present, whatever the range.',
    }),
})

const destinationAttributes = z.object({
  destination_name: z.string(),
  series: z
    .array(z.object({ start: timestamp, delivered: z.int(), failed: z.int() }).meta({ id: 'DestinationStatsPeriod' }))
    .describe('Every hour or day of the range, as in the statistics of the workspace.'),
  current_deliveries: countsOf(deliveryStatuses).meta({
    id: 'CurrentDeliveryCounts',
    description: 'All deliveries to the destination, by their present status, whenever they got it.',
  }),
  oldest_delivery: z
    .object({
      document_id: z.string(),
      status: deliveryStatus,
      received_at: timestamp.describe('When the document was received.'),
    })
    .meta({ id: 'OldestDestinationDelivery' })
    .nullable()
    .describe('The oldest `pending` or `retrying` delivery at present.'),
})

interface StatsDeps {
  statistics: StatisticsReader
  destinationStatistics: DestinationStatisticsReader
}

const dayMs = 86_400_000
// Longest range: a quarter, whose counts by hour are read at once.
const maxDays = 92

const zeros = <Name extends string>(names: readonly Name[], counts: Partial<Record<Name, number>>) =>
  Object.fromEntries(names.map((name) => [name, counts[name] ?? 0])) as Record<Name, number>

const present = (workspaceId: string, { since, before, documents, deliveries, attempts, ...rest }: Statistics) => ({
  data: {
    id: workspaceId,
    type: 'stats' as const,
    attributes: {
      ...rest,
      dateFrom: since,
      dateTo: nameable(before),
      documents: documents && zeros(documentStatuses, documents),
      deliveries: zeros(deliveryStatuses, deliveries),
      attempts: zeros(attemptOutcomes, attempts),
    },
  },
})

const presentDestination = ({ currentDeliveries, ...row }: DestinationStatistics) => ({
  id: row.id,
  type: 'destination_stats' as const,
  attributes: { ...row, currentDeliveries: zeros(deliveryStatuses, currentDeliveries) },
})

/** @throws AppError 400 if the range is too long or ends before it begins */
const rangeOf = ({ from, to }: { from: Date | undefined; to: Date | undefined }): { since: Date; before: Date } => {
  // The end of the query is inclusive and has milliseconds.
  const before = to ? new Date(to.getTime() + 1) : new Date()
  const since = from ?? new Date(before.getTime() - dayMs)
  const refuse = (message: string) => invalidRequest('query', [{ code: 'custom', path: ['date_from'], message, input: from }])
  if (since >= before) throw refuse('must not be later than date_to, or than the present without date_to')
  if (before.getTime() - since.getTime() > maxDays * dayMs) throw refuse(`must be at most ${maxDays} days before date_to`)
  return { since, before }
}

export const statsEndpoints = ({ statistics, destinationStatistics }: StatsDeps): Endpoint[] => [
  endpoint({
    method: 'GET',
    path: '/stats',
    level: 'viewer',
    summary: 'Retrieve statistics',
    description:
      'Counts documents, deliveries and attempts by status and by hour or day, names the oldest deliveries and the most frequent errors, and ' +
      'estimates how long deliveries take. ' +
      'Without dates, the range is the last 24 hours. ' +
      `Its maximum length is ${maxDays} days. The counts are exact.`,
    query: z.strictObject({
      date_from: dateFrom,
      date_to: dateTo,
      repo_id: z.string().optional().describe('Only documents of this repository (`repo_id`).'),
      destination_id: z.string().optional().describe('Only deliveries to this destination.'),
      connector_type: connectorTypeName.optional().describe('Only deliveries to destinations with this connector.'),
    }),
    response: one(resource('Stats', 'stats', attributes)),
    handle: async ({ query: { dateFrom: from, dateTo: to, ...filter } }, { workspaceId }) => {
      const range = rangeOf({ from, to })
      return present(workspaceId, await statistics.read(workspaceId, { ...range, ...filter }))
    },
  }),
  endpoint({
    method: 'GET',
    path: '/stats/destinations',
    operation: 'listDestinationStats',
    level: 'viewer',
    summary: 'Retrieve statistics of each destination',
    description:
      'Counts the attempts of each destination by hour or day, and its deliveries by status. The destinations have the order, and so the pages, ' +
      'of the list of destinations. The range is as in the statistics of the workspace. The counts are exact.',
    query: pageQuery.extend({
      date_from: dateFrom,
      date_to: dateTo,
      destination_id: z.string().optional().describe('Only this destination.'),
    }),
    response: pageOfMany(resource('DestinationStats', 'destination_stats', destinationAttributes)),
    handle: async ({ query: { dateFrom: from, dateTo: to, ...query } }, { workspaceId }) => {
      const range = rangeOf({ from, to })
      return toPage(await destinationStatistics.list(workspaceId, { ...range, ...query }), query, presentDestination)
    },
  }),
]
