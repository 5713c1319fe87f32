import { cancellationSignal } from '@temporalio/activity'
import type { MigrationPage } from '../src/migration/page.ts'
import type { DocumentMigrationActivities } from '../workflows/messages.ts'
import { withHeartbeats } from './heartbeats.ts'

// A document may be fetched for longer than a heartbeat may be late.
const heartbeatMs = 5_000

export const createDocumentMigrationActivities = (migrationPage: MigrationPage): DocumentMigrationActivities => ({
  migrateNextPage: ({ documentMigrationId }) => withHeartbeats(heartbeatMs, () => migrationPage(documentMigrationId, cancellationSignal())),
})
