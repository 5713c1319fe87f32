import { idPrefixAt } from '../base/ids.ts'
import { refusedSource } from '../capture/latest-requests.ts'
import type { Config } from '../config/config.ts'
import { presentCounts } from '../db/counters.ts'
import type { Database } from '../db/database.ts'
import { snakeCased } from '../domain/casing.ts'
import { failingFrom } from '../domain/circuit.ts'
import { lastRequestMetric, needsAttention, oldestUnderWay } from './statistics.ts'

/** How a workspace is at present: what a person with several of them compares. */
export interface WorkspaceState {
  id: string
  userSlug: string
  workspaceSlug: string
  /** Failed documents that are not acknowledged, and discarded ones that are neither acknowledged nor replayed. */
  attention: number
  /** Destinations that fail again and again. */
  failing: number
  /** Active repositories that have refused all of their latest requests, of the last week. */
  refusing: number
  /** Deliveries that have not ended: pending, held or retrying. */
  open: number
  /** Those of them that an inactive connection holds. */
  held: number
  /** When the oldest document with a pending or retrying delivery was received. Null if there is none. */
  oldestOpenAt: Date | null
  /** When a source system has last sent a request. Null if that is not known. */
  lastRequestAt: Date | null
  storedBytes: number
  /** How many bytes it may store. Null if there is no limit. */
  maxBytes: number | null
}

export type WorkspaceName = Pick<WorkspaceState, 'userSlug' | 'workspaceSlug'>

// A delivery that is open for this long has not gone well, or no worker is running.
const lateMs = 300_000
// As the alert RelayQuotaNearlyUsed.
const nearlyFullShare = 0.9
// An older request is known from the aggregates, which a worker computes every minute: partitions before it are not read, nor those of the future.
const freshMs = 86_400_000
const refusedMs = 7 * freshMs

/** Each part asks an index once per workspace, or once per destination: nothing is read that grows with the documents. */
const statement = `
  with known as materialized (
    select labels ->> 'workspace' as workspace, max(value) as seconds
    from aggregates
    where metric = '${lastRequestMetric}'
    group by labels ->> 'workspace'
  )
  select
    workspaces.id, user_slug as "userSlug", workspace_slug as "workspaceSlug", attention.count as attention, failing.count as failing,
    refusing.count as refusing, open.count as open, open.held, oldest.received_at as "oldestOpenAt",
    greatest(last.request_at, to_timestamp(known.seconds)) as "lastRequestAt", stored.bytes as "storedBytes",
    least(nullif(:maxBytes::bigint, 0), (settings ->> 'receiver_max_bytes')::bigint) as "maxBytes"
  from workspaces
  left join known on known.workspace = user_slug || '/' || workspace_slug
  cross join lateral (
    select coalesce(sum(count), 0)::bigint as count
    from (${presentCounts('documents', `and ${needsAttention}`, 'workspaces.id')}) as counted
  ) as attention
  cross join lateral (
    select coalesce(sum(count), 0)::bigint as count, coalesce(sum(count) filter (where status = 'held'), 0)::bigint as held
    from (${presentCounts('all_deliveries', `and status in ('pending', 'held', 'retrying')`, 'workspaces.id')}) as counted
  ) as open
  cross join lateral (
    select count(*)::integer as count
    from destinations
    join destination_gates on destination_id = destinations.id
    where destinations.workspace_id = workspaces.id
      and deleted_at is null
      and (circuit <> 'closed' or failures >= ${failingFrom})
  ) as failing
  cross join lateral (
    select count(*)::integer as count
    from repositories
    cross join lateral (${refusedSource('and captured_requests.id between :week and :soon')}) as latest
    where repositories.workspace_id = workspaces.id
      and deleted_at is null
  ) as refusing
  left join lateral (
    select received_at
    from (
      select oldest.document_id
      from destinations
      cross join lateral ${oldestUnderWay}
      where destinations.workspace_id = workspaces.id
        and deleted_at is null
      order by oldest.document_id
      limit 1
    ) as first
    join documents on documents.id = first.document_id
  ) as oldest on true
  left join lateral (
    select request_at
    from captured_requests
    -- Not an equality: the planner could then read the requests of all workspaces in the order of their ids, until it finds one of this.
    where workspace_id >= workspaces.id
      and workspace_id <= workspaces.id
      and channel = 'receiver'
      and captured_requests.id between :fresh and :soon
    order by workspace_id desc, captured_requests.id desc
    limit 1
  ) as last on true
  cross join lateral (
    select greatest(coalesce(sum(bytes), 0), 0)::bigint as bytes
    from workspace_storage
    where workspace_id = workspaces.id
  ) as stored
`

/** Returns 0 for a workspace where something has failed or is refused, 1 if something is held, late or nearly full, otherwise 2. */
const rankOf = ({ attention, failing, refusing, held, oldestOpenAt, storedBytes, maxBytes }: WorkspaceState, nowMs: number): 0 | 1 | 2 => {
  if (attention > 0 || failing > 0 || refusing > 0) return 0
  const isLate = oldestOpenAt !== null && nowMs - oldestOpenAt.getTime() > lateMs
  return held > 0 || isLate || (maxBytes !== null && storedBytes >= nearlyFullShare * maxBytes) ? 1 : 2
}

const nameOf = ({ userSlug, workspaceSlug }: WorkspaceName) => `${userSlug}/${workspaceSlug}`

const byName = (one: WorkspaceState, other: WorkspaceState) => (nameOf(one) < nameOf(other) ? -1 : 1)

/** Sorts workspaces: those with trouble come first, the largest before the others, and then all others by their name. */
export const byTrouble = (states: readonly WorkspaceState[], nowMs: number): WorkspaceState[] => {
  const oldest = ({ oldestOpenAt }: WorkspaceState) => oldestOpenAt?.getTime() ?? nowMs
  return states.toSorted((one, other) => {
    const rank = rankOf(one, nowMs)
    const difference = rank - rankOf(other, nowMs) || other.attention - one.attention
    if (difference !== 0) return difference
    return (rank < 2 ? oldest(one) - oldest(other) : 0) || byName(one, other)
  })
}

export const createWorkspaceStates = (
  db: Database,
  { RELAY_WORKSPACE_MAX_BYTES: maxBytes }: Pick<Config, 'RELAY_WORKSPACE_MAX_BYTES'>,
) => ({
  /** Lists workspaces, those with trouble first. @param names only these. Without it, all of the installation */
  list: async (names?: readonly WorkspaceName[]): Promise<WorkspaceState[]> => {
    const now = Date.now()
    const idAt = (afterMs: number) => idPrefixAt(new Date(now + afterMs))
    const bindings = { maxBytes, fresh: idAt(-freshMs), week: idAt(-refusedMs), soon: idAt(freshMs) }
    const { rows } = await db.raw<{ rows: WorkspaceState[] }>(
      names
        ? `${statement}
        where (user_slug, workspace_slug) in (
          select name ->> 'user_slug', name ->> 'workspace_slug' from jsonb_array_elements(:names::jsonb) as name
        )`
        : statement,
      { ...bindings, ...(names && { names: JSON.stringify(snakeCased(names)) }) },
    )
    return byTrouble(rows, now)
  },
})

export type WorkspaceStates = ReturnType<typeof createWorkspaceStates>
