import { cancellationSignal, heartbeat } from '@temporalio/activity'
import type { MigrationPage } from '../src/document-migration/page.ts'
import type { DocumentMigrationActivities } from '../workflows/messages.ts'

// A document may be fetched for longer than a heartbeat may be late.
const heartbeatMs = 5_000

export const createDocumentMigrationActivities = (migrationPage: MigrationPage): DocumentMigrationActivities => ({
  migrateNextPage: async ({ documentMigrationId }) => {
    const beats = setInterval(() => heartbeat(), heartbeatMs)
    try {
      return await migrationPage(documentMigrationId, cancellationSignal())
    } finally {
      clearInterval(beats)
    }
  },
})
