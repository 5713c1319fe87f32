import { record, type AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'

export const createRevokeDownloadLinks =
  (db: Database) =>
  /** Revokes every download link that a destination has sent. @returns false if the destination does not exist */
  (workspaceId: string, id: string, actor: AuditActor): Promise<boolean> =>
    db.transaction(async (trx) => {
      const [revoked]: { name: string; connector_type: string; version: number }[] = await trx('destinations')
        .where({ workspace_id: workspaceId, id })
        .whereNull('deleted_at')
        .update({ download_links_version: trx.raw('download_links_version + 1') })
        .returning(['name', 'connector_type', 'download_links_version as version'])
      if (!revoked) return false
      await record(trx, {
        workspaceId,
        event: 'destination.links_revoked',
        subjectId: id,
        description: `The download links of destination ${revoked.name} (${revoked.connector_type}) were revoked.`,
        metadata: { name: revoked.name, connector_type: revoked.connector_type, version: revoked.version },
        actor,
      })
      return true
    })

export type RevokeDownloadLinks = ReturnType<typeof createRevokeDownloadLinks>
