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
  /** Where the run before this one stopped, as its history had become long. */
  carried?: { round: Round; state: DeliveryState; answered: string[]; request?: Required<RetryRequest> }
}

/** Attempts under one retry budget. */
export interface Round {
  policy: RetryPolicy
  failures: number
  /** By the workflow's clock; none before the first real try. */
  firstTryAt?: number
  /** How often in a row there was no place at the destination. */
  waits: number
  /** What a person is to do, once it has failed. */
  advice?: string
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
  /** How often in a row it has been told to wait. */
  waits?: number
}

export type AttemptOutcome =
  | { status: 'delivered'; error?: undefined }
  | { status: 'retrying'; inMs: number; failures: number; error: string }
  /** `code` is the stable one of the last error. */
  | { status: 'failed'; error: string; code?: string }
  | { status: 'cancelled'; error?: undefined }
  /** The destination is busy with others: nothing was tried, nothing counts. */
  | { status: 'waiting'; inMs: number; error?: undefined }

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

/** What is worked off in batches. Names are for operators to read. */
export type BatchSubject =
  /** What an active connection still holds goes on its way. */
  | { action: 'release'; by: 'connection'; id: string; name: string }
  /** What was not delivered to a deleted destination, or is held by a deleted connection, is cancelled. */
  | { action: 'cancel'; by: 'destination' | 'connection'; id: string; name: string }

export interface BatchInput {
  subject: BatchSubject
  /** By the runs before this one. */
  done: number
}

export interface BatchOutcome {
  /** Deliveries that this batch changed; 0 where there is nothing left to do. */
  count: number
  /** Why the rest is left as it is. */
  stopped?: string
}

export interface BatchActivities {
  workOffBatch(subject: BatchSubject): Promise<BatchOutcome>
}

export interface ChoreActivities {
  /** @returns what was done, in words */
  runChore(run: { name: string; atMs: number }): Promise<string>
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

export const signals = { retry: 'retry', settled: 'settled', again: 'again' } as const
export const queries = { status: 'status' } as const

/** A document that is relayed again has a workflow for each time. */
export const documentWorkflowId = (documentId: string, revision = 1) =>
  revision === 1 ? `document/${documentId}` : `document/${documentId}@${revision}`
export const deliveryWorkflowId = (documentId: string, destinationId: string) => `document/${documentId}/${destinationId}`

export const batchWorkflowId = ({ action, id }: BatchSubject) => `${action}/${id}`
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

// Where the server knows it, a workspace with thousands of documents in line does not hold up the others: their tasks are handed out in turn.
// Children and activities inherit it. The server takes 64 bytes.
const fairnessOf = (input: Shared) => ({ priority: { fairnessKey: input.workspace.slice(0, 64) } })

export const nameOf = (input: Pick<Shared, 'repoId' | 'docId' | 'compId'>) => `${input.repoId}/${input.docId}/${input.compId}`

/** How a document's workflow is started, by whomever. */
export const documentOptions = (input: DocumentInput) => ({
  workflowId: documentWorkflowId(input.documentId, input.revision),
  args: [input] as [DocumentInput],
  staticSummary: `${nameOf(input)} to ${input.destinations.map((destination) => destination.name).join(', ')}`,
  ...fairnessOf(input),
  ...attributesOf(input),
})

/** How a delivery's workflow is started: by its document, or anew by a retry after it has closed. Both runs look alike. */
export const deliveryOptions = (input: DeliveryInput) => ({
  workflowId: deliveryWorkflowId(input.documentId, input.destination.id),
  args: [input] as [DeliveryInput],
  staticSummary: `${nameOf(input)} to ${input.destination.name} (${input.destination.connector})`,
  ...fairnessOf(input),
  ...attributesOf(input, [
    { key: searchAttributes.destination, value: input.destination.id },
    { key: searchAttributes.connector, value: input.destination.connector },
  ]),
})

/** How a workflow that goes through a subject's deliveries is started, or asked to look once more. */
export const batchOptions = (subject: BatchSubject) => ({
  workflowId: batchWorkflowId(subject),
  args: [{ subject, done: 0 }] as [BatchInput],
  signal: signals.again,
  staticSummary: `what the ${subject.by} ${subject.name} ${subject.action === 'release' || subject.by === 'connection' ? 'held' : 'was to get'}`,
})

export const bulkRetryOptions = (input: BulkRetryInput) => ({
  workflowId: bulkRetryWorkflowId(input.bulkRetryId),
  args: [input] as [BulkRetryInput],
  staticSummary: `documents of ${input.workspace} that failed`,
  ...(input.searchAttributes && { typedSearchAttributes: [{ key: searchAttributes.workspace, value: input.workspace }] }),
})
