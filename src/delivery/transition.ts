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
      ...delivery,
      from: [...from],
      to,
      endedBy: endedBy ?? null,
      error: (endedBy && endErrors[endedBy]) ?? null,
    },
  )
}

/**
 * Fails a delivery whose time to live has ended before its next attempt: nothing is sent and no attempt is recorded. The destination is
 * then failing, as after a failed attempt.
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
 * Records that an operator cancelled the workflow of a delivery. A relay that deletes what the delivery needs also cancels the workflow,
 * after it has cancelled the delivery, which then stays as it is.
 * @returns the status of the delivery
 */
export const recordCancellation = async (db: Database, { documentId, destinationId }: DeliveryRef): Promise<DeliveryStatus> => {
  await transition(db, 'endWorkflow', { documentId, destinationId }, 'workflow_cancelled')
  return (await find(db, { documentId, destinationId }))?.status ?? 'cancelled'
}

/**
 * Records that an operator terminated a run of the workflow of a delivery, unless the reconciler has: the delivery goes on in another run then.
 * @returns the status of the delivery, unless it has failed because of that
 */
export const recordTermination = async (
  db: Database,
  { runId, ...delivery }: DeliveryRef & { runId?: string },
): Promise<DeliveryStatus | undefined> => {
  const before = await find(db, delivery)
  if (runId !== undefined && before?.stuckRun === runId) return before.status
  await transition(db, 'endWorkflow', delivery, 'workflow_terminated')
  const { status } = (await find(db, delivery)) ?? { status: 'cancelled' }
  return status === 'failed' ? undefined : status
}

/** Returns nothing if the workspace was deleted. */
const find = (
  db: Database,
  { documentId, destinationId }: DeliveryRef,
): Promise<{ status: DeliveryStatus; stuckRun: string | null } | undefined> =>
  db('deliveries').where({ document_id: documentId, destination_id: destinationId }).first('status', 'stuck_run as stuckRun')
