import { record, type AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'

interface Acknowledged {
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
      const acknowledged: Acknowledged[] = await trx('documents')
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
