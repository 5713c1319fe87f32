import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import { migrationQueueOf } from './ids.ts'
import type { DocumentMigrationActivities, DocumentMigrationInput, DocumentMigrationProgress } from './messages.ts'

/**
 * Copies the documents of the lists of a migration, page by page, until it is completed, paused or cancelled. The database keeps the progress,
 * so a new run needs none of it. While the old content server does not answer, the page is tried again.
 */
export async function documentMigration(input: DocumentMigrationInput): Promise<DocumentMigrationProgress> {
  const { documentMigrationId } = input
  const { migrateNextPage } = proxyActivities<DocumentMigrationActivities>({
    taskQueue: migrationQueueOf(workflowInfo().taskQueue),
    startToCloseTimeout: '1h',
    heartbeatTimeout: '30s',
    retry: { initialInterval: '5s', backoffCoefficient: 2, maximumInterval: '1m' },
  })
  for (;;) {
    const progress = await migrateNextPage({ documentMigrationId })
    setCurrentDetails(`**${progress.status}**: ${progress.judgedRows} of ${progress.rows} rows`)
    if (progress.status !== 'running') return progress
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof documentMigration>(input)
  }
}
