import { isDeepStrictEqual } from 'node:util'
import { stringify } from 'yaml'
import { UserError } from '../../base/errors.ts'
import { maskedConfig, maskedKeys } from '../../connectors/target.ts'
import type { Database } from '../../db/database.ts'
import { toSnakeCase } from '../../domain/casing.ts'
import { workspaceSettings, workspaceSettingsFields } from '../../domain/settings.ts'
import { enrichmentKind } from '../../enrichment/enrichments.ts'
import { eventSubscriptionKind } from '../../events/subscriptions.ts'
import { notificationKind } from '../../notifications/notifications.ts'
import { connectionKind } from '../../routing/connections.ts'
import { repositoryKind } from '../../routing/repositories.ts'
import { findWorkspace } from '../../workspace/administration.ts'
import { createWorkspaces, type Workspace } from '../../workspace/workspaces.ts'
import { inFile } from './file-kind.ts'
import { keyInFile, memberInFile, readState, type StateDeps } from './workspace-state.ts'

interface Exported {
  /** The file that `relay apply` finds unchanged, with a reference to an environment variable for each credential. */
  text: string
  /** Values of the config of destinations that may contain a secret: `acme/prod: url of Approval workflow`. */
  readable: string[]
}

/**
 * `relay export`.
 * @param name exports all workspaces if it is undefined
 * @throws `UserError` if the workspace does not exist, or cannot be described by a file
 */
export const exportWorkspaces = async (db: Database, name: string | undefined, deps: StateDeps): Promise<Exported> => {
  const found = name === undefined ? await createWorkspaces(db).list() : [await findWorkspace(db, name)]
  if (found.length === 0) throw new UserError('There is no workspace.')
  const variables = new Set<string>()
  const readable: string[] = []
  const workspaces: object[] = []
  for (const each of found) {
    const described = await describeWorkspace(db, each, variables, deps)
    workspaces.push(described)
    readable.push(...described.destinations.flatMap((destination) => listReadable(described.slug, destination, deps)))
  }
  return { text: stringify({ workspaces }, { lineWidth: 0, aliasDuplicateObjects: false }), readable }
}

/** Lists the values of a config that viewers do not see. */
const listReadable = (
  slug: string,
  { name, connector_type: type, config }: { name: string; connector_type: string; config: Record<string, unknown> },
  { findConnector }: StateDeps,
): string[] => {
  const connector = findConnector(type)
  const masked = maskedConfig(connector ? maskedKeys(connector.config) : [], config)
  return Object.keys(config).flatMap((key) => (isDeepStrictEqual(masked[key], config[key]) ? [] : [`${slug}: ${key} of ${name}`]))
}

const describeWorkspace = (db: Database, workspace: Workspace, variables: Set<string>, deps: StateDeps) =>
  db.transaction(
    async (trx) => {
      const slug = `${workspace.userSlug}/${workspace.workspaceSlug}`
      const state = await readState(trx, workspace.id, deps)
      for (const list of ['destinations', 'connections', 'enrichments', 'notifications'] as const) refuseRepeated(slug, list, state[list])
      refuseRepeated(slug, 'event subscriptions', state.eventSubscriptions)
      const referencesTo = (name: string, credentials: unknown) => {
        if (typeof credentials === 'object' && credentials !== null) {
          const keys = Object.keys(credentials)
          return Object.fromEntries(keys.map((key) => [key, { env: variableFor(variables, [slug, name, key]) }]))
        }
        throw new UserError(`No key in RELAY_SECRET_KEYS opens the credentials of ${name} in ${slug}. Enter them again, then export.`)
      }
      const { tier, settings: stored } = state.stored
      const { rfc, audit_days, ...settings } = toSnakeCase(workspaceSettingsFields, workspaceSettings(stored)) as Record<string, unknown>
      const bridge = rfc ? { ...rfc, credentials: referencesTo('rfc', state.rfcCredentials) } : null
      const keys = state.apiKeys.map((key) => keyInFile(key, state.members))
      return {
        slug,
        tier,
        // In the compliance tier, `audit_days` cannot be set.
        settings: { ...settings, ...(tier === 'standard' && { audit_days }), rfc: bridge },
        members: state.members.map(memberInFile),
        api_keys: keys.filter((key, index) => keys.findIndex((other) => isDeepStrictEqual(other, key)) === index),
        repositories: state.repositories.map((each) => {
          const { upstream, ...described } = inFile(repositoryKind, each, state)
          if (upstream === null) return described
          const hasSecrets = each.upstreamSecretsSealed !== null
          const opened = Object.keys(each.secrets).length > 0 ? each.secrets : undefined
          return { ...described, upstream: { ...(upstream as object), ...(hasSecrets && referencesTo(`${each.repoId} upstream`, opened)) } }
        }),
        destinations: state.destinations.map(({ name, connectorType, config, credentials }) => ({
          name,
          connector_type: connectorType,
          config,
          credentials: referencesTo(name, credentials),
        })),
        // A connection whose last repository was deleted forwards nothing, and the file cannot describe it.
        connections: state.connections
          .filter(({ repositories }) => repositories.length > 0)
          .map((each) => inFile(connectionKind, each, state)),
        enrichments: state.enrichments.map((each) => ({
          ...inFile(enrichmentKind, each, state),
          ...(each.hasCredentials && { credentials: referencesTo(each.name, each.credentials) }),
        })),
        notifications: state.notifications.map((each) => inFile(notificationKind, each, state)),
        // A subscription whose destination was deleted sends nothing, and the file cannot describe it.
        event_subscriptions: state.eventSubscriptions
          .map((each) => inFile(eventSubscriptionKind, each, state))
          .filter((each) => 'destination' in each),
      }
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  )

const refuseRepeated = (slug: string, list: string, items: readonly { name: string }[]): void => {
  const repeated = items.find(({ name }, index) => items.findIndex((other) => other.name === name) !== index)
  if (!repeated) return
  throw new UserError(`${slug} has several ${list} with the name ${JSON.stringify(repeated.name)}. Rename all of them but one.`)
}

/** Returns a variable that is not used yet: `RELAY_CREDENTIAL_ACME_PROD_ARCHIVE_PASSWORD`. */
const variableFor = (used: Set<string>, parts: string[]): string => {
  const base = ['RELAY_CREDENTIAL', ...parts].map((part) => part.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')).join('_')
  let variable = base
  for (let number = 2; used.has(variable); number += 1) variable = `${base}_${number}`
  used.add(variable)
  return variable
}
