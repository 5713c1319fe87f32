import { auditEvents, type AuditEvent } from '../domain/audit-events.ts'
import { newId, timeOfId } from '../ids.ts'
import type { Transaction } from './database.ts'

/** On whose behalf something changes. */
export interface AuditActor {
  type: 'user' | 'api_key' | 'system'
  /** The member, where there is one behind it. */
  userId: string | null
}

interface AuditEntry {
  workspaceId: string
  event: AuditEvent
  subjectId: string
  /** One sentence for people. */
  description: string
  /** As it is shown: names in snake_case. */
  metadata: Record<string, unknown>
  actor: AuditActor
}

/** Writes an entry of the audit log in the transaction that makes the change: there is neither without the other. */
export const record = async (trx: Transaction, { actor, ...entry }: AuditEntry): Promise<void> => {
  const id = newId()
  await trx('audit_logs').insert({
    id,
    workspace_id: entry.workspaceId,
    event: entry.event,
    subject_type: auditEvents[entry.event],
    subject_id: entry.subjectId,
    description: entry.description,
    metadata: JSON.stringify(entry.metadata),
    user_id: actor.userId,
    actor_type: actor.type,
    // the same moment, so that a range of dates is a range of ids
    created_at: timeOfId(id),
  })
}
