import { AppError } from '../base/errors.ts'
import { newId, timeOfId } from '../base/ids.ts'
import { storable, storableJson } from '../base/text.ts'
import { auditEvents, type AuditEvent } from '../domain/audit-events.ts'
import type { Actor } from '../security/api-keys.ts'
import { rowsPerInsert, type Transaction } from './database.ts'

/** The execution of a request that has an `Idempotency-Key`. */
export interface Execution {
  id: string
  workspaceId: string
  /** The sender of the request. */
  owner: string
  key: string
}

/** The originator of a change. */
export type AuditActor =
  | {
      type: 'api_key' | 'user'
      /** The id of the key, or of the person at the sign-in provider. */
      id: string
      /** Written into the entry, which outlives the key and the person. */
      name: string
      /** Member that the API key belongs to, or that is the person, if any. */
      userId: string | null
      /** The execution of a request that has an `Idempotency-Key`. */
      execution?: Execution | undefined
    }
  | { type: 'system'; userId: null }

/** The relay itself, or an operator on the command line, which has no user to name. */
export const systemActor: AuditActor = { type: 'system', userId: null }

/** The caller of a request, with its execution if the request has an `Idempotency-Key`. */
export type Requester = Actor & { execution?: Execution | undefined }

/** The caller of a request, as the audit log names the actor of a change. */
export const actorOf = ({ type, id, name, userId, execution }: Requester): AuditActor => ({ type, id, name, userId, execution })

interface AuditEntry {
  workspaceId: string
  event: AuditEvent
  subjectId: string
  /** A sentence for people. */
  description: string
  /** The metadata that the API shows, with names in snake_case. */
  metadata: Record<string, unknown>
  actor: AuditActor
}

const namesOf = (actor: AuditActor) => {
  if (actor.type === 'system') return {}
  return actor.type === 'api_key' ? { key_id: actor.id, key_name: actor.name } : { person_id: actor.id, person_name: actor.name }
}

/**
 * Notes in the transaction of a change that its request is executed. So a repetition knows whether the change was committed, even if the
 * answer was lost. The row stays locked until the transaction has ended; until then the outcome is not known.
 * @throws `AppError` 409 if a repetition has taken over, because the execution seemed to be lost; the change is rolled back
 */
const markExecution = async (trx: Transaction, { id, workspaceId, owner, key }: Execution, subjectId: string): Promise<void> => {
  const marked = await trx('idempotency_keys')
    .where({ workspace_id: workspaceId, owner, key, execution_id: id })
    .update({ changed_id: trx.raw('coalesce(changed_id, ?)', [subjectId]) })
  if (marked === 0) throw new AppError('conflict', 'A repetition of this request is being executed. Nothing was changed by this one.')
}

/**
 * Writes an audit log entry in the transaction of the change, so that neither exists without the other. The id and the name of an API key, or
 * of a person, are part of the metadata. Every request that changes something records an entry, so the execution is also marked here.
 */
export const record = async (trx: Transaction, { actor, ...entry }: AuditEntry): Promise<void> => {
  await trx('audit_logs').insert(rowOf({ actor, ...entry }))
  if (actor.type !== 'system' && actor.execution) await markExecution(trx, actor.execution, entry.subjectId)
}

/** Writes what the relay itself has done to several objects in one transaction. */
export const recordAll = async (trx: Transaction, entries: Omit<AuditEntry, 'actor'>[]): Promise<void> => {
  if (entries.length > 0)
    await trx.batchInsert(
      'audit_logs',
      entries.map((entry) => rowOf({ ...entry, actor: systemActor })),
      rowsPerInsert,
    )
}

const rowOf = ({ actor, ...entry }: AuditEntry) => {
  const id = newId()
  return {
    id,
    workspace_id: entry.workspaceId,
    event: entry.event,
    subject_type: auditEvents[entry.event],
    subject_id: entry.subjectId,
    description: storable(entry.description),
    metadata: storableJson({ ...entry.metadata, ...namesOf(actor) }),
    user_id: actor.userId,
    actor_type: actor.type,
    // The time of the id, so that a range of dates is a range of ids.
    created_at: timeOfId(id),
  }
}
