import { integer } from './values.ts'

/** Variables of the maintenance jobs and of notifications. */
export const maintenanceVariables = {
  OUTBOX_SWEEP_INTERVAL_MS: integer(15_000, 1_000, 'Interval at which the outbox is checked for messages that were not sent'),
  OUTBOX_SWEEP_AGE_MS: integer(5_000, 0, 'Minimum age of a message for this check. A younger message may still be on its way'),

  HELD_CHECK_INTERVAL_MS: integer(
    60_000,
    1_000,
    'Interval at which held deliveries are released or cancelled whose connection has become active or was deleted',
  ),
  RECONCILE_INTERVAL_MS: integer(
    60_000,
    1_000,
    'Interval at which the reconciler asks Temporal about overdue deliveries and starts those again that Temporal has lost, and at which ' +
      'each worker checks that the schedules exist',
  ),
  RECONCILE_AGE_MS: integer(30_000, 0, 'Time without a sign of life after which the reconciler considers a delivery overdue'),
  RECONCILE_MAX_CHECKS: integer(
    2_000,
    1,
    'Number of overdue deliveries in order after which a run of the reconciler ends; the next run continues. ' +
      'A run does not end while it finds deliveries that Temporal has lost',
  ),
  UPKEEP_INTERVAL_MS: integer(3_600_000, 1_000, 'Interval at which partitions are created ahead of time and orphaned content is deleted'),

  COUNTERS_FOLD_INTERVAL_MS: integer(
    15_000,
    1_000,
    'Interval at which changes of the number of documents, deliveries and attempts are added up. Totals are exact at any time; ' +
      'the more changes wait, the longer reading a total takes',
  ),
  COUNTERS_FOLD_BATCH_SIZE: integer(10_000, 1, 'Number of these changes that are added up per transaction'),
  METRICS_INTERVAL_MS: integer(
    30_000,
    1_000,
    'Interval at which metrics about all documents, destinations and repositories are computed. /metrics shows the latest',
  ),

  RETENTION_ATTEMPTS_DAYS: integer(
    365,
    1,
    'Time for which delivery attempts are kept. Other retention periods are settings of a workspace',
  ),
  RETENTION_BATCH_SIZE: integer(5_000, 1, 'Number of rows that retention deletes per statement'),
  RETENTION_LOCK_TIMEOUT_MS: integer(
    1_000,
    10,
    'Maximum time that retention waits for the lock to drop a partition. Other statements queue behind it',
  ),

  RETENTION_INCIDENTS_DAYS: integer(90, 7, 'Time for which closed incidents and their notices are kept'),

  NOTIFICATION_CHECK_INTERVAL_MS: integer(30_000, 1_000, 'Interval at which incidents are opened and closed, and notices are written'),
  NOTIFICATION_MAX_NOTICES: integer(1_000, 1, 'Maximum number of incidents that one check announces. The next check announces the rest'),
  NOTIFICATION_MAX_COUNT: integer(1_000, 1, 'Number of failed deliveries or discarded documents up to which an incident counts them'),
  NOTIFICATION_ATTEMPT_TIMEOUT_MS: integer(60_000, 1_000, 'Maximum duration of one attempt to send a notice'),
  NOTIFICATION_DESTINATION_FAILURES: integer(
    5,
    1,
    'Number of consecutive failed attempts from which a destination is announced as failing, also if its circuit is closed',
  ),
  NOTIFICATION_CERTIFICATE_DAYS: integer(30, 1, 'Time before the end of its validity from which a certificate is announced as expiring'),
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
