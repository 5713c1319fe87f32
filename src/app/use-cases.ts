import { createIdempotencyKeys } from '../api/idempotency-keys.ts'
import { createAppend } from '../archive/append.ts'
import { createDocuments } from '../archive/document-list.ts'
import { createArchiveDocuments } from '../archive/documents.ts'
import { createReceive, type InsertConfig } from '../archive/receive.ts'
import { createReceivingRepositories } from '../archive/receiving-repository.ts'
import { createUpdate } from '../archive/update.ts'
import { createCapturedRequests } from '../capture/captured-requests.ts'
import { planAppend } from '../content/segments.ts'
import type { Content } from '../content/store.ts'
import { createAuditLogs } from '../db/audit-logs.ts'
import type { Database } from '../db/database.ts'
import { createInstallation } from '../db/installation.ts'
import { createAttemptLog } from '../delivery/attempt-log.ts'
import { createBulkRetries } from '../delivery/bulk-retry.ts'
import { createAcknowledge, createErase } from '../delivery/erase.ts'
import { createRedeliverAppended, type AppendConfig } from '../delivery/redeliver.ts'
import { createRelease } from '../delivery/release.ts'
import { createRetry } from '../delivery/retry.ts'
import { createDestinationStatistics } from '../observe/destination-statistics.ts'
import { createFailures } from '../observe/failures.ts'
import { createNoticeLog } from '../observe/notices/notice-log.ts'
import { createStatistics } from '../observe/statistics.ts'
import { createApiKeys } from '../workspace/api-keys.ts'
import { createCertificates } from '../workspace/certificates.ts'
import { createConnections } from '../workspace/connections.ts'
import { createDestinations } from '../workspace/destinations.ts'
import { createMembers } from '../workspace/members.ts'
import { createNotifications } from '../workspace/notifications.ts'
import { createRepositories } from '../workspace/repositories.ts'
import { createWorkspaces } from '../workspace/workspaces.ts'

/** Creates every table and use case of a process once. Consumers take the few that they need. */
export const createUseCases = (db: Database, config: InsertConfig & AppendConfig) => ({
  // archive: the documents as the source system sees them
  receivingRepositories: createReceivingRepositories(db),
  archiveDocuments: createArchiveDocuments(db, config),
  receive: createReceive(db, config),
  update: createUpdate(db, config),
  append: createAppend(db, createRedeliverAppended(config), config),
  planAppend: (content: Content) => planAppend(db, content),

  // delivery: the documents as the destinations see them
  attemptLog: createAttemptLog(db),
  failures: createFailures(db),
  retry: createRetry(db, config),
  bulkRetries: createBulkRetries(db, config),
  release: createRelease(db, config),
  acknowledge: createAcknowledge(db),
  erase: createErase(db),

  // routing: where documents come from and go to
  repositories: createRepositories(db),
  destinations: createDestinations(db),
  connections: createConnections(db),
  notifications: createNotifications(db),

  // records
  noticeLog: createNoticeLog(db),
  apiKeys: createApiKeys(db),
  auditLogs: createAuditLogs(db),
  capturedRequests: createCapturedRequests(db),
  certificates: createCertificates(db),
  documents: createDocuments(db),
  idempotencyKeys: createIdempotencyKeys(db),
  installation: createInstallation(db),
  members: createMembers(db),
  statistics: createStatistics(db),
  destinationStatistics: createDestinationStatistics(db),
  workspaces: createWorkspaces(db),
})
