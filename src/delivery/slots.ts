import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { DeliveryRef } from './transition.ts'

// Two limits hold at a time. The limits of a destination hold for the installation: a running attempt holds one of its slots by a lease in the
// database. The places of a worker process are shared so that no workspace and no destination keeps the others from them.

export interface DestinationLimits {
  /** Concurrent attempts of the installation. */
  maxConcurrent: number
  /** Attempts that the installation starts per minute; 0 is no limit. */
  maxPerMinute: number
}

// Deliveries that waited come back a little late, so a rate may catch up on five seconds. The interval is longer in return, so that no
// minute sees more attempts than the limit.
export const catchUpMs = 5_000
export const intervalMs = ({ maxPerMinute }: Pick<DestinationLimits, 'maxPerMinute'>) =>
  maxPerMinute === 0 ? 0 : (60_000 + catchUpMs) / maxPerMinute

// A running attempt also marks its delivery. The statement in delivery-job.ts takes mark and lease, and the one in record-attempt.ts gives both
// back.

/** Returns a limit in the config of a destination, or the default if it sets none that is valid. */
const limitOf = (table: string, key: string, fallback: string) =>
  `case when jsonb_typeof(${table}.config -> '${key}') = 'number' then (${table}.config ->> '${key}')::numeric::integer else ${fallback}::integer end`

/** SQL: the limits of a destination, as `max_concurrent` and `max_per_minute`. */
export const limitsOf = (table: string) => `
      ${limitOf(table, 'max_concurrent_deliveries', ':maxConcurrent')} as max_concurrent,
      ${limitOf(table, 'max_deliveries_per_minute', ':maxPerMinute')} as max_per_minute`

/** Returns the time for which a slot is leased. A lost attempt is noticed after half of it, so the next attempt finds the lease. */
export const leaseMs = ({ DELIVERY_HEARTBEAT_TIMEOUT_MS }: Pick<Config, 'DELIVERY_HEARTBEAT_TIMEOUT_MS'>) =>
  2 * DELIVERY_HEARTBEAT_TIMEOUT_MS

/** Adds the rows that the leases of a destination need: before its first attempt, and after its limit was raised. */
export const addSlots = async (db: Database, destinationId: string, { maxConcurrent }: DestinationLimits): Promise<void> => {
  await db.raw(
    `
    with gate as (
      insert into destination_gates (destination_id)
      values (:destinationId)
      on conflict do nothing
    )
    insert into destination_slots (destination_id, number)
    select :destinationId, number
    from generate_series(1, :maxConcurrent::integer) as number
    on conflict do nothing
    `,
    { destinationId, maxConcurrent },
  )
}

/** Removes the mark of an attempt that was started and will not be made, and returns its slot. */
export const withdrawAttempt = async (db: Database, { documentId, destinationId }: DeliveryRef, attemptId: string): Promise<void> => {
  await db.raw(
    `
    with delivery as (
      update deliveries
      set attempt_id = null
      where document_id = :documentId
        and destination_id = :destinationId
        and attempt_id = :attemptId
    ), trial as (
      update destination_gates
      set trial_at = now()
      where destination_id = :destinationId
        and trial_id = :attemptId
    )
    update destination_slots
    set holder = null, leased_until = '-infinity'
    where destination_id = :destinationId
      and holder = :attemptId
    `,
    { documentId, destinationId, attemptId },
  )
}

/** Renews the lease of a running attempt, which may be a trial. */
export const renewLease = async (db: Database, destinationId: string, attemptId: string, durationMs: number): Promise<void> => {
  await db.raw(
    `
    with trial as (
      update destination_gates
      set trial_at = now() + :durationMs::integer * interval '1 millisecond'
      where destination_id = :destinationId
        and trial_id = :attemptId
    )
    update destination_slots
    set leased_until = now() + :durationMs::integer * interval '1 millisecond'
    where destination_id = :destinationId
      and holder = :attemptId
    `,
    { destinationId, attemptId, durationMs },
  )
}

interface PlaceRequest {
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  destinationId: string
  /** The attempt goes on with an upload that a lost worker has begun. */
  resumes?: boolean
}

/** Numbers of running attempts of a workspace, by destination. */
type Running = Map<string, number>

const sumOf = (running: Running): number => [...running.values()].reduce((sum, count) => sum + count, 0)

/**
 * Creates the places of a worker process for attempts. A workspace never takes more of them than it leaves free, and neither does a
 * destination of what its workspace may take. However many targets hang, other workspaces go on: of 100 places, one workspace gets 50, a
 * second 25, a third 12. A workspace without a running attempt may take any free place.
 */
export const createSlots = (total: number) => {
  const workspaces = new Map<string, Running>()
  let taken = 0

  const isAdmitted = (running: Running, destinationId: string): boolean => {
    if (taken >= total) return false
    const ofWorkspace = sumOf(running)
    if (ofWorkspace === 0) return true
    // Half of what the other workspaces leave.
    const share = Math.floor((total - (taken - ofWorkspace)) / 2)
    if (ofWorkspace >= share) return false
    const ofDestination = running.get(destinationId) ?? 0
    return ofDestination === 0 || ofDestination < share - ofWorkspace
  }

  return {
    /** Takes a place. @returns a function that gives it back and is safe to repeat, or undefined if the attempt has to wait */
    acquire: ({ workspace, destinationId, resumes = false }: PlaceRequest): (() => void) | undefined => {
      const running: Running = workspaces.get(workspace) ?? new Map<string, number>()
      if (!resumes && !isAdmitted(running, destinationId)) return undefined
      workspaces.set(workspace, running)
      running.set(destinationId, (running.get(destinationId) ?? 0) + 1)
      taken += 1
      let isReleased = false
      return () => {
        if (isReleased) return
        isReleased = true
        taken -= 1
        const rest = running.get(destinationId)! - 1
        if (rest > 0) running.set(destinationId, rest)
        else running.delete(destinationId)
        if (running.size === 0) workspaces.delete(workspace)
      }
    },
  }
}

export type Slots = ReturnType<typeof createSlots>
