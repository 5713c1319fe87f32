import { isDeepStrictEqual } from 'node:util'
import { addApiKey, createApiKey, createApiKeys, type ApiKey } from '../../access/api-keys.ts'
import { createMembers, type Member } from '../../access/members.ts'
import { destinationsOf } from '../../app/use-cases.ts'
import { AppError } from '../../base/errors.ts'
import { maskedConfig, maskedKeys } from '../../connectors/target.ts'
import { systemActor } from '../../db/audit.ts'
import { deliveriesPerBatch } from '../../delivery/release.ts'
import { toCamelCase } from '../../domain/casing.ts'
import { connectionSettingsFields } from '../../domain/connection-settings.ts'
import { loginOf, proxyAddressOf, upstreamFields, type StoredUpstream } from '../../domain/upstream.ts'
import { createEnrichments } from '../../enrichment/enrichments.ts'
import { createEvents } from '../../events/event-log.ts'
import { createEventSubscriptions, type EventSubscription } from '../../events/subscriptions.ts'
import { createNotifications, type Notification } from '../../notifications/notifications.ts'
import { createConfigureDestinations } from '../../routing/configure-destinations.ts'
import { createConnections, type Connection } from '../../routing/connections.ts'
import { createRepositories } from '../../routing/repositories.ts'
import { connectorOf } from '../../routing/targets.ts'
import type { FieldChange } from './change.ts'
import { listDifferences, type Kind, type Target } from './kind.ts'
import {
  connectionInFile,
  enrichmentInFile,
  keyInFile,
  memberInFile,
  eventSubscriptionInFile,
  notificationInFile,
  repositoryInFile,
  type OpenedDestination,
  type OpenedEnrichment,
  type OpenedRepository,
} from './workspace-state.ts'
import {
  enrichment,
  eventSubscription,
  notification,
  repository,
  type WantedConnection,
  type WantedDestination,
  type WantedEnrichment,
  type WantedKey,
  type WantedMember,
  type WantedEventSubscription,
  type WantedNotification,
  type WantedRepository,
} from './workspaces-file.ts'

// A connection that the file contains stays, whatever else it links.
const deletion = { limit: deliveriesPerBatch, keepConnections: true }

const byName = { nameInFile: ({ name }: { name: string }) => name, nameOf: ({ name }: { name: string }) => name }

const made = async (creation: Promise<unknown>): Promise<object> => {
  await creation
  return {}
}

const idOf = (name: string, objects: readonly { id: string; name: string }[]) => objects.find((each) => each.name === name)?.id

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
    create: (item) => made(members.insert(workspaceId, valuesOf(item), systemActor)),
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

export const repositoryKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedRepository, OpenedRepository> => {
  const repositories = createRepositories(trx)
  const valuesOf = ({ upstream: given, ...item }: WantedRepository) => {
    const { private_key: privateKey, ...upstream } = given ?? {}
    return {
      ...toCamelCase(repository.omit({ upstream: true }), item),
      upstream: given && { ...toCamelCase(upstreamFields, upstream as StoredUpstream), privateKey },
    }
  }
  return {
    kind: 'repository',
    list: 'repositories',
    wanted: wanted.repositories,
    current: state.repositories,
    nameInFile: ({ repo_id }) => repo_id,
    nameOf: ({ repoId }) => repoId,
    create: async (item) => {
      const { id } = await repositories.insert(workspaceId, valuesOf(item), systemActor, run)
      // A new repository is active.
      return made(repositories.update(workspaceId, id, { status: item.status }, systemActor, run))
    },
    compare: (current, { upstream: given, ...item }) => {
      const { private_key: privateKey, ...upstream } = given ?? {}
      const url = given?.proxy_url ?? null
      const wantedSecrets = {
        ...(privateKey !== undefined && { private_key: privateKey }),
        ...(url !== null && loginOf(url) === 'given' && { proxy_url: new URL(url).href }),
      }
      return [
        ...listDifferences(repositoryInFile(current), {
          ...item,
          upstream: given && { ...upstream, proxy_url: url === null ? null : proxyAddressOf(url) },
        }),
        ...listDifferences({ ...current.secrets }, wantedSecrets).map(({ name }) => ({ name: `upstream.${name}` })),
      ]
    },
    update: ({ id }, item, fields) => {
      const { upstream, ...values } = valuesOf(item)
      const hasUpstream = fields.some((field) => field.startsWith('upstream'))
      return repositories.update(workspaceId, id, { ...values, ...(hasUpstream && { upstream }) }, systemActor, run)
    },
    delete: ({ id }) => repositories.delete(workspaceId, id, systemActor, deletion),
  }
}

/** Returns the changes of a config, and of credentials, which have no values. A secret in an address is masked. */
const listTargetChanges = (names: string[], before: Record<string, unknown>, after: Record<string, unknown>): FieldChange[] =>
  names.map((name) => {
    const key = name.replace(/^config\./, '')
    return isDeepStrictEqual(before[key], after[key]) ? { name } : { name, before: before[key], after: after[key] }
  })

export const destinationKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedDestination, OpenedDestination> => {
  const destinations = destinationsOf(trx)
  const configure = createConfigureDestinations({ ...run, destinations })
  const targetOf = ({ connector_type: connectorType, config, credentials }: WantedDestination) => ({ connectorType, config, credentials })
  return {
    kind: 'destination',
    list: 'destinations',
    wanted: wanted.destinations,
    current: state.destinations,
    ...byName,
    create: (item) => made(configure.addChecked(workspaceId, { name: item.name, ...targetOf(item) }, systemActor)),
    compare: (current, item) => {
      if (current.connectorType === item.connector_type) {
        const names = configure.compare(workspaceId, current, current.credentials, targetOf(item))
        const keys = maskedKeys(connectorOf(run.findConnector, item.connector_type).config)
        return listTargetChanges(names, maskedConfig(keys, current.config), maskedConfig(keys, item.config))
      }
      const message = `cannot be changed: the destination is of the type ${current.connectorType}. Give the new destination another name`
      throw refuse('connector_type', message)
    },
    update: ({ id, credentials }, item) => configure.replace(workspaceId, id, credentials, targetOf(item), systemActor),
    delete: ({ id }) => destinations.delete(workspaceId, id, systemActor, deletion),
  }
}

export const connectionKind = ({ trx, workspaceId, wanted, state }: Target): Kind<WantedConnection, Connection> => {
  const connections = createConnections(trx)
  // An object that could not be created has been reported, and its id is missing: nothing will be committed.
  const idsOf = (names: string[], objects: { id: string; name: string }[]) => names.flatMap((name) => idOf(name, objects) ?? [])
  const repositories = state.repositories.map(({ id, repoId }) => ({ id, name: repoId }))
  const valuesOf = (item: WantedConnection) => ({
    name: item.name,
    isActive: item.is_active,
    settings: item.settings,
    repositoryIds: idsOf(item.repositories, repositories),
    destinationIds: idsOf(item.destinations, state.destinations),
  })
  // The order of the links has no meaning, and a default has the meaning of the value.
  const comparable = (item: WantedConnection | ReturnType<typeof connectionInFile>) => ({
    ...item,
    repositories: [...new Set(item.repositories)].toSorted(),
    destinations: [...new Set(item.destinations)].toSorted(),
    settings: connectionSettingsFields.parse(item.settings),
  })
  return {
    kind: 'connection',
    list: 'connections',
    wanted: wanted.connections,
    current: state.connections,
    ...byName,
    create: async (item) => {
      const values = valuesOf(item)
      const isComplete = values.repositoryIds.length > 0 && values.destinationIds.length > 0
      return isComplete ? made(connections.insert(workspaceId, values, systemActor)) : {}
    },
    compare: (current, item) => listDifferences(comparable(connectionInFile(current)), comparable(item)),
    update: ({ id }, item, fields) => {
      const { isActive, settings, repositoryIds, destinationIds } = valuesOf(item)
      const change = {
        ...(fields.includes('is_active') && { isActive }),
        ...(fields.includes('settings') && { settings }),
        ...(fields.includes('repositories') && { repositoryIds }),
        ...(fields.includes('destinations') && { destinationIds }),
      }
      return connections.update(workspaceId, id, change, systemActor, deliveriesPerBatch)
    },
    delete: ({ id }) => connections.delete(workspaceId, id, systemActor, deliveriesPerBatch),
  }
}

export const enrichmentKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedEnrichment, OpenedEnrichment> => {
  const enrichments = createEnrichments(trx)
  const valuesOf = ({ repositories, ...item }: WantedEnrichment) => ({
    ...toCamelCase(enrichment.omit({ repositories: true, credentials: true }), item),
    repositoryIds: repositories.flatMap((repoId) => state.repositories.find((each) => each.repoId === repoId)?.id ?? []),
  })
  const comparable = (item: ReturnType<typeof enrichmentInFile> | Omit<WantedEnrichment, 'credentials'>, credentials: unknown) => ({
    ...item,
    repositories: [...new Set(item.repositories)].toSorted(),
    credentials,
  })
  return {
    kind: 'enrichment',
    list: 'enrichments',
    wanted: wanted.enrichments,
    current: state.enrichments,
    ...byName,
    create: (item) => made(enrichments.insert(workspaceId, { ...valuesOf(item), credentials: item.credentials }, systemActor, run)),
    compare: (current, item) =>
      listDifferences(comparable(enrichmentInFile(current, state.repositories), current.credentials), comparable(item, item.credentials)),
    update: ({ id }, item, fields) => {
      const change = {
        ...valuesOf(item),
        ...((fields.includes('credentials') || fields.includes('http')) && { credentials: item.credentials }),
      }
      return enrichments.update(workspaceId, id, change, systemActor, run)
    },
    delete: ({ id }) => enrichments.delete(workspaceId, id, systemActor),
  }
}

export const eventSubscriptionKind = ({ trx, workspaceId, wanted, state }: Target): Kind<WantedEventSubscription, EventSubscription> => {
  const subscriptions = createEventSubscriptions(trx)
  const valuesOf = (item: WantedEventSubscription) => ({
    ...toCamelCase(eventSubscription, item),
    destinationId: idOf(item.destination, state.destinations) ?? '',
  })
  const comparable = (item: Partial<WantedEventSubscription>) => ({ ...item, events: [...new Set(item.events)].toSorted() })
  const insert = async (item: WantedEventSubscription) => {
    const { nextCursor } = await createEvents(trx).list(workspaceId, { after: 'latest', limit: 1 })
    return subscriptions.insert(workspaceId, valuesOf(item), nextCursor, systemActor)
  }
  return {
    kind: 'event_subscription',
    list: 'event_subscriptions',
    wanted: wanted.event_subscriptions,
    current: state.eventSubscriptions,
    ...byName,
    create: (item) => made(insert(item)),
    compare: (current, item) => listDifferences(comparable(eventSubscriptionInFile(current, state.destinations)), comparable(item)),
    update: ({ id }, item) => subscriptions.update(workspaceId, id, valuesOf(item), systemActor),
    delete: ({ id }) => subscriptions.delete(workspaceId, id, systemActor),
  }
}

export const notificationKind = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedNotification, Notification> => {
  const notifications = createNotifications(trx)
  const valuesOf = (item: WantedNotification) => ({
    ...toCamelCase(notification, item),
    destinationId: idOf(item.destination, state.destinations) ?? '',
  })
  const comparable = (item: WantedNotification) => ({ ...item, events: [...new Set(item.events)].toSorted() })
  return {
    kind: 'notification',
    list: 'notifications',
    wanted: wanted.notifications,
    current: state.notifications,
    ...byName,
    create: (item) => made(notifications.insert(workspaceId, valuesOf(item), systemActor, run.findConnector)),
    compare: (current, item) => listDifferences(comparable(notificationInFile(current, state.destinations)), comparable(item)),
    update: ({ id }, item) => notifications.update(workspaceId, id, valuesOf(item), systemActor, run.findConnector),
    delete: ({ id }) => notifications.delete(workspaceId, id, systemActor),
  }
}
