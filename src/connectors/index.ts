import { z } from 'zod'
import { createBlob } from './blob/index.ts'
import type { Connector, FindConnector, Place, PropertyRules } from './connector.ts'
import { contentServer } from './content-server/index.ts'
import { createDirectory } from './directory/index.ts'
import { createDrive } from './drive/index.ts'
import { createEmail } from './email/index.ts'
import { createObjstore } from './objstore/index.ts'
import { createAwsSessions } from './objstore/sessions.ts'
import { sftp } from './sftp/index.ts'
import { createTokenCache } from './shared/access-tokens.ts'
import { notAllowedIn, type AllowLists } from './shared/allowed.ts'
import { createEntraTokens } from './shared/entra-tokens.ts'
import { createReadTokenFile } from './shared/token-files.ts'
import { createPartMemory } from './shared/upload-parts.ts'
import { createTeamsite } from './teamsite/index.ts'
import { createWebhook } from './webhook/index.ts'

export interface Connectors {
  all: readonly Connector[]
  find: FindConnector
}

const limitFields = {
  max_concurrent_deliveries: z
    .int()
    .min(1)
    .max(1_000)
    .optional()
    .describe(
      'Deliveries that run at this destination at a time, in the whole installation. Default: DELIVERY_MAX_CONCURRENT_PER_DESTINATION',
    ),
  max_deliveries_per_minute: z
    .int()
    .min(0)
    .max(1_000_000)
    .optional()
    .describe(
      'Deliveries that start at this destination per minute, in the whole installation; 0 is unlimited. Default: DELIVERY_MAX_PER_MINUTE_PER_DESTINATION',
    ),
}

/** Adds to a connector's config the limits that every destination may set. */
const withLimits = (config: z.ZodType): z.ZodType => {
  if (!(config instanceof z.ZodObject)) throw new TypeError('The config of a connector must be an object schema')
  return config.safeExtend(limitFields)
}

/**
 * Creates a connector of every kind, in the order in which the API lists them. docs/adding-a-connector.md describes how
 * to add one. Without what the operator allows, the
 * connectors can be described but may refuse every destination.
 */
export const createConnectors = (allowed: Partial<AllowLists> = {}): Connectors => {
  const lists: AllowLists = { RELAY_DIRECTORY_ROOTS: [], RELAY_TOKEN_FILE_ROOTS: [], RELAY_S3_ROLES: [], ...allowed }
  // One token cache for all kinds that sign in for tokens.
  const tokenCache = createTokenCache()
  const readTokenFile = createReadTokenFile(lists.RELAY_TOKEN_FILE_ROOTS)
  const entraTokens = createEntraTokens(tokenCache, readTokenFile)
  const partMemory = createPartMemory()
  const connectors: Connector[] = [
    createObjstore(partMemory, createAwsSessions(tokenCache, lists.RELAY_S3_ROLES, readTokenFile)),
    createBlob(entraTokens, partMemory),
    createTeamsite(entraTokens),
    createDrive(undefined, tokenCache, readTokenFile),
    sftp,
    createEmail(tokenCache, entraTokens),
    createWebhook(tokenCache),
    createDirectory(lists.RELAY_DIRECTORY_ROOTS),
    contentServer,
  ]
  const all = connectors.map((connector): Connector => {
    const notAllowed: Connector['notAllowed'] = ({ config, credentials }, workspace) => [
      ...notAllowedIn(connector.config, config, 'config', lists, workspace),
      ...notAllowedIn(connector.credentials, credentials, 'credentials', lists, workspace),
    ]
    return { ...connector, config: withLimits(connector.config), notAllowed }
  })
  return { all, find: (kind) => all.find((connector) => connector.kind === kind) }
}

/**
 * The values of `connector_type`. Everything outside this folder treats a kind as a string; this registry decides which
 * exist.
 */
const described = createConnectors()
export const connectorTypes: readonly string[] = described.all.map(({ kind }) => kind)

/** Returns what properties are at a kind of destination, or undefined if documents there have none. */
export const propertyRulesOf = (kind: string): PropertyRules | undefined => described.find(kind)?.properties

/** Returns true for a kind of destination at which documents can be read. */
export const isReadable = (kind: string): boolean => described.find(kind)?.read !== undefined

/** Returns the keys of the config that decide where documents lie at a kind of destination that can be read. */
export const placeKeysOf = (kind: string): readonly string[] => described.find(kind)?.placeKeys ?? []

/** Returns where the documents of a destination lie, or undefined if they cannot be read there. @param config as it is stored */
export const placeOfTarget = (kind: string, config: unknown): Place | undefined => {
  const connector = described.find(kind)
  const valid = connector?.config.safeParse(config)
  return valid?.success ? connector?.placeOf?.(valid.data) : undefined
}
