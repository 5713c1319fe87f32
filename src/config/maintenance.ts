import { integer } from './values.ts'

/** Variables of the maintenance jobs and of notifications. */
export const maintenanceVariables = {
  RECONCILE_INTERVAL_MS: integer(
    60_000,
    1_000,
    'Interval at which the reconciler asks Temporal about overdue deliveries and starts those again that Temporal has lost, and at which ' +
      'each worker checks that the schedules exist',
  ),

  RETENTION_ATTEMPTS_DAYS: integer(
    365,
    1,
    'Time for which delivery attempts are kept. Other retention periods are settings of a workspace',
  ),

  RETENTION_INCIDENTS_DAYS: integer(90, 7, 'Time for which closed incidents and their notices are kept'),

  NOTIFICATION_SILENCE_MIN_MS: integer(
    3_600_000,
    1_000,
    'Time without a request after which, at the earliest, a source is announced as silent',
  ),
  NOTIFICATION_SILENCE_GAPS: integer(2, 1, 'Number of usual gaps between two requests after which a source is announced as silent'),
  NOTIFICATION_SILENCE_LEARNING_MS: integer(
    7 * 86_400_000,
    0,
    'Time for which the relay watches a source before it announces the source as silent: a week has nights and a weekend',
  ),
}
