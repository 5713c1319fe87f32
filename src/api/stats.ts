import { z } from 'zod'
import { dayMs } from '../base/day.ts'
import { invalidRequest } from '../base/refusals.ts'
import { dateFrom, dateTo } from '../domain/date-range.ts'
import type { DestinationStatisticsReader } from '../observe/destination-statistics.ts'
import { destinationStatisticsFields, statisticsFields } from '../observe/statistics-fields.ts'
import type { StatisticsReader } from '../observe/statistics.ts'
import { connectorTypeName } from '../workspace/inputs.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { one, resource, resourceOf } from './schemas.ts'

interface StatsDeps {
  statistics: StatisticsReader
  destinationStatistics: DestinationStatisticsReader
}

// Longest range: a quarter, whose counts by hour are read at once.
const maxDays = 92

const presentDestination = resourceOf('destination_stats')

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
    response: one(resource('Stats', 'stats', statisticsFields)),
    handle: async ({ query: { dateFrom: from, dateTo: to, ...filter } }, { workspaceId }) => {
      const range = rangeOf({ from, to })
      const attributes = await statistics.read(workspaceId, { ...range, ...filter })
      return { data: { id: workspaceId, type: 'stats' as const, attributes } }
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
    response: pageOfMany(resource('DestinationStats', 'destination_stats', destinationStatisticsFields)),
    handle: async ({ query: { dateFrom: from, dateTo: to, ...query } }, { workspaceId }) => {
      const range = rangeOf({ from, to })
      return toPage(await destinationStatistics.list(workspaceId, { ...range, ...query }), query, presentDestination)
    },
  }),
]
