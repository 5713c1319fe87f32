import type { AuditActor } from '../db/audit.ts'
import type { Actor } from '../security/api-keys.ts'

/** The holder of an API key, as the audit log names whoever changes something. */
export const actorOf = ({ keyId, userId }: Actor): AuditActor => ({ type: 'api_key', keyId, userId })
