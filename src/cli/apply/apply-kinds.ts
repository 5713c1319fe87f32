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
import { createEnrichments, enrichmentKind } from '../../enrichment/enrichments.ts'
import { newEnrichment } from '../../enrichment/settings.ts'
import { createEventSubscriptions, eventSubscriptionKind, type EventSubscription } from '../../events/subscriptions.ts'
import { createNotifications, notificationKind, type Notification } from '../../notifications/notifications.ts'
import { createConfigureDestinations } from '../../routing/configure-destinations.ts'
import { connectionKind, createConnections, type Connection } from '../../routing/connections.ts'
import { createRepositories, repositoryKind } from '../../routing/repositories.ts'
import { connectorOf } from '../../routing/targets.ts'
import { newConnection, newEventSubscription, newNotification } from '../../workspace/inputs.ts'
import type { FieldChange } from './change.ts'
import { fileKind, inFile } from './file-kind.ts'
import { listDifferences, type Kind, type Target } from './kind.ts'
import { keyInFile, memberInFile, type OpenedDestination, type OpenedEnrichment, type OpenedRepository } from './workspace-state.ts'
import {
  connection,
  enrichment,
  eventSubscription,
  notification,
  repository,
  type WantedDestination,
  type WantedKey,
  type WantedMember,
  type WantedRepository,
} from './workspaces-file.ts'

// A connection that the file contains stays, whatever else it links.
const deletion = { limit: deliveriesPerBatch, keepConnections: true }

const byName = { nameInFile: ({ name }: { name: string }) => name, nameOf: ({ name }: { name: string }) => name }

const made = async (creation: Promise<unknown>): Promise<object> => {
  await creation
  return {}
}

const refuse = (path: string, message: string) => new AppError('validation_failed', message, { details: [{ path, message }] })

export const membersOfFile = ({ trx, workspaceId, wanted, state }: Target): Kind<WantedMember, Member> => {
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

export const keysOfFile = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedKey, ApiKey> => {
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

export const repositoriesOfFile = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedRepository, OpenedRepository> => {
  const repositories = createRepositories(trx)
  const valuesOf = ({ upstream: given, home, ...item }: WantedRepository) => {
    const { private_key: privateKey, ...upstream } = given ?? {}
    return {
      ...toCamelCase(repository.omit({ upstream: true, home: true }), item),
      // A destination that could not be created has been reported.
      homeDestinationId: home && (state.destinations.find(({ name }) => name === home)?.id ?? ''),
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
    create: (item) => made(repositories.insert(workspaceId, valuesOf(item), systemActor, run)),
    compare: (current, { upstream: given, ...item }) => {
      const { private_key: privateKey, ...upstream } = given ?? {}
      const url = given?.proxy_url ?? null
      const wantedSecrets = {
        ...(privateKey !== undefined && { private_key: privateKey }),
        ...(url !== null && loginOf(url) === 'given' && { proxy_url: new URL(url).href }),
      }
      return [
        ...listDifferences(inFile(repositoryKind, current, state), {
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

export const destinationsOfFile = ({ trx, workspaceId, wanted, state, run }: Target): Kind<WantedDestination, OpenedDestination> => {
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

export const connectionsOfFile = (target: Target) => {
  const connections = createConnections(target.trx)
  return fileKind<Connection>(target, {
    kind: 'connection',
    list: 'connections',
    schema: connection,
    input: newConnection,
    current: target.state.connections,
    // A default has the meaning of the value.
    describe: ({ settings, ...current }) =>
      inFile(connectionKind, { ...current, settings: connectionSettingsFields.parse(settings) }, target.state),
    uses: {
      ...connections,
      update: (workspaceId, id, change, actor) => connections.update(workspaceId, id, change, actor, deliveriesPerBatch),
      delete: (workspaceId, id, actor) => connections.delete(workspaceId, id, actor, deliveriesPerBatch),
    },
  })
}

export const enrichmentsOfFile = (target: Target) =>
  fileKind<OpenedEnrichment>(target, {
    kind: 'enrichment',
    list: 'enrichments',
    schema: enrichment,
    input: newEnrichment,
    current: target.state.enrichments,
    describe: (current) => ({ ...inFile(enrichmentKind, current, target.state), credentials: current.credentials ?? 'unreadable' }),
    uses: createEnrichments(target.trx, target.run),
    // Stored credentials must not be sent to another address.
    needs: { http: 'credentials' },
  })

export const eventSubscriptionsOfFile = (target: Target) =>
  fileKind<EventSubscription>(target, {
    kind: 'event_subscription',
    list: 'event_subscriptions',
    schema: eventSubscription,
    input: newEventSubscription,
    current: target.state.eventSubscriptions,
    describe: (current) => inFile(eventSubscriptionKind, current, target.state),
    uses: createEventSubscriptions(target.trx),
  })

export const notificationsOfFile = (target: Target) =>
  fileKind<Notification>(target, {
    kind: 'notification',
    list: 'notifications',
    schema: notification,
    input: newNotification,
    current: target.state.notifications,
    describe: (current) => inFile(notificationKind, current, target.state),
    uses: createNotifications(target.trx, target.run.findConnector),
  })
