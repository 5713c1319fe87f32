import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { DestinationLimits } from './slots.ts'
import type { DeliveryRef } from './transition.ts'

// A running attempt holds a slot of its destination by a lease in the database, and marks its delivery. The statement in delivery-job.ts
// takes both, and the one in record-attempt.ts gives both back.

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
