import { z } from 'zod'
import type { Removal } from '../workspace/removal.ts'
import { one } from './schemas.ts'

const removedConnectionsHeader = 'X-Relay-Removed-Connections'

// Clients accept a header of at least 8 KB. An id has 26 characters.
const headerMaxIds = 200

export const dryRunQuery = z.strictObject({
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

/** The second answer of an endpoint that deletes: what the deletion would remove. */
export const dryRunAlternative = {
  status: 200,
  description: 'With `dry_run=true`: what the deletion would remove. Nothing was deleted.',
  response: dryRunResponse,
  appliesTo: (answer: unknown) => answer !== undefined,
}

export const removalHeaders = {
  [removedConnectionsHeader]: `The ids of the connections that were deleted too, separated by commas; empty if there were none. At most ${headerMaxIds}: the audit entry names all.`,
}

/** Answers a dry run. */
export const presentRemoval = ({ connections, notifications, unwiredRepositories }: Removal) => ({
  data: { removedConnections: connections, removedNotifications: notifications, unwiredRepositories },
})

/** Sets the header that names the connections that were deleted too. */
export const setRemovalHeader = ({ connections }: Removal, setHeader: (name: string, value: string) => void): void => {
  const ids = connections.slice(0, headerMaxIds).map(({ id }) => id)
  setHeader(removedConnectionsHeader, ids.join(', '))
}
