import { createApiKeys, type ApiKey } from '../../access/api-keys.ts'
import { createMembers, type Member } from '../../access/members.ts'
import type { FindConnector } from '../../connectors/connector.ts'
import type { Transaction } from '../../db/database.ts'
import { rfcBoundValues } from '../../domain/settings.ts'
import type { UpstreamSecrets } from '../../domain/upstream.ts'
import { enrichmentKind, openEnrichmentCredentials, type Enrichment } from '../../enrichment/enrichments.ts'
import { eventSubscriptionKind } from '../../events/subscriptions.ts'
import { notificationKind } from '../../notifications/notifications.ts'
import { connectionKind } from '../../routing/connections.ts'
import { destinationKind, type Destination } from '../../routing/destinations.ts'
import { repositoryKind, type SealedRepository } from '../../routing/repositories.ts'
import { openUpstreamSecrets } from '../../routing/repository-upstream.ts'
import { openStored } from '../../routing/stored-credentials.ts'
import { openOrUndefined, rfcCredentialsOf, type KeyRing } from '../../security/seal.ts'
import { createWorkspaces } from '../../workspace/workspaces.ts'

export interface StateDeps {
  keyRing: KeyRing
  findConnector: FindConnector
}

/** A destination with its credentials, which are undefined if no key opens them. */
export type OpenedDestination = Destination & { credentials: unknown }

/** A repository with the secrets of its upstream, which are missing if there are none, or no key opens them. */
export type OpenedRepository = SealedRepository & { secrets: UpstreamSecrets }

/** An enrichment with its credentials, which are undefined if no key opens them. */
export type OpenedEnrichment = Enrichment & { credentials: unknown }

/** Reads everything of a workspace that a file can describe. */
export const readState = async (trx: Transaction, workspaceId: string, { keyRing, findConnector }: StateDeps) => {
  const workspaces = createWorkspaces(trx)
  const opened = (found: Destination): OpenedDestination => {
    const connector = findConnector(found.connectorType)
    return { ...found, credentials: connector && openStored(keyRing, connector, { ...found, workspaceId }) }
  }
  const sealed = await workspaces.findRfcCredentials(workspaceId)
  const members = await createMembers(trx).list(workspaceId)
  const keys = await createApiKeys(trx).listEverywhere(workspaceId)
  const stored = await workspaces.findSettings(workspaceId)
  return {
    stored,
    rfcCredentials: sealed && openOrUndefined(keyRing, sealed, rfcCredentialsOf(workspaceId, rfcBoundValues(stored.settings))),
    members,
    apiKeys: keys.filter(({ revokedAt, expiresAt }) => !revokedAt && !(expiresAt && expiresAt.getTime() <= Date.now())),
    repositories: (await repositoryKind.listAll(trx, workspaceId)).map((each): OpenedRepository => ({
      ...each,
      secrets: openUpstreamSecrets(keyRing, workspaceId, each),
    })),
    destinations: (await destinationKind.listAll(trx, workspaceId)).map(opened),
    connections: await connectionKind.listAll(trx, workspaceId),
    enrichments: (await enrichmentKind.listAll(trx, workspaceId)).map((each): OpenedEnrichment => ({
      ...each,
      credentials: openEnrichmentCredentials(keyRing, workspaceId, each),
    })),
    notifications: await notificationKind.listAll(trx, workspaceId),
    eventSubscriptions: await eventSubscriptionKind.listAll(trx, workspaceId),
  }
}

export type WorkspaceState = Awaited<ReturnType<typeof readState>>

// The objects as a file describes them.

export const memberInFile = ({ email, name }: Member) => ({ email, ...(name !== email && { name }) })

export const keyInFile = ({ name, level, userId }: ApiKey, members: readonly Member[]) => {
  const member = members.find(({ id }) => id === userId)?.email
  return { name, level, ...(member !== undefined && { member }) }
}
