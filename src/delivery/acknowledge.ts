import { AppError } from '../base/errors.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { openDeliveryStatuses, type DocumentStatus } from '../domain/delivery-states.ts'

interface Acknowledgeable {
  status: DocumentStatus
  acknowledgedAt: Date | null
  repoId: string
  docId: string
  compId: string
}

export const createAcknowledge =
  (db: Database) =>
  /**
   * Acknowledges a failed or discarded document: an operator has seen it and does not want it delivered. Its open deliveries go on. A change of
   * its status, a retry, or a delivery that fails later ends the acknowledgement.
   * @throws `AppError` 404, or 409 if the document has another status
   */
  (workspaceId: string, id: string, actor: AuditActor): Promise<void> =>
    db.transaction(async (trx) => {
      const found: Acknowledgeable | undefined = await trx('documents')
        .select('status', 'acknowledged_at as acknowledgedAt', 'repo_id as repoId', 'doc_id as docId', 'comp_id as compId')
        .where({ workspace_id: workspaceId, id })
        .forNoKeyUpdate()
        .first()
      if (!found) throw notFound()
      if (found.status !== 'failed' && found.status !== 'discarded') {
        throw new AppError(
          'conflict',
          `Only a failed or discarded document can be acknowledged. The status of this document is ${found.status}.`,
        )
      }
      if (found.acknowledgedAt) return
      await trx('documents').where({ id }).update({ acknowledged_at: trx.fn.now() })
      const open: string[] = await trx('deliveries')
        .where({ document_id: id })
        .whereIn('status', openDeliveryStatuses)
        .orderBy('destination_id')
        .pluck('destination_id')
      await record(trx, {
        workspaceId,
        event: 'document.acknowledged',
        subjectId: id,
        description: `The ${found.status === 'failed' ? 'failure' : 'discarding'} of document ${found.repoId}/${found.docId}/${found.compId} was acknowledged.`,
        metadata: {
          repo_id: found.repoId,
          doc_id: found.docId,
          comp_id: found.compId,
          ...(open.length > 0 && { open_destination_ids: open }),
        },
        actor,
      })
    })

export type Acknowledge = ReturnType<typeof createAcknowledge>

interface Replayed {
  id: string
  repoId: string
  docId: string
  compId: string
}

export const createAcknowledgeReplayed =
  (db: Database) =>
  /**
   * Acknowledges the discarded documents of a request that was replayed: the replay has made documents of its own.
   * @returns how many there were
   */
  (workspaceId: string, requestId: string, newRequestId: string, actor: AuditActor): Promise<number> =>
    db.transaction(async (trx) => {
      const acknowledged: Replayed[] = await trx('documents')
        .where({ request_id: requestId, workspace_id: workspaceId })
        .where('is_unconnected', true)
        .whereNull('acknowledged_at')
        .update({ acknowledged_at: trx.fn.now() })
        .returning(['id', 'repo_id as repoId', 'doc_id as docId', 'comp_id as compId'])
      for (const { id, repoId, docId, compId } of acknowledged) {
        await record(trx, {
          workspaceId,
          event: 'document.acknowledged',
          subjectId: id,
          description: `The discarding of document ${repoId}/${docId}/${compId} was acknowledged, because its request was replayed as ${newRequestId}.`,
          metadata: { repo_id: repoId, doc_id: docId, comp_id: compId, new_request_id: newRequestId },
          actor,
        })
      }
      return acknowledged.length
    })
