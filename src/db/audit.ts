import { newId, timeOfId } from '../base/ids.ts'
import { auditEvents, type AuditEvent } from '../domain/audit-events.ts'
import type { Transaction } from './database.ts'
import { markExecution, type Execution } from './executions.ts'

/** The originator of a change. */
export type AuditActor =
  | {
      type: 'api_key'
      keyId: string
      /** Written into the entry, which outlives the key. */
      keyName: string
      /** Member that the API key belongs to, if any. */
      userId: string | null
      /** Of a request that has an `Idempotency-Key`. */
      execution?: Execution | undefined
    }
  | { type: 'user' | 'system'; userId: string | null }

/** The relay itself, or an operator on the command line, which has no user to name. */
export const systemActor: AuditActor = { type: 'system', userId: null }

interface AuditEntry {
  workspaceId: string
  event: AuditEvent
  subjectId: string
  /** A sentence for people. */
  description: string
  /** As the API shows it: names in snake_case. */
  metadata: Record<string, unknown>
  actor: AuditActor
}

/**
 * Writes an audit log entry in the transaction of the change, so that neither exists without the other. The id and the name of an API key are
 * part of the metadata. Every request that changes something records an entry, so the mark of an execution is made here, too.
 */
export const record = async (trx: Transaction, { actor, ...entry }: AuditEntry): Promise<void> => {
  const id = newId()
  await trx('audit_logs').insert({
    id,
    workspace_id: entry.workspaceId,
    event: entry.event,
    subject_type: auditEvents[entry.event],
    subject_id: entry.subjectId,
    description: entry.description,
    metadata: JSON.stringify(
      actor.type === 'api_key' ? { ...entry.metadata, key_id: actor.keyId, key_name: actor.keyName } : entry.metadata,
    ),
    user_id: actor.userId,
    actor_type: actor.type,
    // The time of the id, so that a range of dates is a range of ids.
    created_at: timeOfId(id),
  })
  if (actor.type === 'api_key' && actor.execution) await markExecution(trx, actor.execution, entry.subjectId)
}
