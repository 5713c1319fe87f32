import type { Database, Transaction } from '../db/database.ts'

/** Closes the circuit of a destination, which a successful test has shown to work. */
export const closeCircuit = async (db: Database, destinationId: string): Promise<void> => {
  await db.raw(
    `
    update destination_gates
    set circuit = 'closed', circuit_since = case when circuit = 'closed' then circuit_since else now() end, failures = 0, pause_ms = 0, trial_at = null, trial_id = null
    where destination_id = :destinationId
      and (circuit <> 'closed' or failures > 0)
    `,
    { destinationId },
  )
}

/** Lets the next delivery trial each of these destinations whose circuit is open: something may have been repaired. */
export const tryNow = async (trx: Transaction, destinationIds: string[]): Promise<void> => {
  await trx.raw(
    `
    update destination_gates
    set trial_at = now()
    where destination_id = any (:destinationIds)
      and circuit = 'open'
      and trial_at > now()
    `,
    { destinationIds },
  )
}
