import type { Config } from '../config/config.ts'
import type { Database, Transaction } from '../db/database.ts'
import type { WakeDeliveries } from '../db/outbox.ts'
import type { DestinationLimits } from './slots.ts'
import type { DeliveryRef } from './transition.ts'
import { addWake } from './wake.ts'

// A running attempt holds a slot of its destination by a lease in the database, and marks its delivery. The statement in delivery-job.ts
// takes both, and the one in record-attempt.ts gives both back.

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

/**
 * Closes the circuit of a destination, which a successful test has shown to work.
 * @returns the committed message that wakes the deliveries that wait for the destination
 */
export const closeCircuit = (db: Database, destinationId: string): Promise<WakeDeliveries[]> =>
  db.transaction(async (trx) => {
    const { rows } = await trx.raw<{ rows: { closes: boolean }[] }>(
      `
      update destination_gates
      set
        circuit = 'closed', circuit_since = case when circuit = 'closed' then circuit_since else now() end, failures = 0, pause_ms = 0,
        trial_at = null, trial_id = null
      where destination_id = :destinationId
        and (circuit <> 'closed' or failures > 0)
      returning circuit_since = now() as closes
      `,
      { destinationId },
    )
    return rows[0]?.closes ? [await addWake(trx, destinationId)] : []
  })

/**
 * Lets the next delivery try each of these destinations whose circuit is open: something may have been repaired.
 * @returns the ids of these destinations
 */
export const endPause = async (trx: Transaction, destinationIds: string[]): Promise<string[]> => {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `
    update destination_gates
    set trial_at = now()
    where destination_id = any (:destinationIds)
      and circuit = 'open'
      and trial_at > now()
    returning destination_id as id
    `,
    { destinationIds },
  )
  return rows.map(({ id }) => id)
}

/**
 * Lets a waiting delivery try a destination at once, if its circuit is open.
 * @returns the messages that wake a few deliveries
 */
export const tryNow = async (trx: Transaction, destinationId: string): Promise<WakeDeliveries[]> => {
  const [ended] = await endPause(trx, [destinationId])
  return ended === undefined ? [] : [await addWake(trx, ended)]
}
