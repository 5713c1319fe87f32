// The one file the worker bundles: what it exports is what the server may start.
export { bulkRetry } from './bulk-retry.ts'
export { delivery } from './delivery.ts'
export { document } from './document.ts'
