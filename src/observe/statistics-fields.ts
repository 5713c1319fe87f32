import { z } from 'zod'
import { deliveryStatus } from '../archive/document-fields.ts'
import { attemptOutcomes } from '../delivery/attempt-log.ts'
import { timestamp } from '../domain/date-range.ts'
import { deliveryStatuses, documentStatuses } from '../domain/delivery-states.ts'
import { connectorTypeName } from '../workspace/inputs.ts'

// Statistics, as they are read and as every answer has them.

const countsOf = <Name extends string>(names: readonly Name[]) =>
  z.object(Object.fromEntries(names.map((name) => [name, z.int()])) as Record<Name, z.ZodInt>)

const milliseconds = z.int().nullable()
const latency = z.object({ p50_ms: milliseconds, p95_ms: milliseconds, p99_ms: milliseconds }).meta({
  id: 'Latency',
  description:
    'Time from the receipt of a document, or from the last append to it, to its delivery: percentiles in milliseconds, or null without ' +
    'deliveries. They are estimated from a histogram whose buckets double.',
})

export const statisticsFields = z.object({
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

export const destinationStatisticsFields = z.object({
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

/** Returns a number for each name: 0 for what was not counted. */
export const zeros = <Name extends string>(names: readonly Name[], counts: Partial<Record<Name, number>> | null) =>
  Object.fromEntries(names.map((name) => [name, counts?.[name] ?? 0])) as Record<Name, number>
