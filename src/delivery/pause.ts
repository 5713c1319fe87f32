import type { Database } from '../db/database.ts'
import { connectionSettings } from '../domain/connection-settings.ts'
import { transitions } from '../domain/delivery-states.ts'
import { passesFilter } from '../domain/fan-out.ts'
import type { DeliveryJob } from './delivery-job.ts'
import type { DeliveryRef } from './transition.ts'

/** Returns true if the connection of a delivery is inactive, and no other active connection leads the document to the destination. */
export const isPaused = ({ activeRoutes, ...job }: DeliveryJob): boolean => {
  const document = { ...job, sizeBytes: job.content.sizeBytes }
  return activeRoutes !== null && !activeRoutes.some((settings) => passesFilter(connectionSettings(settings), document))
}

/**
 * Holds a delivery whose connection is inactive. The connection is locked first, as by a release: its activation either comes first, and
 * nothing is held, or comes later and finds the held delivery.
 * @returns false if the connection has been activated, or the delivery has ended
 */
export const hold = async (db: Database, { documentId, destinationId }: DeliveryRef): Promise<boolean> => {
  const { from, to } = transitions.hold
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `
    with connection as (
      select connections.id
      from deliveries
      join connections on connections.id = connection_id
      where document_id = :documentId
        and destination_id = :destinationId
        and not is_active
      for share of connections
    ), document as (
      select documents.id, connection.id as connection_id
      from connection
      join documents on documents.id = :documentId
      for no key update of documents
    )
    update deliveries
    set status = :to, attempt_id = null, lost_attempts = 0
    from document
    where document_id = document.id
      and destination_id = :destinationId
      and deliveries.connection_id = document.connection_id
      and status = any (:from)
    `,
    { documentId, destinationId, from: [...from], to },
  )
  return rowCount > 0
}
