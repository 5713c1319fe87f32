import { AppError } from '../base/errors.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { columnsAs } from '../domain/casing.ts'
import { openDeliveryStatuses, type DocumentStatus } from '../domain/delivery-states.ts'
import type { TemplateDocument } from '../domain/template.ts'

type Named = Pick<TemplateDocument, 'repoId' | 'docId' | 'compId'>

export const createAcknowledge =
  (db: Database) =>
  /**
   * Acknowledges a failed or discarded document: an operator has seen it and does not want it delivered. Its open deliveries go on. A change of
   * its status, a retry, or a delivery that fails later ends the acknowledgement.
   * @throws `AppError` 404, or 409 if the document has another status
   */
  (workspaceId: string, id: string, actor: AuditActor): Promise<void> =>
    db.transaction(async (trx) => {
      const found: (Named & { status: DocumentStatus; acknowledgedAt: Date | null }) | undefined = await trx('documents')
        .select(columnsAs('status, acknowledged_at, repo_id, doc_id, comp_id'))
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
      const { status, repoId, docId, compId } = found
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
        description: `The ${status === 'failed' ? 'failure' : 'discarding'} of document ${repoId}/${docId}/${compId} was acknowledged.`,
        metadata: { repo_id: repoId, doc_id: docId, comp_id: compId, ...(open.length > 0 && { open_destination_ids: open }) },
        actor,
      })
    })

export type Acknowledge = ReturnType<typeof createAcknowledge>

export const createAcknowledgeReplayed =
  (db: Database) =>
  /**
   * Acknowledges the discarded documents of a request that was replayed: the replay has made documents of its own.
   * @returns how many there were
   */
  (workspaceId: string, requestId: string, newRequestId: string, actor: AuditActor): Promise<number> =>
    db.transaction(async (trx) => {
      const acknowledged: (Named & { id: string })[] = await trx('documents')
        .where({ request_id: requestId, workspace_id: workspaceId })
        .where('is_unconnected', true)
        .whereNull('acknowledged_at')
        .update({ acknowledged_at: trx.fn.now() })
        .returning(columnsAs('id, repo_id, doc_id, comp_id'))
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
