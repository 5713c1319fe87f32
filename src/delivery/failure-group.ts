import { noErrorCode, type DeliveryStatus } from '../domain/delivery-states.ts'

/** Statuses of deliveries that count as failures. */
export const failureStatuses = ['failed', 'cancelled', 'retrying'] as const satisfies DeliveryStatus[]

/**
 * SQL of a condition: the deliveries of a group of failures, which a row of `present` names by destination_id and code. A group can be as
 * large as the table: its counter has the number, and the index failures_by_time the oldest and the newest.
 */
// Counters have another collation than the index.
export const inFailureGroup = (status: (typeof failureStatuses)[number]) => `
      deliveries.destination_id = present.destination_id
      and ${status === 'retrying' ? '' : 'needs_attention and '}deliveries.status = '${status}'
      and coalesce(last_error_code, '${noErrorCode}') = present.code collate "default"`
