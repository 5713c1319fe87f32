// The worker bundles this file: its exports are the workflow types.
export { attemptDeliveries, cancelDeliveries, releaseDeliveries } from './batches.ts'
export { bulkRetry } from './bulk-retry.ts'
export { delivery } from './delivery.ts'
export { document } from './document.ts'
export { documentMigration } from './document-migration.ts'
export { notice } from './notice.ts'
export { maintenance } from './maintenance.ts'
export { enrichment, eventSubscription, lateData } from './side-work.ts'
