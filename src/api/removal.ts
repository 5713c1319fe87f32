import { z } from 'zod'
import type { AuditActor } from '../db/audit.ts'
import type { OutboxMessage } from '../db/outbox.ts'
import { deliveriesPerBatch } from '../delivery/release.ts'
import type { AuditEvent } from '../domain/audit-events.ts'
import { actorOf } from '../workspace/authenticator.ts'
import type { Removal } from '../workspace/removal.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { idParams, one } from './schemas.ts'

const removedConnectionsHeader = 'X-Relay-Removed-Connections'

// Clients accept a header of at least 8 KB. An id has 26 characters.
const headerMaxIds = 200

const dryRunQuery = z.strictObject({
  dry_run: z
    .enum(['true', 'false'])
    .default('false')
    .transform((value) => value === 'true')
    .describe('With `true`, nothing is deleted: the response lists what the deletion would remove.'),
})

const removal = z
  .object({
    removed_connections: z.array(z.object({ id: z.string(), name: z.string() })),
    removed_notifications: z.array(z.object({ id: z.string(), name: z.string() })),
    unwired_repositories: z.array(z.object({ id: z.string(), repo_id: z.string(), name: z.string() })),
  })
  .meta({ id: 'Removal' })

const dryRunResponse = one(removal)

interface Deletion<Current> extends LaunchDeps {
  path: string
  audit: AuditEvent[]
  summary: string
  description: string
  objects: {
    findRemoval(workspaceId: string, id: string): Promise<Removal>
    delete(
      workspaceId: string,
      id: string,
      actor: AuditActor,
      limit: number,
      check: (current: Current) => void,
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
    query: dryRunQuery,
    response: 'none',
    status: 204,
    headers: {
      [removedConnectionsHeader]: `The ids of the connections that were deleted too, separated by commas; empty if there were none. At most ${headerMaxIds}: the audit entry names all.`,
    },
    alternative: {
      status: 200,
      description: 'With `dry_run=true`: what the deletion would remove. Nothing was deleted.',
      response: dryRunResponse,
      appliesTo: (answer: unknown) => answer !== undefined,
    },
    checksVersion: true,
    handle: async ({ params, query }, { workspaceId, actor, setHeader, checkVersion }) => {
      if (query.dryRun) {
        const { connections, notifications, unwiredRepositories } = await objects.findRemoval(workspaceId, params.id)
        return { data: { removedConnections: connections, removedNotifications: notifications, unwiredRepositories } }
      }
      const check = (current: Current) => checkVersion(versionOf(current))
      const deleted = await objects.delete(workspaceId, params.id, actorOf(actor), batchSize, check)
      launch(deleted.messages)
      const ids = deleted.connections.slice(0, headerMaxIds).map(({ id }) => id)
      return setHeader(removedConnectionsHeader, ids.join(', '))
    },
  })
