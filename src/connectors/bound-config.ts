import { isDeepStrictEqual } from 'node:util'
import type { Outbound, OutboundGuard } from '../security/outbound.ts'
import { credentialsOf, type SealedFor } from '../security/seal.ts'
import type { Connector } from './connector.ts'

type Config = Record<string, unknown>

/** A stored destination, as far as its credentials are sealed for it. */
export interface CredentialsOwner {
  workspaceId: string
  id: string
  /** As it is stored: without the defaults of the schema. */
  config: Config
}

/**
 * Returns the owner of a destination's sealed credentials: its ids, and the values of the keys that the credentials are bound to. A row
 * whose address was changed in the database does not open. A key that is not set is left out, so that a key that a later version binds
 * does not invalidate the credentials of destinations without it.
 */
export const credentialsOwner = ({ boundKeys }: Pick<Connector, 'boundKeys'>, { workspaceId, id, config }: CredentialsOwner): SealedFor =>
  credentialsOf(
    workspaceId,
    id,
    boundKeys.filter((key) => config[key] !== undefined).map((key) => [key, config[key]]),
  )

/** Returns the bound keys that a change of the config adds, alters or removes. */
export const changedBoundKeys = ({ boundKeys }: Pick<Connector, 'boundKeys'>, before: Config, after: Config): string[] =>
  boundKeys.filter((key) => !isDeepStrictEqual(before[key], after[key]))

/** Returns true if the target, or whoever poses as it, gets something that would let it act with these credentials. */
export const sendsCredentials = ({ sendsCredentials: sends }: Pick<Connector, 'sendsCredentials'>, credentials: unknown): boolean =>
  typeof credentials !== 'object' || credentials === null || Object.keys(credentials).length === 0 ? false : (sends?.(credentials) ?? true)

/** Where credentials would be sent without encryption: a key of the config, and the host. */
interface UnencryptedAddress {
  key: string
  host: string
}

/** Returns where a target would send its credentials without encryption, or undefined if it does not. */
export const unencryptedAddress = (
  connector: Pick<Connector, 'boundKeys' | 'sendsCredentials'>,
  { config, credentials }: { config: unknown; credentials: unknown },
): UnencryptedAddress | undefined => {
  if (!sendsCredentials(connector, credentials)) return undefined
  const values = config as Config
  for (const key of connector.boundKeys) {
    const value = values[key]
    if (key === 'tls' && value === 'none') return { key, host: String(values['host']) }
    if (typeof value !== 'string' || !URL.canParse(value)) continue
    const { protocol, hostname } = new URL(value)
    if (protocol === 'http:') return { key, host: hostname.replace(/^\[|\]$/g, '') }
  }
  return undefined
}

/** Returns the connections for an attempt at a target. Credentials go unencrypted to allowed private addresses only. */
export const outboundFor = (
  outbound: OutboundGuard,
  connector: Pick<Connector, 'boundKeys' | 'sendsCredentials'>,
  target: { config: unknown; credentials: unknown },
): Outbound => (unencryptedAddress(connector, target) ? outbound.unencryptedPrivate : outbound)
