import { isDeepStrictEqual } from 'node:util'
import type { AppError } from '../base/errors.ts'
import { validationFailed } from '../base/refusals.ts'
import type { Connector } from '../connectors/connector.ts'
import { signInOf } from '../connectors/shared/sign-in.ts'
import { changedBoundKeys, credentialsOwner, sendsCredentials, type CredentialsOwner } from '../connectors/target.ts'
import { openOrUndefined, type KeyRing } from '../security/seal.ts'
import type { CredentialsFacts, DestinationChange } from './destinations.ts'

/**
 * Returns the credentials to store with a change of a destination: the new ones, or the stored ones if the change alters where they are
 * sent. The stored ones are kept only if the target does not get them, such as the secret that signs the requests of a webhook.
 * @throws AppError 422 if the change needs the credentials and does not contain them
 */
export const resealCredentials = (
  keyRing: KeyRing,
  connector: Connector,
  current: CredentialsOwner & { credentialsSealed: Buffer },
  { config = current.config, credentials }: { config?: Record<string, unknown> | undefined; credentials?: object | undefined },
): DestinationChange['credentials'] => {
  const owner = credentialsOwner(connector, { ...current, config })
  if (credentials !== undefined) {
    return { sealed: keyRing.seal(credentials, owner), areNew: true, facts: factsOf(connector, credentials) }
  }
  if (changedBoundKeys(connector, current.config, config).length === 0) return undefined
  return { sealed: keyRing.seal(storedCredentialsFor(keyRing, connector, current, config), owner), areNew: false }
}

/**
 * Returns the change that gives a destination this config and these credentials as a whole. What the relay has pinned stays, unless the
 * config names another server.
 * @param stored the current credentials; undefined if no key opens them
 */
export const replacementOf = (
  keyRing: KeyRing,
  connector: Connector,
  current: CredentialsOwner,
  stored: unknown,
  wanted: { config: Record<string, unknown>; credentials: Record<string, unknown> },
): DestinationChange => {
  const pinnedKeys = (connector.pinnedKeys ?? []).filter((key) => wanted.config[key] === undefined && current.config[key] !== undefined)
  const isElsewhere = changedBoundKeys(connector, current.config, wanted.config).some((key) => !pinnedKeys.includes(key))
  const pinned = isElsewhere ? {} : Object.fromEntries(pinnedKeys.map((key) => [key, current.config[key]]))
  const config = { ...wanted.config, ...pinned }
  const areNew = !isDeepStrictEqual(stored, wanted.credentials)
  const areBoundElsewhere = changedBoundKeys(connector, current.config, config).length > 0
  if (!areNew && !areBoundElsewhere) return { config }
  const sealed = keyRing.seal(wanted.credentials, credentialsOwner(connector, { ...current, config }))
  return { config, credentials: { sealed, areNew, facts: factsOf(connector, wanted.credentials) } }
}

/**
 * Returns the stored credentials of a destination for a target with another config.
 * @returns undefined if no key opens the stored credentials, and the target is the same
 * @throws AppError 422 if they would be sent to another address
 */
export const storedCredentialsFor = (
  keyRing: KeyRing,
  connector: Connector,
  current: CredentialsOwner & { credentialsSealed: Buffer },
  config: Record<string, unknown>,
): unknown => {
  const changed = changedBoundKeys(connector, current.config, config)
  const stored = openStored(keyRing, connector, current)
  if (changed.length > 0 && (stored === undefined || sendsCredentials(connector, stored))) throw credentialsRequired(changed)
  return stored
}

/** Returns what is stored of valid credentials in plain text. */
export const factsOf = (connector: Connector, credentials: object): CredentialsFacts => ({
  credentialsExpireAt: connector.credentialsExpireAt?.(credentials) ?? null,
  signIn: signInOf(connector, credentials),
})

/** Opens the stored credentials of a destination. @returns undefined if no key opens them */
export const openStored = (keyRing: KeyRing, connector: Connector, current: CredentialsOwner & { credentialsSealed: Buffer }): unknown =>
  openOrUndefined(keyRing, current.credentialsSealed, credentialsOwner(connector, current))

const credentialsRequired = (changedKeys: string[]): AppError => {
  const keys = changedKeys.map((key) => `config.${key}`).join(', ')
  const message = `required: the stored credentials must not be sent to another address. Send them together with the change of ${keys}`
  return validationFailed([{ path: 'credentials', message }])
}
