import { version } from '../../base/version.ts'
import { eventNames, type EventName } from '../../domain/events.ts'
import { noticeTypeOf } from '../../domain/notices.ts'
import { testSummaryOf } from '../../notifications/text.ts'
import { exampleNotice, noticeMessages } from './example-notices.ts'
import { at, businessObject, document, documentPath, error, exampleIds, incidentId, names, operationsId } from './example-story.ts'
import { eventSchemaName } from './operation-names.ts'

const delivery = {
  destination_id: exampleIds.destination,
  destination_name: names.destination,
  status: 'delivered',
  delivered_at: at.delivered,
  attempts: 2,
  status_since: at.delivered,
  next_attempt_at: null,
  waiting_for: null,
  last_error: null,
  ended_by: null,
}
const retryingDelivery = {
  ...delivery,
  status: 'retrying',
  delivered_at: null,
  attempts: 1,
  status_since: at.retried,
  next_attempt_at: at.retried,
  last_error: error,
}
const documentAttributes = { status: 'delivered', acknowledged_at: null, received_at: at.received, superseded_at: null }

const destination = {
  config: { bucket: 'invoices', region: 'eu-central-1', prefix: 'sap/' },
  warnings: [],
  credentials_expire_at: null,
  sign_in: null,
  last_error: null,
  last_error_code: null,
  last_error_at: null,
  failed_attempts: 0,
  last_delivered_at: at.delivered,
  circuit_since: null,
  next_trial_at: null,
  slots: 16,
  slots_in_use: 0,
  created_at: at.setUp,
  updated_at: at.mended,
}
const repository = {
  name: names.repository,
  accepts_mcreate: false,
  warnings: [],
  created_at: at.setUp,
  updated_at: at.setUp,
}
const request = {
  request_body_truncated: false,
  request_body_truncation_reason: null,
  error_code: null,
  response_content_type: '',
  response_content_length: 0,
  response_body_truncated: false,
  response_body_truncation_reason: null,
  duration_ms: 184,
  response_at: at.answered,
  created_at: at.answered,
}
const documentMigration = {
  documents_per_minute: 600,
  rows: 1_000,
  found: 0,
  copied: 512,
  equal: 12,
  different: 0,
  damaged: 0,
  failed: 0,
  copied_bytes: 104_857_600,
  waiting_reason: null,
  created_at: at.retried,
  ended_at: null,
}
const bulkRetry = {
  status: 'completed',
  filter: { repo_id: document.repo_id, destination_id: exampleIds.destination, error_code: error.code },
  skipped_documents: 0,
  created_at: at.retried,
  ended_at: at.delivered,
}
const apiKey = { name: 'Dashboard', last_used_at: at.delivered, created_at: at.setUp }
const noOther = { pending: 0, held: 0, retrying: 0, failed: 0, cancelled: 0 }
const latency = { p50_ms: 630_684, p95_ms: 630_684, p99_ms: 630_684 }

const attempt = (id: string, attributes: object) => ({
  id,
  type: 'delivery_attempt',
  attributes: { destination_id: exampleIds.destination, destination_name: names.destination, duration_ms: 184, ...attributes },
})
const page = { current_page: 1, per_page: 25 }

const noBusinessObject = { erp_object_type: null, erp_object_id: null, ar_object: null }
const eventData = { document_id: exampleIds.document, ...document, revision: 1 }
const event = (number: string, name: string, createdAt: string, data: object = {}) => ({
  id: `660b0a182de650000000a91${number}`,
  type: 'event',
  attributes: { event: name, created_at: createdAt, data: { ...eventData, ...data } },
})
const ofDelivery = { destination_id: exampleIds.destination }
const ended = { ...ofDelivery, attempts: 1, ended_by: 'permanent_error', error_code: error.code }
const manifest = {
  sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  size_bytes: 1_512,
  documents: 1,
  receipts: 0,
  is_stamped: true,
  stamp_error: null,
  made_at: '2026-11-22T00:15:00.000Z',
  copies: [
    {
      destination_id: exampleIds.destination,
      destination_name: names.destination,
      copied_at: '2026-11-22T00:15:02.000Z',
      is_stamped: true,
    },
  ],
}
const receipt = {
  sha256: 'b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c',
  size_bytes: 48_213,
  attempt_id: exampleIds.delivery_attempt,
  answered_at: at.delivered,
  target: { status: 200, etag: '"9b2cf535f27731c974343645a3985328"', version_id: '3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY' },
}
const outcome = { ...ofDelivery, attempts: 2, location: `s3://invoices/sap/${documentPath}`, receipt }

/** When the events of the story happen. Others would happen later. */
const eventTimes: Partial<Record<EventName, string>> = {
  'document.received': at.received,
  'delivery.failed': at.failed,
  'document.failed': at.failed,
  'delivery.delivered': at.delivered,
  'document.delivered': at.delivered,
}
const eventMessages = Object.fromEntries(eventNames.map((name) => [eventSchemaName(name), { timestamp: eventTimes[name] ?? at.recovered }]))

const bucket = { ...destination, name: names.destination, connector_type: 'objstore', status: 'connected', circuit: 'closed' }
const operations = {
  ...bucket,
  name: 'Operations',
  connector_type: 'webhook',
  config: { url: 'https://operations.example.com/relay', format: 'json' },
  sign_in: 'bearer_token',
  last_delivered_at: at.recovered,
  updated_at: at.setUp,
}
const destinationOf = (id: string, attributes: object) => ({ id, type: 'destination', attributes })

/** Values of the attributes of a schema, by its name. They come before those of `example-values.ts`. */
export const exampleObjects: Record<string, Record<string, unknown>> = {
  DestinationList: {
    data: [destinationOf(exampleIds.destination, bucket), destinationOf(operationsId, operations)],
    meta: { ...page, total: 2 },
  },
  DestinationAttributes: destination,
  // Not what the destination shows: another limit is set.
  DestinationChange: {},
  DestinationConnection: { id: exampleIds.connection, name: names.connection },
  TestResult: { status: 'failed', message: 'the bucket invoices does not exist', error_code: 'bucket_missing' },
  RepositoryAttributes: repository,
  RepositoryCertificate: { id: exampleIds.certificate, valid_from: '2026-11-21T08:00:00.000Z' },
  RepositoryConnection: { id: exampleIds.connection, name: names.connection },
  RepositoryCheck: {
    started_at: at.setUp,
    duration_ms: 1_240,
    passed: 9,
    not_offered: 0,
    not_checked: 0,
    interrupted: false,
    left_behind: [],
  },
  RepositoryCheckResult: {
    id: 'access',
    title: 'a request of the source system is accepted',
    status: 'failed',
    message: 'info was answered with 403 (address_not_allowed: this workspace does not accept requests from your address)',
    remedy: 'See the reason of the server.',
    duration_ms: 12,
  },
  CertificateAttributes: {
    valid_from: '2026-11-21T08:00:00.000Z',
    warnings: [],
    key_algorithm: 'EC',
    key_bits: 256,
    received_at: at.setUp,
    updated_at: at.setUp,
  },
  Connection: { id: exampleIds.connection, name: names.connection, held_deliveries: 0, created_at: at.setUp, updated_at: at.setUp },
  ConnectionInput: { name: names.connection },
  ConnectionChange: { name: names.connection },
  DocumentLegalHold: { id: exampleIds.legal_hold },
  ConnectionRepository: { id: exampleIds.repository, description: names.repository },
  ConnectionDestination: { id: exampleIds.destination },
  ConnectionFilter: { min_bytes: 1, max_bytes: 10_000_000, fields: { vendor: 'Acme Ltd' } },
  UpdatedConnectionMeta: { cancelled_deliveries: 0 },
  DeletedConnection: { message: 'The connection was deleted.' },
  PreviewedDocument: { received_at: at.received, unmet_condition: null },
  // A deletion of the destination.
  Removal: {
    removed_connections: [{ id: exampleIds.connection, name: names.connection }],
    unlinked_connections: [],
    removed_notifications: [],
    unwired_repositories: [{ id: exampleIds.repository, repo_id: document.repo_id, name: names.repository }],
    affected_destinations: [],
    failed_documents_delivered: 0,
  },
  ConnectorTypeDescriptionAttributes: {
    is_message: false,
    sends_notices: false,
    config_schema: {
      type: 'object',
      properties: { bucket: { type: 'string', title: 'Bucket' }, region: { type: 'string', title: 'Region' } },
      required: ['bucket', 'region'],
    },
    credentials_schema: {
      type: 'object',
      properties: {
        access_key_id: { type: 'string', title: 'Access key ID' },
        secret_access_key: { type: 'string', title: 'Secret access key', writeOnly: true, format: 'password' },
      },
      required: ['access_key_id', 'secret_access_key'],
    },
    example_config: { bucket: 'invoices', region: 'eu-central-1' },
    example_credentials: { access_key_id: 'AKIAIOSFODNN7EXAMPLE', secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' },
  },
  EnrichmentAttributes: { name: names.enrichment, is_failing: false, created_at: at.setUp, updated_at: at.setUp },
  EnrichmentCounts: { pending: 0, complete: 1, partial: 0, failed: 0, skipped: 0 },
  DocumentEnrichment: { status: 'complete', enrichment_name: names.enrichment },
  EnrichmentStepOutcome: { name: 'link', error: null, at: at.received },
  TriedStep: {
    name: 'link',
    error: null,
    at: at.received,
    request: {
      kind: 'rfc',
      function: 'ARCHIV_GET_CONNECTIONS',
      imports: { ARCHIV_ID: document.repo_id, ARC_DOC_ID: document.doc_id },
      tables: { CONNECTIONS: [] },
    },
    answer: JSON.stringify({
      exports: { COUNT: '1' },
      tables: { CONNECTIONS: [{ SAP_OBJECT: businessObject.erp_object_type, OBJECT_ID: businessObject.erp_object_id }] },
    }),
    answer_truncated: false,
    fields: [{ name: 'erp_object_id', value: businessObject.erp_object_id, problem: null }],
  },
  DocumentAttributes: documentAttributes,
  Delivery: delivery,
  SingleDelivery: { ...delivery, path: `s3://invoices/sap/${documentPath}`, receipt, late_data: null },
  RetriedDocumentAttributes: { status: 'retrying', received_at: at.received, deliveries: [retryingDelivery] },
  DeliveryAttemptList: {
    data: [
      attempt(exampleIds.delivery_attempt, {
        number: 1,
        started_at: at.attempted,
        outcome: 'permanent',
        error,
        answer: { status: 403, body: '<Error><Code>InvalidAccessKeyId</Code></Error>' },
        bytes_sent: 0,
      }),
      attempt('01K9R4B6ZD8M2V7X0QF3N5T1C2', {
        number: 2,
        started_at: at.attemptedAgain,
        outcome: 'delivered',
        error: null,
        answer: { status: 200, body: '' },
        bytes_sent: 48_213,
      }),
    ],
    meta: { ...page, total: 2 },
  },
  NotificationAttributes: { name: names.notification, destination_id: operationsId, created_at: at.setUp, updated_at: at.setUp },
  NoticeAttributes: {
    notice_type: noticeTypeOf('delivery.failed', 'opened'),
    status: 'delivered',
    data: exampleNotice,
    last_error: null,
    last_error_code: null,
    next_attempt_at: null,
    delivered_at: at.announcedEnd,
    created_at: at.announced,
  },
  ...noticeMessages,
  ...eventMessages,
  RelayNotificationTestMessage: {
    timestamp: at.setUp,
    data: {
      workspace: 'acme/invoices',
      incident_id: incidentId,
      summary: testSummaryOf(names.notification),
      opened_at: at.setUp,
      count: 1,
    },
  },
  LateDocumentData: { path: `s3://invoices/sap/${documentPath}`, received_at: at.received },
  DocumentMetadataMessage: { timestamp: at.recovered },
  EventList: {
    data: [
      event('b8000000002f14', 'document.received', at.received, {
        content_type: 'application/pdf',
        size_bytes: 48_213,
        request_id: exampleIds.captured_request,
        ...noBusinessObject,
      }),
      event('bb000000002f15', 'delivery.failed', at.failed, ended),
      event('bb000000002f16', 'document.failed', at.failed),
      event('c4000000002f17', 'delivery.delivered', at.delivered, outcome),
      event('c4000000002f18', 'document.delivered', at.delivered),
    ],
    meta: { next_cursor: '660b0a182de650000000a91c4000000002f18', has_more: false },
  },
  DocumentReceivedData: noBusinessObject,
  DeliveryFailedData: ended,
  DeliveryDeliveredData: outcome,
  DeliveryCancelledData: { ...ofDelivery, attempts: 1, ended_by: 'destination_deleted', error_code: null },
  EventSubscriptionAttributes: {
    name: names.eventSubscription,
    events: ['document.delivered', 'document.failed'],
    destination_id: operationsId,
    cursor: '660b0a182de650000000a91c4000000002f18',
    waiting_since: null,
    attempts: 0,
    failing_since: null,
    next_attempt_at: null,
    last_error: null,
    last_error_code: null,
    last_sent_at: at.delivered,
    created_at: at.setUp,
    updated_at: at.setUp,
  },
  FailureGroupAttributes: {
    destination_deleted: false,
    last_message: error.message,
    oldest_at: at.failed,
    newest_at: at.failed,
  },
  StartedBulkRetryAttributes: {
    ...bulkRetry,
    status: 'running',
    retried_documents: 0,
    retried_deliveries: 0,
    ended_at: null,
  },
  BulkRetryAttributes: bulkRetry,
  // It selects by the status of documents.
  BulkRetryInput: {},
  ManifestAttributes: manifest,
  DocumentMigrationAttributes: documentMigration,
  LinkList: { name: 'TOA01.csv', sha256: '5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef', rows: 1_000, other_rows: 0 },
  SingleBulkRetryAttributes: { ...bulkRetry, delivered_deliveries: 1, failed_deliveries: 0, open_deliveries: 0 },
  // A document that came before the connection.
  DiscardedGroupAttributes: { is_connected: false, documents: 1, newest_at: at.setUp },
  ApiKeyAttributes: apiKey,
  ApiKeyWithSecretAttributes: { ...apiKey, last_used_at: null },
  CapturedRequestAttributes: request,
  SingleCapturedRequestAttributes: {
    ...request,
    replay_of: null,
    response_headers: { 'x-relay-request-id': exampleIds.captured_request },
    response_body_preview: null,
  },
  AuditLogAttributes: {
    event: 'document.retried',
    subject_type: 'Document',
    subject_id: exampleIds.document,
    description: `Document ${documentPath} was retried to ${names.destination}.`,
    metadata: { bulk_retry_id: exampleIds.bulk_retry },
    created_at: at.retried,
  },
  DocumentCounts: { pending: 0, delivered: 1, failed: 0, retrying: 0, discarded: 0 },
  DeliveryCounts: { ...noOther, delivered: 1 },
  CurrentDeliveryCounts: { ...noOther, delivered: 1 },
  AttemptCounts: { delivered: 1, superseded: 0, retryable: 0, permanent: 1, interrupted: 0 },
  StatsAttributes: { date_from: at.received, date_to: '2026-11-21T10:00:00.000Z', oldest_deliveries: [] },
  DestinationStatsAttributes: { oldest_delivery: null },
  RelayAttributes: { status: 'working', since: at.received },
  Worker: { name: '71@relay-worker-7c9d', version, build_id: null, started_at: at.received, last_seen_at: at.received, is_running: true },
  Latency: latency,
  PresentCounts: {
    unacknowledged_failures: 0,
    unacknowledged_discards: 0,
    pending: 0,
    held: 0,
    retrying: 0,
    stored_bytes: 48213,
    max_bytes: 1_099_511_627_776,
  },
  CursorMeta: { next_cursor: null },
}
