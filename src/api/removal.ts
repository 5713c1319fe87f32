import { z } from 'zod'
import { actorOf, type AuditActor } from '../db/audit.ts'
import type { OutboxMessage } from '../db/outbox.ts'
import { deliveriesPerBatch } from '../delivery/release.ts'
import type { AuditEvent } from '../domain/audit-events.ts'
import { flag } from '../http/filters.ts'
import { removalFields, type DeletionOptions, type Removal } from '../routing/removal.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { idParams, one } from './schemas.ts'

const removedConnectionsHeader = 'X-Relay-Removed-Connections'
const affectedDestinationsHeader = 'X-Relay-Affected-Destinations'

// Clients accept a header of at least 8 KB. An id has 26 characters.
const headerMaxIds = 200

const query = z.strictObject({
  dry_run: flag.prefault('false').describe('With `true`, nothing is deleted: the response lists what the deletion would remove.'),
  keep_connections: flag
    .prefault('false')
    .describe(
      'With `true`, connections that also link others stay, without what is deleted. Only a connection that would be empty is deleted.',
    ),
})

const idsOf = (objects: { id: string }[]): string =>
  objects
    .slice(0, headerMaxIds)
    .map(({ id }) => id)
    .join(', ')

const dryRunResponse = one(removalFields)

interface Deletion<Current> extends LaunchDeps {
  path: string
  audit: AuditEvent[]
  summary: string
  description: string
  /** When the deletion is refused with 409. */
  conflict?: string
  objects: {
    findRemoval(workspaceId: string, id: string, keepConnections: boolean): Promise<Removal>
    delete(
      workspaceId: string,
      id: string,
      actor: AuditActor,
      options: DeletionOptions<Current>,
    ): Promise<Removal & { messages: OutboxMessage[] }>
  }
  versionOf(current: Current): unknown
}

/** Returns the endpoint that deletes a destination or repository with what goes together with it. */
export const deletionEndpoint = <Current>({
  objects,
  versionOf,
  launch,
  batchSize = deliveriesPerBatch,
  ...described
}: Deletion<Current>): Endpoint =>
  endpoint({
    ...described,
    method: 'DELETE',
    level: 'admin',
    params: idParams,
    query,
    response: 'none',
    headers: {
      [removedConnectionsHeader]: `The ids of the connections that were deleted too, separated by commas; empty if there were none. At most ${headerMaxIds}: the audit entry names all.`,
      [affectedDestinationsHeader]: `The ids of the other destinations that also lose documents, separated by commas; empty if there are none. At most ${headerMaxIds}: the audit entry names all.`,
    },
    alternative: {
      status: 200,
      description: 'With `dry_run=true`: what the deletion would remove. Nothing was deleted.',
      response: dryRunResponse,
      appliesTo: (answer: unknown) => answer !== undefined,
    },
    checksVersion: true,
    handle: async ({ params, query: { dryRun, keepConnections } }, { workspaceId, actor, setHeader, checkVersion }) => {
      if (dryRun) return { data: await objects.findRemoval(workspaceId, params.id, keepConnections) }
      const check = (current: Current) => checkVersion(versionOf(current))
      const deleted = await objects.delete(workspaceId, params.id, actorOf(actor), { limit: batchSize, keepConnections, check })
      launch(deleted.messages)
      setHeader(removedConnectionsHeader, idsOf(deleted.removedConnections))
      setHeader(affectedDestinationsHeader, idsOf(deleted.affectedDestinations))
      return undefined
    },
  })
