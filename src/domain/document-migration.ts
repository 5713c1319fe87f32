/** What came of a row of a list. */
export const migrationVerdicts = ['found', 'copied', 'equal', 'missing', 'different', 'damaged', 'failed'] as const
export type MigrationVerdict = (typeof migrationVerdicts)[number]

/** Verdicts about documents that need a decision: they are not here as the old content server had them. */
export const openVerdicts: readonly MigrationVerdict[] = ['missing', 'different', 'damaged', 'failed']

/** `copy`: documents that are not here are fetched and kept. `check`: they are looked for only. */
export const migrationModes = ['copy', 'check'] as const
export type MigrationMode = (typeof migrationModes)[number]

export const migrationStatuses = ['running', 'paused', 'completed', 'cancelled'] as const
export type MigrationStatus = (typeof migrationStatuses)[number]
