import { z } from 'zod'
import { isId } from '../base/ids.ts'
import { httpUrl, integer, list } from './values.ts'

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

  RETENTION_DOCUMENTS_DAYS: integer(
    0,
    0,
    'Time for which documents are kept after their content was removed, with their deliveries, counted from the receipt; 0 keeps them. Their docIds can be used again after that',
  ),
  RETENTION_INCIDENTS_DAYS: integer(90, 7, 'Time for which closed incidents and their notices are kept'),
  PROOF_TIMESTAMP_URL: httpUrl(
    'URL of a time stamping authority (RFC 3161), which stamps the manifest of each day. Without it, manifests are signed only',
  ),
  PROOF_DESTINATIONS: list(
    'Comma-separated ids of destinations that also get the manifests of their workspaces, below the folder manifests',
    z.string().refine(isId, 'must be the id of a destination'),
  ),
}
