import type { Database, Transaction } from '../db/database.ts'
import { endErrors, transitions, type DeliveryEnd, type DeliveryOperation, type DeliveryStatus } from '../domain/delivery-states.ts'

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
  endedBy?: DeliveryEnd,
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
      ended_by = :endedBy,
      last_error = coalesce(:error, last_error),
      last_error_code = case when :error::text is null then last_error_code end
    from document
    where document_id = document.id
      and destination_id = :destinationId
      and status = any (:from)
    `,
    {
      documentId: delivery.documentId,
      destinationId: delivery.destinationId,
      from: [...from],
      to,
      endedBy: endedBy ?? null,
      error: (endedBy && endErrors[endedBy]) ?? null,
    },
  )
}

/**
 * Fails a delivery whose time to live has ended before its next attempt: nothing is sent and no attempt is recorded. The destination is
 * failing from then on, as after a failed attempt.
 */
export const expire = async (db: Database, { documentId, destinationId }: DeliveryRef): Promise<void> => {
  const { from, to } = transitions.expire
  const endedBy: DeliveryEnd = 'retry_ttl_seconds'
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
      returning status
    )
    update destinations
    set status = 'failing', updated_at = now()
    from delivery
    where id = :destinationId
      and destinations.status <> 'failing'
    `,
    { documentId, destinationId, from: [...from], to, endedBy },
  )
}

/**
 * Records that an operator cancelled the workflow of a delivery. A relay that deletes what the delivery needs cancels the workflow, too, after
 * it has cancelled the delivery, which then stays as it is.
 * @returns the status of the delivery
 */
export const recordCancellation = async (db: Database, { documentId, destinationId }: DeliveryRef): Promise<DeliveryStatus> => {
  await transition(db, 'endWorkflow', { documentId, destinationId }, 'workflow_cancelled')
  const found: { status: DeliveryStatus } | undefined = await db('deliveries')
    .where({ document_id: documentId, destination_id: destinationId })
    .first('status')
  // The workspace was deleted.
  return found?.status ?? 'cancelled'
}

// Much longer than the workflow of a document takes to learn that one of its deliveries has ended.
const reconcilerMs = 600_000

/**
 * Records that the workflow of a delivery was terminated, unless the reconciler has just checked the delivery: it may have ended a workflow
 * that was stuck, and started the delivery again. If an operator has ended the workflow, the reconciler records that in one of its next
 * runs.
 */
export const recordTermination = async (db: Database, delivery: DeliveryRef): Promise<void> => {
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
  if (rows.length === 0) await transition(db, 'endWorkflow', delivery, 'workflow_terminated')
}
