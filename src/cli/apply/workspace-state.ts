import { createApiKeys, type ApiKey } from '../../access/api-keys.ts'
import { createMembers, type Member } from '../../access/members.ts'
import { destinationsOf } from '../../app/use-cases.ts'
import type { FindConnector } from '../../connectors/connector.ts'
import type { Transaction } from '../../db/database.ts'
import { rfcBoundValues } from '../../domain/settings.ts'
import type { UpstreamSecrets } from '../../domain/upstream.ts'
import { createEnrichments, openEnrichmentCredentials, type Enrichment, type SealedEnrichment } from '../../enrichment/enrichments.ts'
import { storedHttp } from '../../enrichment/settings.ts'
import { createEventSubscriptions, type EventSubscription } from '../../events/subscriptions.ts'
import { createNotifications, type Notification } from '../../notifications/notifications.ts'
import { createConnections, type Connection } from '../../routing/connections.ts'
import type { SealedDestination } from '../../routing/destinations.ts'
import { createRepositories, type SealedRepository } from '../../routing/repositories.ts'
import { openUpstreamSecrets, storedUpstream } from '../../routing/repository-upstream.ts'
import { openOrUndefined, openStored } from '../../routing/stored-credentials.ts'
import { rfcCredentialsOf, type KeyRing } from '../../security/seal.ts'
import { createWorkspaces } from '../../workspace/workspaces.ts'

export interface StateDeps {
  keyRing: KeyRing
  findConnector: FindConnector
}

/** A destination with its credentials, which are undefined if no key opens them. */
export type OpenedDestination = SealedDestination & { credentials: unknown }

/** A repository with the secrets of its upstream, which are missing if there are none, or no key opens them. */
export type OpenedRepository = SealedRepository & { secrets: UpstreamSecrets }

/** An enrichment with its credentials, which are undefined if no key opens them. */
export type OpenedEnrichment = SealedEnrichment & { credentials: unknown }

const everything = { page: 1, perPage: Number.MAX_SAFE_INTEGER }

/** Reads everything of a workspace that a file can describe. */
export const readState = async (trx: Transaction, workspaceId: string, { keyRing, findConnector }: StateDeps) => {
  const workspaces = createWorkspaces(trx)
  const opened = (found: SealedDestination): OpenedDestination => {
    const connector = findConnector(found.connectorType)
    return { ...found, credentials: connector && openStored(keyRing, connector, { ...found, workspaceId }) }
  }
  const destinations = destinationsOf(trx)
  const listed = await destinations.list(workspaceId, everything)
  const found: OpenedDestination[] = []
  for (const { id } of listed.items) found.push(opened(await destinations.find(workspaceId, id)))
  const sealed = await workspaces.findRfcCredentials(workspaceId)
  const members = await createMembers(trx).list(workspaceId)
  const keys = await createApiKeys(trx).listEverywhere(workspaceId)
  const stored = await workspaces.findSettings(workspaceId)
  return {
    stored,
    rfcCredentials: sealed && openOrUndefined(keyRing, sealed, rfcCredentialsOf(workspaceId, rfcBoundValues(stored.settings))),
    members,
    apiKeys: keys.filter(({ revokedAt, expiresAt }) => !revokedAt && !(expiresAt && expiresAt.getTime() <= Date.now())),
    repositories: (await createRepositories(trx).list(workspaceId, everything)).items.map((each): OpenedRepository => ({
      ...each,
      secrets: openUpstreamSecrets(keyRing, workspaceId, each),
    })),
    destinations: found,
    connections: (await createConnections(trx).list(workspaceId, null, undefined)).items,
    enrichments: (await createEnrichments(trx).list(workspaceId, everything)).items.map((each): OpenedEnrichment => ({
      ...each,
      credentials: openEnrichmentCredentials(keyRing, workspaceId, each),
    })),
    notifications: (await createNotifications(trx).list(workspaceId, everything)).items,
    eventSubscriptions: (await createEventSubscriptions(trx).list(workspaceId, everything)).items,
  }
}

export type WorkspaceState = Awaited<ReturnType<typeof readState>>

// The objects as a file describes them.

export const memberInFile = ({ email, name }: Member) => ({ email, ...(name !== email && { name }) })

export const keyInFile = ({ name, level, userId }: ApiKey, members: readonly Member[]) => {
  const member = members.find(({ id }) => id === userId)?.email
  return { name, level, ...(member !== undefined && { member }) }
}

export const repositoryInFile = (found: OpenedRepository) => ({
  repo_id: found.repoId,
  name: found.name,
  status: found.status,
  signature_verification: found.signatureVerification,
  signed_parameter_order: found.signedParameterOrder,
  accepts_mcreate: found.acceptsMcreate,
  upstream: storedUpstream(found.upstream),
})

export const connectionInFile = ({ name, isActive, repositories, destinations, settings }: Connection) => ({
  name,
  is_active: isActive,
  repositories: repositories.map(({ repoId }) => repoId),
  destinations: destinations.map((each) => each.name),
  settings,
})

export const enrichmentInFile = (found: Enrichment, repositories: readonly { id: string; repoId: string }[]) => ({
  name: found.name,
  repositories: found.repositoryIds.map((repositoryId) => repositories.find(({ id }) => id === repositoryId)!.repoId),
  is_active: found.isActive,
  wait_seconds: found.waitSeconds,
  late_days: found.lateDays,
  http: storedHttp(found.http),
  steps: found.steps,
})

/** The destination of a subscription may have been deleted: the name is then missing. */
export const eventSubscriptionInFile = (found: EventSubscription, destinations: readonly { id: string; name: string }[]) => {
  const destination = destinations.find(({ id }) => id === found.destinationId)?.name
  return { name: found.name, events: found.events, ...(destination !== undefined && { destination }), is_active: found.isActive }
}

export const notificationInFile = (found: Notification, destinations: readonly { id: string; name: string }[]) => ({
  name: found.name,
  events: found.events,
  destination: destinations.find(({ id }) => id === found.destinationId)!.name,
  quiet_seconds: found.quietSeconds,
  silence_hours: found.silenceHours,
  is_active: found.isActive,
})
