import { newId } from '../ids.ts'
import type { Transaction } from './database.ts'

/** On whose behalf something changes. */
export interface AuditActor {
  type: 'user' | 'api_key' | 'system'
  /** The member, where there is one behind it. */
  userId: string | null
}

interface AuditEntry {
  workspaceId: string
  event: string
  subjectType: string
  subjectId: string
  /** One sentence for people. */
  description: string
  /** As it is shown: names in snake_case. */
  metadata: Record<string, unknown>
  actor: AuditActor
}

/** Writes an entry of the audit log in the transaction that makes the change: there is neither without the other. */
export const record = async (trx: Transaction, { actor, ...entry }: AuditEntry): Promise<void> => {
  await trx('audit_logs').insert({
    id: newId(),
    workspace_id: entry.workspaceId,
    event: entry.event,
    subject_type: entry.subjectType,
    subject_id: entry.subjectId,
    description: entry.description,
    metadata: JSON.stringify(entry.metadata),
    user_id: actor.userId,
    actor_type: actor.type,
  })
}
