import { isDeepStrictEqual } from 'node:util'
import { AppError, type ErrorDetail } from '../../base/errors.ts'
import type { Config } from '../../config/config.ts'
import { createConnectors } from '../../connectors/index.ts'
import { systemActor } from '../../db/audit.ts'
import type { Transaction } from '../../db/database.ts'
import { deliveriesPerBatch } from '../../delivery/release.ts'
import { connectionSettingsFields } from '../../domain/connection-settings.ts'
import { createOutboundGuard } from '../../security/outbound.ts'
import { createKeyRing } from '../../security/seal.ts'
import { addApiKey, createApiKey, createApiKeys, type ApiKey } from '../../workspace/api-keys.ts'
import { createConfigureDestinations } from '../../workspace/configure-destinations.ts'
import { createConnections, type Connection } from '../../workspace/connections.ts'
import { createDestinations } from '../../workspace/destinations.ts'
import { createMembers, type Member } from '../../workspace/members.ts'
import { createNotifications, type Notification } from '../../workspace/notifications.ts'
import { createRepositories, type Repository } from '../../workspace/repositories.ts'
import type { ApplyOptions, Change } from './change.ts'
import type { FileDeps } from './read-workspaces-file.ts'
import {
  connectionInFile,
  keyInFile,
  memberInFile,
  notificationInFile,
  repositoryInFile,
  type OpenedDestination,
  type StateDeps,
  type WorkspaceState,
} from './workspace-state.ts'
import type {
  WantedConnection,
  WantedDestination,
  WantedKey,
  WantedMember,
  WantedNotification,
  WantedRepository,
  WantedWorkspace,
} from './workspaces-file.ts'

export type ApplyDeps = FileDeps & StateDeps

/** Opens what `relay apply` and `relay export` need beside the database for one piece of work, and closes it afterwards. */
export const withApplyDeps = async <T>(config: Config, variables: NodeJS.ProcessEnv, work: (deps: ApplyDeps) => Promise<T>): Promise<T> => {
  const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
  const findConnector = createConnectors({ directoryRoots: config.RELAY_DIRECTORY_ROOTS }).find
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  try {
    return await work({ config, variables, keyRing, findConnector, outbound })
  } finally {
    await outbound.close()
  }
}

/** One run of the command, and what it has found so far. */
export type Run = ApplyDeps &
  ApplyOptions & {
    /** The path of the workspace in the file. */
    at: string
    changes: Change[]
    issues: ErrorDetail[]
  }

/** A workspace of the file and its counterpart in the database. */
export interface Target {
  trx: Transaction
  workspaceId: string
  wanted: WantedWorkspace
  state: WorkspaceState
  run: Run
}

/** One kind of object: how those of the file are compared with those of the workspace, and the use cases that change them. */
export interface Kind<Wanted, Current> {
  kind: Change['kind']
  /** The key of the list in the file. */
  list: string
  wanted: readonly Wanted[]
  current: readonly Current[]
  nameInFile(wanted: Wanted): string
  nameOf(current: Current): string
  /** Identity of an object of the file. Objects are found by it; without this function, by their name. */
  identityInFile?(wanted: Wanted): string
  /** Identity of an existing object. */
  identityOf?(current: Current): string
  /** @returns the action, if it is not `create`, and a new API key */
  create(wanted: Wanted): Promise<Pick<Change, 'key'> & { action?: 'not_created' }>
  /** Returns the names of the values that differ. */
  compare(current: Current, wanted: Wanted): string[] | Promise<string[]>
  update(current: Current, wanted: Wanted): Promise<unknown>
  delete(current: Current): Promise<unknown>
}

const listDifferences = (current: Record<string, unknown>, wanted: Record<string, unknown>): string[] =>
  Object.keys(wanted).filter((key) => !isDeepStrictEqual(current[key], wanted[key]))

const byName = { nameInFile: ({ name }: { name: string }) => name, nameOf: ({ name }: { name: string }) => name }

const refuse = (path: string, message: string) => new AppError('validation_failed', message, { details: [{ path, message }] })

export const memberKind = ({ trx, workspaceId, wanted, state }: Target): Kind<WantedMember, Member> => {
  const members = createMembers(trx)
  const valuesOf = ({ email, name = email }: WantedMember) => ({ email, name })
  return {
    kind: 'member',
    list: 'members',
    wanted: wanted.members,
    current: state.members,
    nameInFile: ({ email }) => email,
    nameOf: ({ email }) => email,
    create: async (item) => {
      await members.insert(workspaceId, valuesOf(item), systemActor)
      return {}
    },
    compare: (current, item) => listDifferences(valuesOf(memberInFile(current)), valuesOf(item)),
    update: ({ id }, item) => members.rename(workspaceId, id, valuesOf(item).name, systemActor),
    delete: ({ id }) => members.delete(workspaceId, id, systemActor),
  }
}

export const keyKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedKey, ApiKey> => {
  const apiKeys = createApiKeys(trx)
  const nameInFile = ({ name, level, member }: WantedKey) => `${name} (${member === undefined ? level : `${level}, ${member}`})`
  const nameOf = (current: ApiKey) => nameInFile(keyInFile(current, state.members))
  const givenIds = new Set(wanted.api_keys.map(({ value }) => value?.id))
  return {
    kind: 'api_key',
    list: 'api_keys',
    wanted: wanted.api_keys,
    current: state.apiKeys,
    nameInFile,
    nameOf,
    // A key whose value the file refers to is found by the id in the value: with another value it is another key.
    identityInFile: (item) => item.value?.id ?? nameInFile(item),
    identityOf: (current) => (givenIds.has(current.id) ? current.id : nameOf(current)),
    create: async ({ name, level, member, value }) => {
      if (!value && !run.printNewKeys) return { action: 'not_created' }
      const memberId = member === undefined ? null : await createMembers(trx).ensure(workspaceId, member, systemActor)
      const fields = { workspaceId, memberId, name, level, expiresAt: null }
      if (value) {
        await addApiKey(trx, { ...fields, ...value }, systemActor)
        return {}
      }
      const { key } = await createApiKey(trx, fields, systemActor)
      // The transaction of a dry run is rolled back, and its keys do not exist.
      return run.dryRun ? {} : { key }
    },
    compare: async (current, item) => {
      if (!item.value) return []
      if (nameOf(current) !== nameInFile(item)) {
        throw refuse('value', `is the value of the key ${nameOf(current)}. Generate a new value`)
      }
      const stored = await apiKeys.find(current.id)
      if (stored?.secretSha256.equals(item.value.secretSha256)) return []
      throw refuse('value', 'has the id of the existing key and another secret. Generate a new value')
    },
    update: async () => {},
    delete: ({ id }) => apiKeys.revoke(id, systemActor, workspaceId),
  }
}

export const repositoryKind = ({ trx, workspaceId, wanted, state }: Target): Kind<WantedRepository, Repository> => {
  const repositories = createRepositories(trx)
  const valuesOf = ({ name, status, signature_verification, signed_parameter_order }: WantedRepository) => ({
    name,
    status,
    signatureVerification: signature_verification,
    signedParameterOrder: signed_parameter_order,
  })
  return {
    kind: 'repository',
    list: 'repositories',
    wanted: wanted.repositories,
    current: state.repositories,
    nameInFile: ({ repo_id }) => repo_id,
    nameOf: ({ repoId }) => repoId,
    create: async (item) => {
      const { id } = await repositories.insert(workspaceId, { repoId: item.repo_id, ...valuesOf(item) }, systemActor)
      // A new repository is active.
      await repositories.update(workspaceId, id, { status: item.status }, systemActor)
      return {}
    },
    compare: (current, item) => listDifferences(repositoryInFile(current), item),
    update: ({ id }, item) => repositories.update(workspaceId, id, valuesOf(item), systemActor),
    delete: ({ id }) => repositories.delete(workspaceId, id, systemActor, deliveriesPerBatch),
  }
}

export const destinationKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedDestination, OpenedDestination> => {
  const destinations = createDestinations(trx)
  const configure = createConfigureDestinations({ ...run, destinations })
  const targetOf = ({ connector_type: connectorType, config, credentials }: WantedDestination) => ({ connectorType, config, credentials })
  return {
    kind: 'destination',
    list: 'destinations',
    wanted: wanted.destinations,
    current: state.destinations,
    ...byName,
    create: async (item) => {
      await configure.addChecked(workspaceId, { name: item.name, ...targetOf(item) }, systemActor)
      return {}
    },
    compare: (current, item) => {
      if (current.connectorType === item.connector_type) {
        return configure.compare(workspaceId, current, current.credentials, targetOf(item))
      }
      const message = `cannot be changed: the destination is of the type ${current.connectorType}. Give the new destination another name`
      throw refuse('connector_type', message)
    },
    update: ({ id, credentials }, item) => configure.replace(workspaceId, id, credentials, targetOf(item), systemActor),
    delete: ({ id }) => destinations.delete(workspaceId, id, systemActor, deliveriesPerBatch),
  }
}

export const connectionKind = ({ trx, workspaceId, wanted, state }: Target): Kind<WantedConnection, Connection> => {
  const connections = createConnections(trx)
  // An object that could not be created has been reported, and its id is missing: nothing will be committed.
  const idsOf = (names: string[], found: { id: string; name: string }[]) =>
    names.flatMap((each) => found.find(({ name }) => name === each)?.id ?? [])
  const valuesOf = ({ name, is_active, settings, repositories, destinations }: WantedConnection) => ({
    name,
    isActive: is_active,
    settings,
    repositoryIds: idsOf(
      repositories,
      state.repositories.map(({ id, repoId }) => ({ id, name: repoId })),
    ),
    destinationIds: idsOf(destinations, state.destinations),
  })
  // The order of the links has no meaning, and a default has the meaning of the value.
  const comparable = (item: WantedConnection | ReturnType<typeof connectionInFile>) => ({
    ...item,
    repositories: [...new Set(item.repositories)].toSorted(),
    destinations: [...new Set(item.destinations)].toSorted(),
    settings: connectionSettingsFields.parse(item.settings),
  })
  const compare = (current: Connection, item: WantedConnection) => listDifferences(comparable(connectionInFile(current)), comparable(item))
  return {
    kind: 'connection',
    list: 'connections',
    wanted: wanted.connections,
    current: state.connections,
    ...byName,
    create: async (item) => {
      const links = valuesOf(item)
      if (links.repositoryIds.length > 0 && links.destinationIds.length > 0) await connections.insert(workspaceId, links, systemActor)
      return {}
    },
    compare,
    update: (current, item) => {
      const changed = new Set(compare(current, item))
      const { isActive, settings, repositoryIds, destinationIds } = valuesOf(item)
      const change = {
        ...(changed.has('is_active') && { isActive }),
        ...(changed.has('settings') && { settings }),
        ...(changed.has('repositories') && { repositoryIds }),
        ...(changed.has('destinations') && { destinationIds }),
      }
      return connections.update(workspaceId, current.id, change, systemActor, deliveriesPerBatch)
    },
    delete: ({ id }) => connections.delete(workspaceId, id, systemActor, deliveriesPerBatch),
  }
}

export const notificationKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedNotification, Notification> => {
  const notifications = createNotifications(trx)
  const valuesOf = ({ name, events, destination, quiet_seconds, silence_hours, is_active }: WantedNotification) => ({
    name,
    events,
    destinationId: state.destinations.find((each) => each.name === destination)?.id ?? '',
    quietSeconds: quiet_seconds,
    silenceHours: silence_hours,
    isActive: is_active,
  })
  const comparable = (item: WantedNotification) => ({ ...item, events: [...new Set(item.events)].toSorted() })
  return {
    kind: 'notification',
    list: 'notifications',
    wanted: wanted.notifications,
    current: state.notifications,
    ...byName,
    create: async (item) => {
      await notifications.insert(workspaceId, valuesOf(item), systemActor, run.findConnector)
      return {}
    },
    compare: (current, item) => listDifferences(comparable(notificationInFile(current, state.destinations)), comparable(item)),
    update: ({ id }, item) => notifications.update(workspaceId, id, valuesOf(item), systemActor, run.findConnector),
    delete: ({ id }) => notifications.delete(workspaceId, id, systemActor),
  }
}
