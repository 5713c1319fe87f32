// The worker bundles this file: its exports are the workflow types.
export { attemptDeliveries, cancelDeliveries, releaseDeliveries } from './batches.ts'
export { bulkRetry } from './bulk-retry.ts'
export { delivery } from './delivery.ts'
export { document } from './document.ts'
export { eventSubscription } from './event-subscription.ts'
export { lateData } from './late-data.ts'
export { notice } from './notice.ts'
export { maintenance } from './maintenance.ts'
