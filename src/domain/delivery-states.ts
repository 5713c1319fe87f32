/** Statuses of a delivery. docs/deliveries.md explains each of them. */
export const deliveryStatuses = ['pending', 'held', 'retrying', 'delivered', 'failed', 'cancelled'] as const
export type DeliveryStatus = (typeof deliveryStatuses)[number]

/** Statuses of a delivery that is still to be made: it waits for the content of its document. */
export const openDeliveryStatuses = ['pending', 'held', 'retrying'] as const satisfies DeliveryStatus[]

type OpenDeliveryStatus = (typeof openDeliveryStatuses)[number]

const isOpen = <T extends { status: DeliveryStatus }>(delivery: T): delivery is T & { status: OpenDeliveryStatus } =>
  openDeliveryStatuses.some((open) => open === delivery.status)

/** Returns the deliveries that are still to be made. */
export const openOf = <T extends { status: DeliveryStatus }>(deliveries: readonly T[]) => deliveries.filter(isOpen)

// What needs a person comes first.
const byUrgency: DeliveryStatus[] = ['failed', 'cancelled', 'retrying', 'held', 'pending', 'delivered']

/** Orders deliveries for people: failed ones first, delivered ones last. */
export const mostUrgentFirst = <T extends { status: DeliveryStatus }>(deliveries: readonly T[]): T[] =>
  deliveries.toSorted((one, other) => byUrgency.indexOf(one.status) - byUrgency.indexOf(other.status))

/**
 * Why an open delivery makes no attempt at the moment. `attempt`: the next one is not due. `slot`, `circuit`: it stands in the line of its
 * destination. `connection`: it is held. `data`: the filter of its connection needs business data. `paused`: an operator has paused it in Temporal. `worker`: an attempt is due, and no worker has begun
 * with it. `temporal`: likewise, because Temporal does not answer.
 */
export const waitReasons = ['attempt', 'slot', 'circuit', 'connection', 'data', 'paused', 'worker', 'temporal'] as const
export type WaitReason = (typeof waitReasons)[number]

/** Statuses of a document. */
export const documentStatuses = ['pending', 'delivered', 'failed', 'retrying', 'discarded'] as const
export type DocumentStatus = (typeof documentStatuses)[number]

/** Document statuses that can still change without an operator. */
export const openDocumentStatuses = ['pending', 'retrying'] as const satisfies DocumentStatus[]

export const isFinal = (status: DocumentStatus): boolean => !openDocumentStatuses.some((open) => open === status)

/** Statuses of deliveries that count as failures: one that ended, or is retried. */
export const failureStatuses = ['failed', 'cancelled', 'retrying'] as const satisfies DeliveryStatus[]
export type FailureStatus = (typeof failureStatuses)[number]

/** Stands for an error that is not one of an attempt, and so has no code, in filters. */
export const noErrorCode = 'none'

/**
 * What ended a delivery that has not arrived. A failed one: an error that no retry can fix, the setting that was the limit, or a person, in
 * Temporal. A cancelled one: what was deleted, or the connection, which no longer leads to the destination. `document_erased` only if the
 * document was erased by a request; `content_removed` if its content is missing for another reason. `check_ended`: its document was one of a check of its repository.
 */
export const deliveryEnds = [
  'permanent_error',
  'max_retries',
  'retry_ttl_seconds',
  'workflow_cancelled',
  'workflow_terminated',
  'destination_deleted',
  'connection_deleted',
  'connection_changed',
  'document_erased',
  'content_removed',
  'check_ended',
] as const
export type DeliveryEnd = (typeof deliveryEnds)[number]

/** Says to people what ended a delivery. */
export const endSentences: Record<DeliveryEnd, string> = {
  permanent_error: 'It is not retried automatically.',
  max_retries: 'The number of retries is used up.',
  retry_ttl_seconds: 'The time for retries is used up.',
  workflow_cancelled: 'Somebody cancelled its workflow in Temporal.',
  workflow_terminated: 'Somebody terminated its workflow in Temporal.',
  destination_deleted: 'The destination was deleted.',
  connection_deleted: 'The connection that held it was deleted.',
  connection_changed: 'The connection that held it does not lead to the destination any more.',
  document_erased: 'The content of the document was erased.',
  content_removed: 'The content of the document is missing, and nobody has erased it.',
  check_ended: 'The check of the repository that made the document has ended.',
}

/** Errors of deliveries that a person has ended in Temporal. */
export const endErrors: Partial<Record<DeliveryEnd, string>> & Record<'workflow_cancelled' | 'workflow_terminated', string> = {
  workflow_cancelled: 'the delivery workflow was cancelled',
  workflow_terminated: 'the delivery workflow was terminated',
}

interface Transition {
  from: readonly DeliveryStatus[]
  to: DeliveryStatus
  /** The cause, as a phrase of docs/deliveries.md. */
  cause: string
}

const open = [...openDeliveryStatuses, 'failed'] as const
const undelivered = [...open, 'cancelled'] as const

/**
 * Every change of a delivery's status after its insertion. An operation leaves a delivery in any other status as it is.
 * SQL takes `from` and `to` from this table, and the workflow reports statuses that follow from it.
 */
export const transitions = {
  /** The connection that held the delivery was activated. */
  release: { from: ['held'], to: 'pending', cause: 'the connection was activated' },
  attemptDelivered: { from: undelivered, to: 'delivered', cause: 'the document arrived' },
  /** The document or the content of its path changed while the attempt was under way. */
  attemptOutdated: { from: undelivered, to: 'retrying', cause: 'the document arrived with bytes that have been replaced' },
  /** A delivery that has failed stays failed: its workflow was cancelled or terminated, so no other attempt will follow. */
  attemptRetryable: { from: ['pending', 'held', 'retrying'], to: 'retrying', cause: 'an attempt failed and is retried' },
  attemptFailed: { from: open, to: 'failed', cause: 'an attempt failed and no retry follows' },
  /** Through the API. The use case limits which of these may be retried: see src/delivery/retry.ts. */
  retry: { from: undelivered, to: 'retrying', cause: 'a manual retry' },
  /** A signal to the workflow, without the API. */
  resume: { from: ['failed'], to: 'retrying', cause: 'a retry signal sent to the workflow' },
  /** The connection was switched off. The delivery has no workflow then, like one that has been held since it was planned. */
  hold: { from: ['pending', 'retrying'], to: 'held', cause: 'the connection was switched off before the next attempt' },
  expire: { from: ['pending', 'retrying'], to: 'failed', cause: 'the time to live ended before the next attempt' },
  /** A person ended the workflow in Temporal. The document is still to be delivered: an operator has to retry or acknowledge it. */
  endWorkflow: { from: ['pending', 'retrying'], to: 'failed', cause: 'the workflow was cancelled or terminated' },
  cancel: {
    from: open,
    to: 'cancelled',
    cause: 'the destination was deleted, the content is gone, or the check that made the document has ended',
  },
  cancelHeld: {
    from: ['held'],
    to: 'cancelled',
    cause: 'the connection that held the delivery was deleted, or no longer leads to the destination',
  },
  /** An append changed the document, an older document overwrote it at its path, or a request asked for it. */
  redeliver: { from: ['delivered'], to: 'pending', cause: 'the delivered bytes were changed or overwritten, or are wanted again' },
} as const satisfies Record<string, Transition>

export type DeliveryOperation = keyof typeof transitions

/**
 * Derives the status of a document from the statuses of its deliveries. A document without deliveries is `discarded`, even if its content
 * is kept for reading. PostgreSQL applies the same rule in `derive_document_status()`; test/delivery/document-status.db.test.ts compares
 * the two.
 */
export const documentStatus = (deliveries: readonly DeliveryStatus[]): DocumentStatus => {
  const any = (...statuses: DeliveryStatus[]) => deliveries.some((status) => statuses.includes(status))
  if (deliveries.length === 0) return 'discarded'
  if (any('failed')) return 'failed'
  if (any('retrying')) return 'retrying'
  if (any('pending', 'held')) return 'pending'
  return any('delivered') ? 'delivered' : 'failed'
}
