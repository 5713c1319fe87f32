import type { Config } from '../config.ts'
import { createApiKeys } from '../db/api-keys.ts'
import type { Database } from '../db/database.ts'
import { createAuthenticator, type Authenticator } from '../security/api-keys.ts'
import { createAttemptLimit } from '../security/attempt-limit.ts'

type WrongKeyLimits = Pick<Config, 'RELAY_WRONG_KEYS_PER_MINUTE' | 'RELAY_WRONG_KEY_MAX_ADDRESSES'>

/** One for all surfaces that take API keys: wrong ones count together, wherever they are tried. */
export const openAuthenticator = (db: Database, config: WrongKeyLimits): Authenticator => {
  const keys = createApiKeys(db)
  return createAuthenticator({
    findKey: keys.find,
    recordUse: keys.recordUse,
    wrongKeys: createAttemptLimit(config.RELAY_WRONG_KEYS_PER_MINUTE, config.RELAY_WRONG_KEY_MAX_ADDRESSES),
  })
}
