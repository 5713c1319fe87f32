import type { DocumentKey } from '../../workflows/ids.ts'
import { startableColumns, startInputOf, type DeliveryTermsConfig, type StartableDelivery } from '../archive/delivery-input.ts'
import { AppError } from '../base/errors.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { retryRequestId, startGraceMs, type RetryDelivery } from '../db/starts.ts'
import { columnsAs } from '../domain/casing.ts'
import { noErrorCode, transitions, type DeliveryStatus } from '../domain/delivery-states.ts'
import { endPause } from './circuit.ts'

interface RetryRequest {
  workspaceId: string
  documentId: string
  actor: AuditActor
}

/** Why nothing can be retried. */
type NothingToRetry = 'no deliveries' | 'delivered' | 'in progress' | 'held' | 'content removed' | 'destination deleted'

/** Explains to people why there is nothing to retry. */
const nothingToRetryMessages: Record<NothingToRetry, string> = {
  'no deliveries': 'There is nothing to retry: when the document was received, no connection led to a destination.',
  delivered: 'There is nothing to retry: everything has been delivered.',
  'in progress': 'There is nothing to retry: the delivery is in progress.',
  held: 'There is nothing to retry: the delivery is held because its connection is inactive. Activate the connection instead.',
  'content removed': 'There is nothing to retry: the content of the document is no longer kept.',
  'destination deleted': 'There is nothing to retry: each destination that was not reached was deleted.',
}

/** Asks Temporal if a workflow works, or will work, on a delivery. */
export type IsDeliveryRunning = (document: DocumentKey, revision: number, destinationId: string) => Promise<boolean>

/** Locks a document. @returns false if it does not exist */
export const lockDocument = async (
  trx: Transaction,
  { workspaceId, documentId }: Pick<RetryRequest, 'workspaceId' | 'documentId'>,
): Promise<boolean> =>
  (await trx('documents').select('id').where({ workspace_id: workspaceId, id: documentId }).forNoKeyUpdate().first()) !== undefined

/** Deliveries of one document to retry. */
interface Requeue extends RetryRequest {
  /** All destinations, unless one is named. */
  destinationId?: string | undefined
  /** Any error, unless a code, or `none`, is given. */
  errorCode?: string | undefined
  /** Only deliveries in one of these statuses. */
  statuses: DeliveryStatus[]
  /** The bulk retry that causes it. The deliveries then wait for their turn. */
  bulkRetryId?: string
}

/**
 * Sets deliveries to `retrying`, due at once, and adds an audit entry. Deliveries to deleted destinations, or of a document whose content is
 * gone, stay as they are. The document must be locked.
 * @returns the messages that begin them, under the current retry settings. The dispatcher sends them unless the caller does
 */
export const requeue = async (trx: Transaction, request: Requeue, config: DeliveryTermsConfig): Promise<RetryDelivery[]> => {
  const { workspaceId, documentId, destinationId, errorCode, statuses, actor, bulkRetryId } = request
  const { rows } = await trx.raw<{ rows: (StartableDelivery & { requestId: string })[] }>(
    `
    with requeued as (
      update deliveries
      set
        status = :to, next_attempt_at = now(), attempt_id = null, begin_as = 'retry',
        -- The round so far is over, also for a run of its activity that does not know it.
        round_remaining_ms = null, round_expires_at = null,
        begin_at = now() + :graceMs::integer * interval '1 millisecond',
        bulk_retry_id = coalesce(:bulkRetryId::text, bulk_retry_id)
      from destinations, documents
      where document_id = :documentId
        and documents.id = document_id
        and content_id is not null
        and (:destinationId::text is null or destination_id = :destinationId)
        and (:errorCode::text is null or coalesce(last_error_code, '${noErrorCode}') = :errorCode)
        and deliveries.status = any (:statuses)
        and deliveries.status = any (:from)
        and destinations.id = deliveries.destination_id
        and destinations.deleted_at is null
      returning document_id, destination_id, ${retryRequestId} as retry_id
    )
    select retry_id as "requestId", ${startableColumns}
    from requeued
    join documents on documents.id = document_id
    join workspaces on workspaces.id = documents.workspace_id
    join destinations on destinations.id = destination_id
    order by destinations.id
    `,
    {
      documentId,
      destinationId: destinationId ?? null,
      errorCode: errorCode ?? null,
      statuses,
      graceMs: bulkRetryId === undefined ? startGraceMs : 0,
      bulkRetryId: bulkRetryId ?? null,
      from: [...transitions.retry.from],
      to: transitions.retry.to,
    },
  )
  if (rows.length === 0) return []
  const messages = rows.map(({ requestId, ...delivery }): RetryDelivery => ({
    kind: 'retryDelivery',
    requestId,
    input: startInputOf(delivery, config),
  }))
  const { repoId, docId, compId } = rows[0]!
  const destinations = rows.map(({ destination }) => destination)
  const destinationIds = destinations.map(({ id }) => id)
  // The retried delivery is the trial.
  await endPause(trx, destinationIds)
  await record(trx, {
    workspaceId,
    event: 'document.retried',
    subjectId: documentId,
    description: `Document ${repoId}/${docId}/${compId} was retried to ${destinations.map(({ name }) => name).join(', ')}.`,
    metadata: { destination_ids: destinationIds, ...(bulkRetryId !== undefined && { bulk_retry_id: bulkRetryId }) },
    actor,
  })
  return messages
}

interface FoundDelivery extends DocumentKey {
  status: DeliveryStatus
  revision: number
  isContentKept: boolean
  /** True if an operator can acknowledge the document, and has not done so. */
  isAcknowledgeable: boolean
  /** True if the dispatcher has to begin it. */
  waits: boolean
  /** Null if the connection that planned the delivery is gone. */
  isConnectionActive: boolean | null
}

/** Finds the deliveries of a document, or the one to a destination. */
const findDeliveries = (trx: Transaction, documentId: string, destinationId?: string): Promise<FoundDelivery[]> =>
  trx('deliveries')
    .join('documents', 'documents.id', 'deliveries.document_id')
    .join('workspaces', 'workspaces.id', 'documents.workspace_id')
    .leftJoin('connections', 'connections.id', 'deliveries.connection_id')
    .where({ document_id: documentId, ...(destinationId !== undefined && { destination_id: destinationId }) })
    .select([
      'documents.id as documentId',
      ...columnsAs('repo_id, doc_id, comp_id, deliveries.status, revision'),
      trx.raw(`user_slug || '/' || workspace_slug as workspace`),
      'is_active as isConnectionActive',
      trx.raw('content_id is not null as "isContentKept"'),
      trx.raw(`documents.status = 'failed' and acknowledged_at is null as "isAcknowledgeable"`),
      trx.raw('begin_at is not null as waits'),
    ])

/** Returns the reason why none of these deliveries can be retried. */
const reasonOf = (deliveries: FoundDelivery[]): NothingToRetry => {
  const any = (...statuses: DeliveryStatus[]) => deliveries.some(({ status }) => statuses.includes(status))
  if (deliveries.length === 0) return 'no deliveries'
  if (any('pending', 'retrying')) return 'in progress'
  if (any('held')) return 'held'
  if (!any('failed', 'cancelled')) return 'delivered'
  return deliveries[0]!.isContentKept ? 'destination deleted' : 'content removed'
}

const nothingToRetry = (deliveries: FoundDelivery[]) => {
  const reason = reasonOf(deliveries)
  const isFinal = reason === 'content removed' || reason === 'destination deleted'
  // A document can be delivered as a whole although a delivery was cancelled.
  const advice = isFinal && deliveries[0]!.isAcknowledgeable ? ' Acknowledge the document instead.' : ''
  return new AppError('nothing_to_retry', `${nothingToRetryMessages[reason]}${advice}`)
}

/** Statuses of deliveries that a manual retry of a document takes. */
export const ended: DeliveryStatus[] = ['failed', 'cancelled']

export const createRetry = (db: Database, config: DeliveryTermsConfig) => {
  type DeliveryRequest = RetryRequest & { destinationId: string }

  /** Retries one delivery. @param orphaned no workflow works on it, and none will */
  const tryRetry = (request: DeliveryRequest, orphaned: boolean): Promise<{ messages: RetryDelivery[] } | FoundDelivery> =>
    db.transaction(async (trx) => {
      if (!(await lockDocument(trx, request))) throw notFound()
      const [delivery] = await findDeliveries(trx, request.documentId, request.destinationId)
      if (!delivery) throw notFound()
      const { status, isConnectionActive } = delivery
      const isRetryable =
        ended.includes(status) ||
        (status === 'held' && isConnectionActive !== false) ||
        (isUnderWay(delivery) && orphaned && !delivery.waits)
      const messages = isRetryable ? await requeue(trx, { ...request, statuses: [status] }, config) : []
      return messages.length > 0 ? { messages } : delivery
    })

  return {
    /**
     * Retries every failed or cancelled delivery of a document whose destination still exists. Of two concurrent requests, the second one
     * finds none.
     * @returns the committed messages
     * @throws `AppError` 404, or 409 `nothing_to_retry`
     */
    retryDocument: (request: RetryRequest): Promise<RetryDelivery[]> =>
      db.transaction(async (trx) => {
        if (!(await lockDocument(trx, request))) throw notFound()
        const messages = await requeue(trx, { ...request, statuses: ended }, config)
        if (messages.length === 0) throw nothingToRetry(await findDeliveries(trx, request.documentId))
        return messages
      }),

    /**
     * Retries one delivery that has failed or was cancelled, that is held although its connection is active or gone, or that is orphaned:
     * its workflow was terminated, and the dispatcher will not start another one.
     * @returns the committed messages
     * @throws `AppError` 404, or 409 `nothing_to_retry`
     */
    retryDelivery: async (request: DeliveryRequest, isRunning: IsDeliveryRunning): Promise<RetryDelivery[]> => {
      let result = await tryRetry(request, false)
      if ('status' in result && isUnderWay(result)) {
        const { revision } = result
        if (!(await isRunning(result, revision, request.destinationId))) result = await tryRetry(request, true)
      }
      if ('status' in result) throw nothingToRetry([result])
      return result.messages
    },
  }
}

export type Retry = ReturnType<typeof createRetry>

const isUnderWay = ({ status }: FoundDelivery) => status === 'pending' || status === 'retrying'
