import type { Database } from '../db/database.ts'
import { transitions, type DeliveryEnd } from '../domain/delivery-states.ts'
import type { DeliveryRef } from './transition.ts'

const endedBy: DeliveryEnd = 'retry_ttl_seconds'

/**
 * Fails a delivery whose time to live has ended before its next attempt: nothing is sent and no attempt is recorded. The destination is
 * failing from then on, as after a failed attempt.
 */
export const expire = async (db: Database, { documentId, destinationId }: DeliveryRef): Promise<void> => {
  const { from, to } = transitions.expire
  await db.raw(
    `
    with document as (
      select id
      from documents
      where id = :documentId
      for no key update
    ), delivery as (
      update deliveries
      set status = :to, ended_by = :endedBy
      from document
      where document_id = document.id
        and destination_id = :destinationId
        and status = any (:from)
      returning last_error
    )
    update destinations
    set
      status = 'failing',
      last_error = delivery.last_error,
      updated_at = case when destinations.status <> 'failing' then now() else updated_at end
    from delivery
    where id = :destinationId
    `,
    { documentId, destinationId, from: [...from], to, endedBy },
  )
}
