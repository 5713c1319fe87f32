import type { Database } from '../db/database.ts'
import { transition, type DeliveryRef } from './transition.ts'

// Much longer than the workflow of a document takes to learn that one of its deliveries has ended.
const reconcilerMs = 600_000

/**
 * Records that the workflow of a delivery was terminated, unless the reconciler has just checked the delivery: it may have ended a workflow
 * that was stuck, and started the delivery again. If an operator has ended the workflow, the reconciler records that in one of its next
 * runs.
 */
export const recordTermination = async (db: Database, delivery: DeliveryRef, error: string): Promise<void> => {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `
    select
    from deliveries
    where document_id = :documentId
      and destination_id = :destinationId
      and checked_at > now() - :reconcilerMs * interval '1 millisecond'
    `,
    { documentId: delivery.documentId, destinationId: delivery.destinationId, reconcilerMs },
  )
  if (rows.length === 0) await transition(db, 'terminate', delivery, error)
}
