import type { Config } from '../config/config.ts'
import type { AuditActor } from '../db/audit.ts'
import type { Execution } from '../db/executions.ts'
import { createAuthenticator, type Actor, type Authenticator } from '../security/api-keys.ts'
import { createAttemptLimit } from '../security/attempt-limit.ts'
import type { ApiKeys } from './api-keys.ts'

type WrongKeyLimits = Pick<Config, 'RELAY_WRONG_KEYS_PER_MINUTE'>

/** Creates the authenticator that all HTTP surfaces share, so that wrong keys count together wherever they are tried. */
export const openAuthenticator = (apiKeys: Pick<ApiKeys, 'find' | 'recordUse'>, config: WrongKeyLimits): Authenticator =>
  createAuthenticator({
    findKey: apiKeys.find,
    recordUse: apiKeys.recordUse,
    wrongKeys: createAttemptLimit(config.RELAY_WRONG_KEYS_PER_MINUTE),
  })

/** The caller of a request, with its execution if the request has an `Idempotency-Key`. */
export type Requester = Actor & { execution?: Execution | undefined }

/** The caller of a request, as the audit log names the actor of a change. */
export const actorOf = ({ type, id, name, userId, execution }: Requester): AuditActor => ({ type, id, name, userId, execution })
