import { noErrorCode, type FailureStatus } from '../domain/delivery-states.ts'

/**
 * SQL of a condition: the deliveries of a group of failures, which a row of `present` names by destination_id and code. A group can be as
 * large as the table: its counter has the number, and the index failures_by_time the oldest and the newest. Counters have another collation
 * than that index.
 */
export const inFailureGroup = (status: FailureStatus) => `
      deliveries.destination_id = present.destination_id
      and ${status === 'retrying' ? '' : 'needs_attention and '}deliveries.status = '${status}'
      and coalesce(last_error_code, '${noErrorCode}') = present.code collate "default"`
