// The one file the worker bundles: what it exports is what the server may start.
export { workOff as cancel, workOff as release } from './batches.ts'
export { bulkRetry } from './bulk-retry.ts'
export { chore } from './chore.ts'
export { delivery } from './delivery.ts'
export { document } from './document.ts'
