// What the outside and the workflows agree on: ids, names and payloads. Shared with src/temporal/client.ts, hence free of I/O.
import { defineSearchAttributeKey, SearchAttributeType, type SearchAttributePair } from '@temporalio/common'
import type { ConnectorType } from '../src/domain/connector-type.ts'
import type { RetryPolicy } from '../src/domain/retry.ts'

export const searchAttributes = {
  workspace: defineSearchAttributeKey('RelayWorkspace', SearchAttributeType.KEYWORD),
  repository: defineSearchAttributeKey('RelayRepository', SearchAttributeType.KEYWORD),
  document: defineSearchAttributeKey('RelayDocument', SearchAttributeType.KEYWORD),
  destination: defineSearchAttributeKey('RelayDestination', SearchAttributeType.KEYWORD),
  connector: defineSearchAttributeKey('RelayConnector', SearchAttributeType.KEYWORD),
  /** Set once something leaves the straight path: `retrying`, `failed`, then `delivered` or `cancelled`. One event each. */
  status: defineSearchAttributeKey('RelayStatus', SearchAttributeType.KEYWORD),
}

/** What the deliveries of a document have in common. Everything here is pinned at receipt. */
interface Shared {
  documentId: string
  /** Above 1 where the document is relayed again, because it was appended to. */
  revision?: number
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  repoId: string
  docId: string
  compId: string
  policy: RetryPolicy
  /** How long a failed delivery waits for a retry by hand. */
  retryWindowMs: number
  attemptTimeoutMs: number
  heartbeatTimeoutMs: number
  /** False where they are not registered: the server would refuse the workflow. */
  searchAttributes: boolean
}

export interface DestinationRef {
  id: string
  name: string
  connector: ConnectorType
}

export interface DocumentInput extends Shared {
  destinations: DestinationRef[]
}

export interface DeliveryInput extends Shared {
  destination: DestinationRef
}

export type DeliveryStatus = 'pending' | 'retrying' | 'delivered' | 'failed' | 'cancelled'

export interface DeliveryState {
  destinationId: string
  status: DeliveryStatus
  error?: string | undefined
}

export interface AttemptInput {
  documentId: string
  destinationId: string
  policy: RetryPolicy
  /** Failed tries of this round before this one. */
  failures: number
  /** What is left of the time to live, by the workflow's clock. */
  remainingMs: number
  attemptTimeoutMs: number
}

export type AttemptOutcome =
  | { status: 'delivered'; error?: undefined }
  | { status: 'retrying'; inMs: number; failures: number; error: string }
  | { status: 'failed'; error: string }
  | { status: 'cancelled'; error?: undefined }

/** What the workflows ask of a worker. Each may run twice. */
export interface Activities {
  /**
   * One attempt, recorded. What the target does is an outcome, never an exception; what throws is on our side (the database
   * is away) and the server runs the whole activity again.
   */
  attemptDelivery(input: AttemptInput): Promise<AttemptOutcome>
  /** An operator has cancelled the delivery's workflow. */
  recordCancellation(delivery: DeliveryRef): Promise<void>
  /** An operator has terminated it: it cannot tell of its end itself. */
  recordTermination(delivery: DeliveryRef & { error: string }): Promise<void>
}

interface BulkRetryRef {
  bulkRetryId: string
}

export interface BulkRetryInput extends BulkRetryRef {
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  /** False where they are not registered: the server would refuse the workflow. */
  searchAttributes: boolean
}

export interface BulkRetryActivities {
  /** Retries the next documents. One that is run twice goes on where the first left off. */
  retryNextPage(bulkRetry: BulkRetryRef): Promise<BulkRetryProgress>
  /** An operator has cancelled the workflow. */
  recordBulkRetryCancellation(bulkRetry: BulkRetryRef): Promise<void>
}

export interface BulkRetryProgress {
  status: 'running' | 'completed' | 'cancelled'
  matchedDocuments: number
  retriedDocuments: number
  retriedDeliveries: number
}

interface DeliveryRef {
  documentId: string
  destinationId: string
}

/** Asks a failed delivery for a fresh round. Operators may send it by hand, empty. */
export interface RetryRequest {
  /** Senders repeat themselves: the same id counts once. */
  requestId?: string
  /** Where there is none, the one that was pinned at receipt. */
  policy?: RetryPolicy
}

export const signals = { retry: 'retry', settled: 'settled' } as const
export const queries = { status: 'status' } as const

/** A document that is relayed again has a workflow for each time. */
export const documentWorkflowId = (documentId: string, revision = 1) =>
  revision === 1 ? `document/${documentId}` : `document/${documentId}@${revision}`
export const deliveryWorkflowId = (documentId: string, destinationId: string) => `document/${documentId}/${destinationId}`

export const bulkRetryWorkflowId = (bulkRetryId: string) => `bulk-retry/${bulkRetryId}`

const attributesOf = (input: Shared, more: SearchAttributePair[] = []): { typedSearchAttributes?: SearchAttributePair[] } =>
  input.searchAttributes
    ? {
        typedSearchAttributes: [
          { key: searchAttributes.workspace, value: input.workspace },
          { key: searchAttributes.repository, value: input.repoId },
          { key: searchAttributes.document, value: input.documentId },
          ...more,
        ],
      }
    : {}

const nameOf = (input: Shared) => `${input.repoId}/${input.docId}/${input.compId}`

/** How a document's workflow is started, by whomever. */
export const documentOptions = (input: DocumentInput) => ({
  workflowId: documentWorkflowId(input.documentId, input.revision),
  args: [input] as [DocumentInput],
  staticSummary: `${nameOf(input)} to ${input.destinations.map((destination) => destination.name).join(', ')}`,
  ...attributesOf(input),
})

/** How a delivery's workflow is started: by its document, or anew by a retry after it has closed. Both runs look alike. */
export const deliveryOptions = (input: DeliveryInput) => ({
  workflowId: deliveryWorkflowId(input.documentId, input.destination.id),
  args: [input] as [DeliveryInput],
  staticSummary: `${nameOf(input)} to ${input.destination.name} (${input.destination.connector})`,
  ...attributesOf(input, [
    { key: searchAttributes.destination, value: input.destination.id },
    { key: searchAttributes.connector, value: input.destination.connector },
  ]),
})

export const bulkRetryOptions = (input: BulkRetryInput) => ({
  workflowId: bulkRetryWorkflowId(input.bulkRetryId),
  args: [input] as [BulkRetryInput],
  staticSummary: `documents of ${input.workspace} that failed`,
  ...(input.searchAttributes && { typedSearchAttributes: [{ key: searchAttributes.workspace, value: input.workspace }] }),
})
