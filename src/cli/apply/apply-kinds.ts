import { isDeepStrictEqual } from 'node:util'
import type { LaunchDeps } from '../../api/launch.ts'
import { createNoticeCheck } from '../../api/notifications.ts'
import { AppError, type ErrorDetail } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { Config } from '../../config/config.ts'
import { createConnectors } from '../../connectors/index.ts'
import { credentialsOwner, changedBoundKeys } from '../../connectors/target.ts'
import { systemActor } from '../../db/audit.ts'
import { isDuplicate, type Transaction } from '../../db/database.ts'
import { connectionSettingsFields } from '../../domain/connection-settings.ts'
import { newApiKey } from '../../security/api-keys.ts'
import { createOutboundGuard } from '../../security/outbound.ts'
import { createKeyRing } from '../../security/seal.ts'
import { createApiKeys, type ApiKey } from '../../workspace/api-keys.ts'
import { createConnections, type Connection } from '../../workspace/connections.ts'
import { changedNames, createDestinations, type DestinationChange, type SealedDestination } from '../../workspace/destinations.ts'
import { createMembers, type Member } from '../../workspace/members.ts'
import { createNotifications, type Notification } from '../../workspace/notifications.ts'
import { createRepositories, type Repository } from '../../workspace/repositories.ts'
import { connectorOf } from '../../workspace/targets.ts'
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

export type ApplyDeps = FileDeps & StateDeps & Pick<LaunchDeps, 'config'>

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
  create(wanted: Wanted): Promise<Pick<Change, 'action' | 'key'>>
  /** Returns the names of the values that differ. */
  compare(current: Current, wanted: Wanted): string[] | Promise<string[]>
  update(current: Current, wanted: Wanted): Promise<unknown>
  delete(current: Current): Promise<unknown>
}

const listDifferences = (current: Record<string, unknown>, wanted: Record<string, unknown>): string[] =>
  Object.keys(wanted).filter((key) => !isDeepStrictEqual(current[key], wanted[key]))

const created = { action: 'create' } as const

export const createMemberKind = ({ trx, workspaceId, wanted, state }: Target): Kind<WantedMember, Member> => {
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
      const inserted = await members.insert(workspaceId, valuesOf(item), systemActor)
      if (!inserted) throw new AppError('conflict', 'was created at the same time. Try again')
      return created
    },
    compare: (current, item) => listDifferences(valuesOf(memberInFile(current)), valuesOf(item)),
    update: ({ id }, item) => members.rename(workspaceId, id, valuesOf(item).name, systemActor),
    delete: ({ id }) => members.delete(workspaceId, id, systemActor),
  }
}

export const createKeyKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedKey, ApiKey> => {
  const apiKeys = createApiKeys(trx)
  const members = createMembers(trx)
  const nameInFile = ({ name, level, member }: WantedKey) => `${name} (${member === undefined ? level : `${level}, ${member}`})`
  const nameOf = (current: ApiKey) => nameInFile(keyInFile(current, state.members))
  const givenIds = new Set(wanted.api_keys.map(({ value }) => value?.id))
  const refuseValue = (message: string) => new AppError('validation_failed', message, { details: [{ path: 'value', message }] })
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
      const { id, secretSha256, key } = value ? { ...value, key: undefined } : newApiKey()
      const memberId = member === undefined ? null : await members.ensure(workspaceId, member, systemActor)
      const row = { id, workspaceId, memberId, name, level, secretSha256, expiresAt: null }
      await apiKeys.insert(row, systemActor).catch((thrown: unknown) => {
        if (!isDuplicate(thrown, 'api_keys_pkey')) throw thrown
        throw refuseValue('is, or was, the value of another key of this or another workspace. Generate a new value')
      })
      // The transaction of a dry run is rolled back, and its keys do not exist.
      return { ...created, ...(key !== undefined && !run.dryRun && { key }) }
    },
    compare: async (current, item) => {
      if (!item.value) return []
      if (nameOf(current) !== nameInFile(item)) throw refuseValue(`is the value of the key ${nameOf(current)}. Generate a new value`)
      const stored = await apiKeys.find(current.id)
      if (stored?.secretSha256.equals(item.value.secretSha256)) return []
      throw refuseValue('has the id of the existing key and another secret. Generate a new value')
    },
    update: async () => {},
    delete: ({ id }) => apiKeys.revoke(id, systemActor, workspaceId),
  }
}

export const createRepositoryKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedRepository, Repository> => {
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
      const inserted = await repositories.insert(workspaceId, { repoId: item.repo_id, ...valuesOf(item) }, systemActor)
      if (!inserted) throw new AppError('conflict', 'was created at the same time. Try again')
      // A new repository is active.
      await repositories.update(workspaceId, inserted.id, { status: item.status }, systemActor)
      return created
    },
    compare: (current, item) => listDifferences(repositoryInFile(current), item),
    update: ({ id }, item) => repositories.update(workspaceId, id, valuesOf(item), systemActor),
    delete: ({ id }) => repositories.delete(workspaceId, id, systemActor, run.config.DELIVERY_BATCH_SIZE),
  }
}

export const createDestinationKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedDestination, OpenedDestination> => {
  const destinations = createDestinations(trx)
  const { keyRing, findConnector } = run

  const changeOf = (current: SealedDestination, stored: unknown, item: WantedDestination): DestinationChange => {
    const connector = connectorOf(findConnector, item.connector_type)
    // What the relay has pinned stays, unless the file names another server.
    const pinnedKeys = (connector.pinnedKeys ?? []).filter((key) => item.config[key] === undefined && current.config[key] !== undefined)
    const isElsewhere = changedBoundKeys(connector, current.config, item.config).some((key) => !pinnedKeys.includes(key))
    const pinned = isElsewhere ? {} : Object.fromEntries(pinnedKeys.map((key) => [key, current.config[key]]))
    const config = { ...item.config, ...pinned }
    const areNew = !isDeepStrictEqual(stored, item.credentials)
    const areBoundElsewhere = changedBoundKeys(connector, current.config, config).length > 0
    const seal = () => keyRing.seal(item.credentials, credentialsOwner(connector, { workspaceId, id: current.id, config }))
    return { config, ...((areNew || areBoundElsewhere) && { credentials: { sealed: seal(), areNew } }) }
  }
  const compare = (current: OpenedDestination, item: WantedDestination): string[] => {
    if (current.connectorType === item.connector_type) return changedNames(current, changeOf(current, current.credentials, item))
    const message = `cannot be changed: the destination is of the type ${current.connectorType}. Give the new destination another name`
    throw new AppError('validation_failed', message, { details: [{ path: 'connector_type', message }] })
  }
  return {
    kind: 'destination',
    list: 'destinations',
    wanted: wanted.destinations,
    current: state.destinations,
    nameInFile: ({ name }) => name,
    nameOf: ({ name }) => name,
    create: async ({ name, connector_type, config, credentials }) => {
      const connector = connectorOf(findConnector, connector_type)
      const id = newId()
      const credentialsSealed = keyRing.seal(credentials, credentialsOwner(connector, { workspaceId, id, config }))
      await destinations.insert(workspaceId, { id, name, connectorType: connector.kind, config, credentialsSealed }, systemActor)
      return created
    },
    compare,
    update: ({ id, credentials }, item) =>
      destinations.update(workspaceId, id, (locked) => changeOf(locked, credentials, item), systemActor),
    delete: ({ id }) => destinations.delete(workspaceId, id, systemActor, run.config.DELIVERY_BATCH_SIZE),
  }
}

export const createConnectionKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedConnection, Connection> => {
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
    nameInFile: ({ name }) => name,
    nameOf: ({ name }) => name,
    create: async (item) => {
      const links = valuesOf(item)
      if (links.repositoryIds.length > 0 && links.destinationIds.length > 0) await connections.insert(workspaceId, links, systemActor)
      return created
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
      return connections.update(workspaceId, current.id, change, systemActor, run.config.DELIVERY_BATCH_SIZE)
    },
    delete: ({ id }) => connections.delete(workspaceId, id, systemActor, run.config.DELIVERY_BATCH_SIZE),
  }
}

export const createNotificationKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedNotification, Notification> => {
  const notifications = createNotifications(trx)
  const check = createNoticeCheck(run.findConnector)
  const valuesOf = ({ name, events, destination, quiet_seconds, silence_hours, is_active }: WantedNotification) => ({
    name,
    events,
    destinationId: state.destinations.find((each) => each.name === destination)?.id ?? '',
    quietSeconds: quiet_seconds,
    silenceHours: silence_hours,
    isActive: is_active,
  })
  const comparable = (item: WantedNotification) => ({ ...item, events: [...new Set(item.events)].toSorted() })
  const compare = (current: Notification, item: WantedNotification) =>
    listDifferences(comparable(notificationInFile(current, state.destinations)), comparable(item))
  return {
    kind: 'notification',
    list: 'notifications',
    wanted: wanted.notifications,
    current: state.notifications,
    nameInFile: ({ name }) => name,
    nameOf: ({ name }) => name,
    create: async (item) => {
      await notifications.insert(workspaceId, valuesOf(item), systemActor, check)
      return created
    },
    compare,
    update: ({ id }, item) => notifications.update(workspaceId, id, valuesOf(item), systemActor, check, () => {}),
    delete: ({ id }) => notifications.delete(workspaceId, id, systemActor, () => {}),
  }
}
