import { createPeople } from '../access/people.ts'
import type { ApiDeps } from '../api/app.ts'
import type { ConsoleDeps } from '../api/console/console.ts'
import { UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { createAttemptLimit } from '../security/attempt-limit.ts'
import { createOpenIdProvider, createProviderGuard } from '../security/oidc.ts'

type SignInConfig = Pick<
  Config,
  'RELAY_OIDC_FILE' | 'RELAY_BASE_URL' | 'RELAY_WRONG_KEYS_PER_MINUTE' | 'RELAY_OUTBOUND_PROXY' | 'RELAY_OUTBOUND_NO_PROXY'
>

/**
 * Opens the sign-in of people, if RELAY_OIDC_FILE is set. The provider is not asked for anything yet.
 * @throws `UserError` if the file is invalid
 */
export const openSignIn = async (
  config: SignInConfig,
  db: Database,
  onClose: (close: () => Promise<unknown>) => void,
): Promise<Pick<ApiDeps, 'people'> & Pick<ConsoleDeps, 'people' | 'signIn'>> => {
  if (config.RELAY_OIDC_FILE === undefined) return {}
  if (config.RELAY_BASE_URL !== undefined && !URL.canParse(config.RELAY_BASE_URL)) {
    throw new UserError('RELAY_BASE_URL: must be a URL, because the provider of RELAY_OIDC_FILE leads browsers back to it')
  }
  // Only an installation with this file needs a parser of YAML.
  const { readSignInSettings } = await import('./sign-in-file.ts')
  const settings = await readSignInSettings(config.RELAY_OIDC_FILE)
  const guard = createProviderGuard(config)
  onClose(guard.close)
  const provider = createOpenIdProvider(settings.provider, guard)
  // Not those of wrong keys: a client with a wrong key would keep everybody behind its proxy from signing in.
  const failures = createAttemptLimit(config.RELAY_WRONG_KEYS_PER_MINUTE)
  return { people: createPeople(db, settings), signIn: { settings, provider, failures } }
}
