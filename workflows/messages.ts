// Inputs, signals, queries and activities of the workflows, shared with the client (src/temporal/client.ts) and the activities.
import { defineQuery, defineSignal } from '@temporalio/workflow'
import type { AttemptOutcome, DeliveryRun, FailedAttempt } from '../src/domain/delivery-run.ts'
import type { DeliveryStatus } from '../src/domain/delivery-states.ts'
import type { RetryPolicy } from '../src/domain/retry.ts'
import type { DocumentKey } from './ids.ts'

export interface DestinationRef {
  id: string
  name: string
  /** Connector type: a key of the registry in src/connectors/index.ts. */
  connector: string
}

/** Facts that all deliveries of a document share, pinned when the document is received or retried. */
interface DeliveryTerms extends DocumentKey {
  /** Number of the delivery run: above 1 if the document is delivered again, because it was appended to or overwritten. */
  revision?: number
  /** `{type}/{id}` of the business object, if it was known at that moment. */
  businessObject?: string
  /** Span of the request that contained the document, if it was traced: the parent of the spans of the attempts. */
  traceparent?: string
  policy: RetryPolicy
  /** Time for which a failed delivery stays open and waits for a manual retry, unless its outcome says that it closes. */
  retryWindowMs: number
  attemptTimeoutMs: number
  heartbeatTimeoutMs: number
}

/** Input of the workflow `document`. */
export interface DocumentInput extends DeliveryTerms {
  destinations: DestinationRef[]
}

/** Input of the workflow `delivery`. */
export interface DeliveryInput extends DeliveryTerms {
  destination: DestinationRef
  /** State of the previous run, if this run continues it as new. */
  run?: DeliveryRun
}

/** State of a delivery as the workflows report it. */
export interface DeliveryState {
  destinationId: string
  status: DeliveryStatus
  error?: string
}

/** Payload of the signal `retry`. Operators may send the signal without one. */
export interface RetryRequest {
  /** Deduplicates signals: senders repeat a request that may have been lost. */
  requestId?: string
  /** Retry settings of the new round; by default the settings pinned at the start of the workflow. */
  policy?: RetryPolicy
}

/** Starts a new round of attempts of a `delivery`. Operators type this name. An operator's payload may be anything. */
export const retrySignal = defineSignal<[unknown?]>('retry')
/** Summary of the timer of a `delivery` that waits for a manual retry. It tells the reconciler so. */
export const manualRetryTimer = 'waiting for a manual retry'
/** Tells a `delivery` that the connection that held it was activated. */
export const releaseSignal = defineSignal<[RetryPolicy]>('release')
/** Tells a `delivery` that it is its turn. A delivery that waits in line then asks for a slot. Operators may also send it. */
export const wakeSignal = defineSignal('wake')
/** Tells a `delivery`, from its attempt, that the first attempt of a round has failed and that Temporal repeats it. */
export const attemptFailedSignal = defineSignal<[FailedAttempt]>('attemptFailed')
/** Tells a `document` the state of one of its deliveries. */
export const deliveryChangedSignal = defineSignal<[DeliveryState]>('deliveryChanged')
/** Makes `releaseDeliveries`, `cancelDeliveries` and the workflows of side work look for work once more before they end. */
export const checkAgainSignal = defineSignal('checkAgain')

/** Answered by `document` with one state per destination, and by `delivery` with its own state. */
export const documentStatusQuery = defineQuery<DeliveryState[]>('status')
export const deliveryStatusQuery = defineQuery<DeliveryState>('status')

interface DeliveryRef {
  documentId: string
  destinationId: string
}

export interface AttemptInput extends DeliveryRef {
  policy: RetryPolicy
  /** The round of attempts. The row of the delivery says how much of its budget is used up. */
  round: string
  /** Revision of the document, if it is above 1. */
  revision?: number
  attemptTimeoutMs: number
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  /** Set if the delivery does not queue behind those that wait in line: it was woken, or is a manual retry. */
  isCalled?: true
  traceparent?: string
}

/**
 * Retry policy of an attempt, for failures of the relay itself: intervals in milliseconds. A failed attempt says when the next one is due. If
 * its activity has another policy, an operator has changed it: the intervals are values that operators do not type.
 */
export const attemptRetry = { initialInterval: 1_001, backoffCoefficient: 2, maximumInterval: 15_001 }

/** Activities of `document` and `delivery`. Each may run twice. */
export interface DeliveryActivities {
  /**
   * Makes one attempt and records it. An attempt that fails and is to be repeated is thrown with the time after which Temporal runs the
   * activity again, and one that is not repeated is thrown as final. So is what the relay itself fails in (for example, the database is
   * unavailable), which Temporal repeats soon and which uses up no retry.
   */
  attemptDelivery(input: AttemptInput): Promise<AttemptOutcome>
  /** Records that the workflow of a delivery was cancelled. @returns the status of the delivery */
  recordCancellation(delivery: DeliveryRef): Promise<DeliveryStatus>
  /**
   * Records that an operator terminated a run of the workflow of a delivery, unless the relay has done so to start another one.
   * @returns the status of the delivery, unless it has failed because of that
   */
  recordTermination(delivery: DeliveryRef & { runId?: string }): Promise<DeliveryStatus | undefined>
}

/** Deliveries that are released, cancelled or attempted in batches. */
export type BatchSubject = {
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  id: string
  /** Name of the connection or destination, for operators. */
  name: string
} & (
  | { action: 'release'; by: 'connection' }
  /** Deliveries of a destination that wait for their next attempt. */
  | { action: 'attempt'; by: 'destination' }
  /** Undelivered deliveries of a deleted destination, or deliveries that a connection held for destinations that it no longer leads to. */
  | { action: 'cancel'; by: 'destination' | 'connection' }
)

/** Input of the workflows `releaseDeliveries`, `cancelDeliveries` and `attemptDeliveries`. */
export interface BatchInput {
  subject: BatchSubject
  /** Deliveries processed by previous runs of this workflow. */
  processed: number
  /** Where the last batch has ended, if the batches go through the deliveries in order. */
  position?: string
}

export interface BatchOutcome {
  /** Deliveries changed by this batch; 0 if none is left. */
  count: number
  /** Reason why the remaining deliveries stay as they are. */
  stopped?: string
  /** Where this batch has ended. */
  position?: string
}

export interface BatchActivities {
  processBatch(subject: BatchSubject, position?: string): Promise<BatchOutcome>
}

export interface DocumentMigrationInput {
  documentMigrationId: string
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
}

export interface DocumentMigrationProgress {
  /** `running`, or how the migration has stopped: `paused`, `completed`, `cancelled`. */
  status: string
  rows: number
  judgedRows: number
}

export interface DocumentMigrationActivities {
  /** Judges the next rows of the lists, and copies their documents. */
  migrateNextPage(migration: Pick<DocumentMigrationInput, 'documentMigrationId'>): Promise<DocumentMigrationProgress>
}

/** Input of the workflow `bulkRetry`. */
export interface BulkRetryInput {
  bulkRetryId: string
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
}

export interface BulkRetryProgress {
  status: 'running' | 'completed' | 'cancelled'
  matchedDocuments: number
  retriedDocuments: number
  retriedDeliveries: number
}

export interface BulkRetryActivities {
  /** Retries the next documents. A second run continues where the first one stopped. */
  retryNextPage(bulkRetry: Pick<BulkRetryInput, 'bulkRetryId'>): Promise<BulkRetryProgress>
  /** Records that an operator cancelled the workflow. */
  recordBulkRetryCancellation(bulkRetry: Pick<BulkRetryInput, 'bulkRetryId'>): Promise<void>
}

/** Input of the workflow `notice`. */
export interface NoticeInput {
  noticeId: string
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  attemptTimeoutMs: number
}

/** Outcome of an attempt to send a notice. `cancelled`: its notification was deleted. */
export type NoticeOutcome =
  | { status: 'delivered' | 'cancelled' }
  | { status: 'retrying'; delayMs: number; error: string; errorCode: string }
  | { status: 'failed'; error: string; errorCode: string }

export interface NoticeActivities {
  /** Makes one attempt to send a notice and records it. What is thrown is the same as by `attemptDelivery`. */
  sendNotice(notice: Pick<NoticeInput, 'noticeId' | 'attemptTimeoutMs'>): Promise<NoticeOutcome>
  /** Records that an operator cancelled the workflow. */
  recordNoticeCancellation(notice: Pick<NoticeInput, 'noticeId'>): Promise<void>
}

/** Input of the workflows of side work: a queue of the database. */
export interface SideWorkInput {
  /** Id of the subscription, the enrichment or the destination. */
  queueId: string
  workspaceId: string
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  /** Its name, for operators. */
  name: string
}

/**
 * Outcome of a run. `idle`: nothing is due. `more`: there is more to be done. `gone`: nothing is to be done any more. `retrying`: the rest is
 * due later, as the database says.
 */
export type SideWorkOutcome = { status: 'idle' | 'more' | 'gone' } | { status: 'retrying'; error: string }

/** Works through what is due in a queue, for a limited time. It may run twice. */
type SideWorkActivity = (queue: Pick<SideWorkInput, 'queueId' | 'workspaceId'>) => Promise<SideWorkOutcome>

export interface SideWorkActivities {
  sendEvents: SideWorkActivity
  enrichDocuments: SideWorkActivity
  bringLateData: SideWorkActivity
}

/** Input of the workflow `maintenance`. */
export interface MaintenanceInput {
  /** Name of the job. */
  job: string
  /** Pause between two runs of the job. */
  everyMs: number
  /** The workflow ends after this time; its schedule starts the next one. */
  forMs: number
}

export interface MaintenanceActivities {
  /** @returns a summary for operators */
  runMaintenance(run: { job: string; atMs: number }): Promise<string>
}
