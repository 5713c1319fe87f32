import { documentWorkflowId } from '../../workflows/messages.ts'
import type { DeliveryStatus } from '../domain/status.ts'
import { newId } from '../ids.ts'
import { record, type AuditActor } from './audit.ts'
import type { Database, Transaction } from './database.ts'
import type { RetryMessage } from './outbox.ts'
import type { Workflow } from './planned-documents.ts'
import { startDeliveries, type Start } from './started-deliveries.ts'

/** What became of a request to retry one delivery: nothing, where it stands like this. */
export interface Unretried {
  status: DeliveryStatus
  revision: number
}

type Retried = { messages: RetryMessage[] } | 'unknown'

interface Request {
  workspaceId: string
  documentId: string
  actor: AuditActor
}

/** @returns false where there is no such document */
export const lockDocument = async (
  trx: Transaction,
  { workspaceId, documentId }: Pick<Request, 'workspaceId' | 'documentId'>,
): Promise<boolean> =>
  (await trx('documents').select('id').where({ workspace_id: workspaceId, id: documentId }).forNoKeyUpdate().first()) !== undefined

/** Starts what is to be retried and tells the audit log, if anything is. The document's row must be locked. */
export const retryDeliveries = async (
  trx: Transaction,
  { actor, bulkRetryId, ...start }: Omit<Start, 'requestId'> & { actor: AuditActor; bulkRetryId?: string },
  config: Workflow,
): Promise<RetryMessage[]> => {
  const messages = await startDeliveries(trx, { ...start, requestId: newId() }, config)
  if (messages.length === 0) return []
  const { repoId, docId, compId } = messages[0]!
  await record(trx, {
    workspaceId: start.workspaceId,
    event: 'document.retried',
    subjectId: start.documentId,
    description: `The document ${repoId}/${docId}/${compId} was retried to ${messages.map(({ destination }) => destination.name).join(', ')}.`,
    metadata: {
      destination_ids: messages.map(({ destination }) => destination.id),
      ...(bulkRetryId !== undefined && { bulk_retry_id: bulkRetryId }),
    },
    actor,
  })
  return messages
}

export const createRetries = (db: Database, config: Workflow) => ({
  /** Every failed delivery of a document, once: of two requests, the second one finds none that has failed. */
  retryDocument: (request: Request): Promise<Retried> =>
    db.transaction(async (trx) => {
      if (!(await lockDocument(trx, request))) return 'unknown'
      return { messages: await retryDeliveries(trx, { ...request, statuses: ['failed'] }, config) }
    }),

  /**
   * One delivery, where it has failed, or where what held it holds it no more.
   * @param stranded nobody is at work on it, whatever its status says: retried as well, unless a message will start it anyway
   */
  retryDelivery: (request: Request & { destinationId: string }, { stranded }: { stranded: boolean }): Promise<Retried | Unretried> =>
    db.transaction(async (trx) => {
      if (!(await lockDocument(trx, request))) return 'unknown'
      const delivery = await findDelivery(trx, request)
      if (!delivery) return 'unknown'
      const { status, revision, holderActive } = delivery
      const startable =
        status === 'failed' ||
        (status === 'held' && holderActive !== false) ||
        ((status === 'pending' || status === 'retrying') && stranded && !(await hasMessage(trx, request)))
      const messages = startable ? await retryDeliveries(trx, { ...request, statuses: [status] }, config) : []
      return messages.length > 0 ? { messages } : { status, revision }
    }),
})

type Key = Pick<Start, 'documentId' | 'destinationId'>

// null where the connection that planned it is gone
const findDelivery = (
  trx: Transaction,
  { documentId, destinationId }: Key,
): Promise<(Unretried & { holderActive: boolean | null }) | undefined> =>
  trx('deliveries')
    .join('documents', 'documents.id', 'deliveries.document_id')
    .leftJoin('connections', 'connections.id', 'deliveries.connection_id')
    .where({ document_id: documentId, destination_id: destinationId })
    .select({ status: 'deliveries.status', revision: 'revision', holderActive: 'is_active' })
    .first()

/** Serves from the primary key: every message about a document begins with its workflow's id. */
const hasMessage = async (trx: Transaction, { documentId }: Key): Promise<boolean> =>
  (await trx('outbox')
    .where('key', 'like', `${documentWorkflowId(documentId)}%`)
    .first('key')) !== undefined
