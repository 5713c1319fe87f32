import { record, type AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import type { DocumentStatus } from '../domain/delivery-states.ts'

interface Found {
  status: DocumentStatus
  acknowledgedAt: Date | null
  repoId: string
  docId: string
  compId: string
}

export const createAcknowledge =
  (db: Database) =>
  /**
   * Acknowledges a failed document: an operator has seen it and will not retry it. A change of its status ends the acknowledgement.
   * @returns the status of a document that has not failed, or undefined if the document does not exist
   */
  (workspaceId: string, id: string, actor: AuditActor): Promise<DocumentStatus | 'acknowledged' | undefined> =>
    db.transaction(async (trx) => {
      const found: Found | undefined = await trx('documents')
        .select('status', 'acknowledged_at as acknowledgedAt', 'repo_id as repoId', 'doc_id as docId', 'comp_id as compId')
        .where({ workspace_id: workspaceId, id })
        .forNoKeyUpdate()
        .first()
      if (!found) return undefined
      if (found.status !== 'failed') return found.status
      if (found.acknowledgedAt) return 'acknowledged'
      await trx('documents').where({ id }).update({ acknowledged_at: trx.fn.now() })
      await record(trx, {
        workspaceId,
        event: 'document.acknowledged',
        subjectId: id,
        description: `The failure of document ${found.repoId}/${found.docId}/${found.compId} was acknowledged.`,
        metadata: { repo_id: found.repoId, doc_id: found.docId, comp_id: found.compId },
        actor,
      })
      return 'acknowledged'
    })

export type Acknowledge = ReturnType<typeof createAcknowledge>
