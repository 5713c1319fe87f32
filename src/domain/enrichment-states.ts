/** How far the enrichment of a document is. `skipped`: its steps are for other documents. */
export const enrichmentStatuses = ['pending', 'complete', 'partial', 'failed', 'skipped'] as const

export type EnrichmentStatus = (typeof enrichmentStatuses)[number]

/** How a step of an enrichment has ended at the last try. */
export const stepStatuses = ['done', 'skipped', 'waiting', 'incomplete', 'failed'] as const

export type StepStatus = (typeof stepStatuses)[number]

/** Returns whether a step has nothing left to do. */
export const isSettled = (status: StepStatus): boolean => status === 'done' || status === 'skipped'
