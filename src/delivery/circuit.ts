import type { Database, Transaction } from '../db/database.ts'
import type { WakeDeliveries } from '../db/outbox.ts'
import { addWake } from './wake.ts'

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
 * Lets the next delivery trial each of these destinations whose circuit is open: something may have been repaired.
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
 * Has a delivery that waits trial a destination at once, if its circuit is open.
 * @returns the messages that wake a few deliveries
 */
export const tryNow = async (trx: Transaction, destinationId: string): Promise<WakeDeliveries[]> => {
  const [ended] = await endPause(trx, [destinationId])
  return ended === undefined ? [] : [await addWake(trx, ended)]
}
