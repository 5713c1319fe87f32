/** How far the enrichment of a document is. */
export const enrichmentStatuses = ['pending', 'complete', 'partial', 'failed'] as const

export type EnrichmentStatus = (typeof enrichmentStatuses)[number]
