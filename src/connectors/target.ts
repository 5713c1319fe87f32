import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { plainMessages } from '../base/issue-messages.ts'
import type { Config } from '../config/config.ts'
import { fillKnown, type TemplateDocument } from '../domain/template.ts'
import type { Outbound, OutboundGuard } from '../security/outbound.ts'
import { credentialsOf, type KeyRing, type SealedFor } from '../security/seal.ts'
import {
  DeliveryError,
  type AttemptContext,
  type Connector,
  type FindConnector,
  type PropertyRules,
  type Target,
  type TargetIssue,
} from './connector.ts'

type Values = Record<string, unknown>

/**
 * Parses config and credentials with the connector's schemas.
 * @returns the target with defaults filled in, or every issue found
 */
export const parseTarget = (
  connector: Connector,
  input: { config: unknown; credentials: unknown },
): { target: Target<unknown, unknown> } | { issues: TargetIssue[] } => {
  const config = connector.config.safeParse(input.config, plainMessages)
  const credentials = connector.credentials.safeParse(input.credentials, plainMessages)
  if (config.success && credentials.success) return { target: { config: config.data, credentials: credentials.data } }
  return { issues: [...issuesOf('config', config.error), ...issuesOf('credentials', credentials.error)] }
}

const issuesOf = (field: string, error: z.ZodError | undefined): TargetIssue[] =>
  (error?.issues ?? []).map(({ path, message }) => ({ path: [field, ...path].join('.'), message }))

export interface StoredDestination {
  id: string
  /** Connector type. */
  connector: string
  config: Record<string, unknown>
}

/**
 * Returns the connector and the target of a stored destination.
 * @param openCredentials decrypts the stored credentials
 * @throws DeliveryError if this worker does not have the connector, or the config does not fit it
 */
export const readTarget = (
  findConnector: FindConnector,
  { id, connector: kind, config }: StoredDestination,
  openCredentials: (connector: Connector) => unknown,
): { connector: Connector; target: Target<unknown, unknown> } => {
  const connector = findConnector(kind)
  if (!connector) throw new DeliveryError('connector_unknown', `this worker has no connector of type ${kind}`)
  const parsed = parseTarget(connector, { config, credentials: openCredentials(connector) })
  if ('issues' in parsed) {
    const issues = parsed.issues.map(({ path, message }) => `${path}: ${message}`).join('; ')
    throw new DeliveryError('config_invalid', `the stored config of destination ${id} is invalid, save it again: ${issues}`)
  }
  return { connector, target: parsed.target }
}

/** Returns the connections for an attempt at a target. Credentials go unencrypted to allowed private addresses only. */
export const outboundFor = (
  outbound: OutboundGuard,
  connector: Pick<Connector, 'boundKeys' | 'sendsCredentials'>,
  target: { config: unknown; credentials: unknown },
): Outbound => (unencryptedAddress(connector, target) ? outbound.unencryptedPrivate : outbound)

// Longest part of a target's answer that is stored with the attempt.
const answerMaxBytes = 16 * 1_024

/** What every attempt at a target needs, whether it delivers a document, sends a notice or tests a destination. */
export interface AttemptDeps {
  outbound: OutboundGuard
  installation: { id(): Promise<string> }
  config: Pick<Config, 'DELIVERY_CONNECT_TIMEOUT_MS' | 'DELIVERY_IDLE_TIMEOUT_MS'>
}

/**
 * Returns the context of an attempt at a target. Without further `parts`, it reports no progress, resumes nothing, and discards what the
 * attempt saves or pins.
 */
export const contextOf = (
  { outbound, config }: Pick<AttemptDeps, 'outbound' | 'config'>,
  connector: Connector,
  target: Target<unknown, unknown>,
  parts: Pick<AttemptContext, 'signal' | 'installationId' | 'workspace'> & Partial<AttemptContext>,
): AttemptContext => ({
  onProgress: () => {},
  outbound: outboundFor(outbound, connector, target),
  connectTimeoutMs: config.DELIVERY_CONNECT_TIMEOUT_MS,
  idleTimeoutMs: config.DELIVERY_IDLE_TIMEOUT_MS,
  answerMaxBytes,
  saved: undefined,
  save: () => {},
  pin: () => {},
  ...parts,
})

/** Returns the properties of a document whose values are known by now, in the form that a kind of destination accepts. */
export const propertiesOf = (
  rules: PropertyRules | undefined,
  templates: Readonly<Record<string, string>>,
  document: TemplateDocument,
): Record<string, string> => {
  const properties: Record<string, string> = {}
  if (!rules) return properties
  for (const [name, value] of Object.entries(templates)) {
    const known = fillKnown(value, document)
    const cleaned = known === undefined ? '' : rules.clean(known, name)
    if (cleaned !== '') properties[name] = cleaned
  }
  return properties
}

/** The fields of a stored destination for which its credentials are sealed. */
export interface CredentialsOwner {
  workspaceId: string
  id: string
  /** The stored config, without the defaults of the schema. */
  config: Values
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

/** A destination with its sealed credentials, as an attempt has loaded it. */
export interface SealedDestination {
  workspaceId: string
  destination: Omit<CredentialsOwner, 'workspaceId'>
  credentialsSealed: Buffer
}

/** Creates the function that opens the credentials of a stored destination. It throws a `SealError` if no key opens them. */
export const createOpenCredentials =
  (keyRing: Pick<KeyRing, 'open'>) =>
  ({ workspaceId, destination, credentialsSealed }: SealedDestination, connector: Connector): unknown =>
    keyRing.open(credentialsSealed, credentialsOwner(connector, { workspaceId, ...destination }))

export type OpenCredentials = ReturnType<typeof createOpenCredentials>

/** Returns the bound keys that a change of the config adds, alters or removes. */
export const changedBoundKeys = ({ boundKeys }: Pick<Connector, 'boundKeys'>, before: Values, after: Values): string[] =>
  boundKeys.filter((key) => !isDeepStrictEqual(before[key], after[key]))

/** Returns true if the target, or a server that poses as it, gets something with which it could act with these credentials. */
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
  const values = config as Values
  for (const key of connector.boundKeys) {
    const value = values[key]
    if (key === 'tls' && value === 'none') return { key, host: String(values['host']) }
    if (typeof value !== 'string' || !URL.canParse(value)) continue
    const { protocol, hostname } = new URL(value)
    if (protocol === 'http:') return { key, host: hostname.replace(/^\[|\]$/g, '') }
  }
  return undefined
}

const mask = '[REDACTED]'

/** Returns the keys of a config schema whose values may contain secrets: those with `.meta({ masked: true })`. */
export const maskedKeys = (config: z.ZodType): string[] => {
  const { properties = {} } = z.toJSONSchema(config, { io: 'input', unrepresentable: 'any' }) as {
    properties?: Record<string, { masked?: boolean }>
  }
  return Object.keys(properties).filter((key) => properties[key]!.masked)
}

/** Returns a config as viewers see it. */
export const maskedConfig = (keys: readonly string[], config: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(config).map(([key, value]) => [key, keys.includes(key) ? maskedValue(value) : value]))

/** Keeps the origin of an address, and the names of a record. */
const maskedValue = (value: unknown): unknown => {
  if (typeof value === 'string') return URL.canParse(value) ? maskedUrl(value) : mask
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.keys(value).map((name) => [name, mask])) : mask
}

/** Returns an address whose path and query, which may contain a key, are masked. */
const maskedUrl = (url: string): string => {
  const { origin, pathname, search, hash } = new URL(url)
  return `${pathname}${search}${hash}` === '/' ? `${origin}/` : `${origin}/${mask}`
}
