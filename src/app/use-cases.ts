import { createApiKeys } from '../access/api-keys.ts'
import { createCertificates } from '../access/certificates.ts'
import type { ApiDeps } from '../api/app.ts'
import { createIdempotencyKeys } from '../api/idempotency-keys.ts'
import { createAppend } from '../archive/append.ts'
import { createDocuments } from '../archive/document-list.ts'
import { createArchiveDocuments } from '../archive/documents.ts'
import { findUnknownRepositories } from '../archive/early-metadata.ts'
import { createLegalHolds } from '../archive/legal-holds.ts'
import { createReceive, type InsertConfig } from '../archive/receive.ts'
import { createReceivingRepositories } from '../archive/receiving-repository.ts'
import { createUpdate } from '../archive/update.ts'
import { createUpstreamDocuments } from '../archive/upstream-documents.ts'
import type { BridgeDeps } from '../bridge/app.ts'
import { createCapturedRequests } from '../capture/captured-requests.ts'
import type { Config } from '../config/config.ts'
import type { FindConnector } from '../connectors/connector.ts'
import { planAppend } from '../content/segments.ts'
import type { Content } from '../content/store.ts'
import { createAuditLogs } from '../db/audit-logs.ts'
import type { Database } from '../db/database.ts'
import { createInstallation } from '../db/installation.ts'
import { createAcknowledge } from '../delivery/acknowledge.ts'
import { createAttemptLog } from '../delivery/attempt-log.ts'
import { createAttemptNow } from '../delivery/attempt-now.ts'
import { createBulkRetries } from '../delivery/bulk-retry.ts'
import { createErase } from '../delivery/erase.ts'
import { createRedeliverAppended, type AppendConfig } from '../delivery/redeliver.ts'
import { createRetry } from '../delivery/retry.ts'
import { createSetMetadata } from '../delivery/set-metadata.ts'
import { createEnrichments, type ConfigureEnrichmentDeps } from '../enrichment/enrichments.ts'
import { createRunAgain } from '../enrichment/run-again.ts'
import { createEvents } from '../events/event-log.ts'
import { createEventSubscriptions, stopSubscriptionsOf } from '../events/subscriptions.ts'
import { createUpstreamFailures } from '../migration/failures.ts'
import { createDocumentMigrations } from '../migration/migrations.ts'
import type { ReadThroughDeps } from '../migration/read-through.ts'
import { createNoticeLog } from '../notifications/notice-log.ts'
import { createNotifications, deleteNotificationsOf } from '../notifications/notifications.ts'
import { createDestinationStatistics } from '../observe/destination-statistics.ts'
import { createDiscarded } from '../observe/discarded.ts'
import { createFailures } from '../observe/failures.ts'
import type { RelayWatch } from '../observe/relay-watch.ts'
import { createStatistics } from '../observe/statistics.ts'
import { createManifests } from '../proof/manifests.ts'
import type { ReceiverDeps } from '../receiver/app.ts'
import { createConnections } from '../routing/connections.ts'
import { createDestinations } from '../routing/destinations.ts'
import { createRepositories } from '../routing/repositories.ts'
import { createWorkspaces } from '../workspace/workspaces.ts'

// One list per surface: what it can do, and nothing that it does not take (`satisfies` refuses that).

type DeliveryConfig = InsertConfig & AppendConfig

interface ApiUseCaseDeps extends ConfigureEnrichmentDeps {
  findConnector: FindConnector
  config: DeliveryConfig & ConfigureEnrichmentDeps['config'] & Pick<Config, 'RELAY_WORKSPACE_MAX_BYTES'>
  relayWatch: Pick<RelayWatch, 'read'>
}

/** What a source system can do: store documents, read them, and hand in certificates. */
export const receiverUseCases = (db: Database, config: DeliveryConfig) =>
  ({
    receivingRepositories: createReceivingRepositories(db),
    archiveDocuments: createArchiveDocuments(db, config),
    upstreamDocuments: createUpstreamDocuments(db, config),
    upstreamFailures: createUpstreamFailures(db),
    receive: createReceive(db, config),
    update: createUpdate(db, config),
    append: createAppend(db, createRedeliverAppended(config), config),
    planAppend: (content: Content) => planAppend(db, content),
    certificates: createCertificates(db),
    workspaces: createWorkspaces(db),
    installation: createInstallation(db),
  }) satisfies Partial<ReceiverDeps & ReadThroughDeps>

/** What a call to the source system needs: the settings of the workspace, and the metadata of the document that it links. */
export const bridgeUseCases = (db: Database, deps: Pick<ApiUseCaseDeps, 'findConnector'>) =>
  ({
    setMetadata: createSetMetadata(db, deps),
    workspaces: createWorkspaces(db),
    installation: createInstallation(db),
  }) satisfies Partial<BridgeDeps>

/** Destinations, with what their deletion ends in rooms that they do not know. */
export const destinationsOf = (db: Database) => createDestinations(db, [deleteNotificationsOf, stopSubscriptionsOf])

/** What a program or a person with an API key can do. The console uses nothing else. */
export const apiUseCases = (db: Database, deps: ApiUseCaseDeps) =>
  ({
    // where documents come from and go to
    repositories: createRepositories(db),
    certificates: createCertificates(db),
    destinations: destinationsOf(db),
    connections: createConnections(db),
    enrichments: createEnrichments(db, deps),
    notifications: createNotifications(db, deps.findConnector),

    // documents and their deliveries
    documents: createDocuments(db, async () => (deps.relayWatch.read().status === 'temporal_unavailable' ? 'temporal' : 'worker')),
    setMetadata: createSetMetadata(db, deps),
    findUnknownRepositories: (workspaceId: string, repoIds: string[]) => findUnknownRepositories(db, workspaceId, repoIds),
    attemptLog: createAttemptLog(db),
    runAgain: createRunAgain(db),
    retry: createRetry(db, deps.config),
    attemptNow: createAttemptNow(db, deps.config),
    bulkRetries: createBulkRetries(db),
    documentMigrations: createDocumentMigrations(db),
    acknowledge: createAcknowledge(db),
    erase: createErase(db),
    legalHolds: createLegalHolds(db),

    // what is observed
    events: createEvents(db),
    eventSubscriptions: createEventSubscriptions(db),
    failures: createFailures(db),
    discarded: createDiscarded(db),
    statistics: createStatistics(db, deps.config),
    destinationStatistics: createDestinationStatistics(db),
    capturedRequests: createCapturedRequests(db),
    auditLogs: createAuditLogs(db),
    noticeLog: createNoticeLog(db),
    manifests: createManifests(db),

    // the workspace and those who may call
    workspaces: createWorkspaces(db),
    apiKeys: createApiKeys(db),
    idempotencyKeys: createIdempotencyKeys(db),
    installation: createInstallation(db),
  }) satisfies Partial<ApiDeps>
