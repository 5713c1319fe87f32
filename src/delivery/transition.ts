import type { Database, Transaction } from '../db/database.ts'
import { transitions, type DeliveryOperation } from '../domain/delivery-states.ts'

export interface DeliveryRef {
  documentId: string
  destinationId: string
}

/**
 * Applies an operation to one delivery, unless the delivery's status does not allow it. The document is locked first, as by every
 * statement that changes deliveries of a document, so concurrent changes cannot deadlock.
 */
export const transition = async (
  db: Database | Transaction,
  operation: DeliveryOperation,
  delivery: DeliveryRef,
  error?: string,
): Promise<void> => {
  const { from, to } = transitions[operation]
  await db.raw(
    `
    with document as (
      select id
      from documents
      where id = :documentId
      for no key update
    )
    update deliveries
    set
      status = :to,
      last_error = coalesce(:error, last_error),
      last_error_code = case when :error::text is null then last_error_code end
    from document
    where document_id = document.id
      and destination_id = :destinationId
      and status = any (:from)
    `,
    { documentId: delivery.documentId, destinationId: delivery.destinationId, from: [...from], to, error: error ?? null },
  )
}
