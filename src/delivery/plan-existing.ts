import { enrichedData } from '../archive/enriched-data.ts'
import type { Transaction } from '../db/database.ts'
import { asColumns } from '../domain/casing.ts'
import { planDeliveries, type RoutedDocument } from '../domain/fan-out.ts'
import { routedColumns, routeObject, routesOf, type StoredRoute } from './route.ts'

interface Found extends RoutedDocument {
  routes: StoredRoute[]
  /** False if an enrichment may still find something. */
  isFinal: boolean
  /** When the delivery begins, with microseconds. */
  due: string
}

/**
 * Plans the delivery of a document to a destination that was connected to its repository after the document was received. The dispatcher
 * begins it, after the wait for an enrichment, unless only inactive connections lead there: then it is held. The document must be locked.
 * @returns false if no connection delivers the document there, or if it is planned already, was replaced or deleted, or has no content
 */
export const planExisting = async (
  trx: Transaction,
  { documentId, destinationId, bulkRetryId }: { documentId: string; destinationId: string; bulkRetryId: string },
): Promise<boolean> => {
  const { rows } = await trx.raw<{ rows: Found[] }>(
    `
    select ${routedColumns}, is_final as "isFinal",
      greatest(now(), waits_until)::text as due,
      array(
        select ${routeObject}
        from connection_repositories
        join connections on connections.id = connection_repositories.connection_id
        join connection_destinations on connection_destinations.connection_id = connections.id
        where connection_repositories.repository_id = documents.repository_id
          and connection_destinations.destination_id = destinations.id
        order by connections.id
      ) as routes
    from documents
    join destinations on destinations.id = :destinationId
    ${enrichedData}
    where documents.id = :documentId
      and content_id is not null
      and superseded_at is null
      and deleted_at is null
      and not exists (
        select
        from deliveries
        where deliveries.document_id = :documentId
          and deliveries.destination_id = :destinationId
      )
    `,
    { documentId, destinationId },
  )
  const [found] = rows
  const [planned] = found ? planDeliveries(routesOf(found.routes), found, found.isFinal) : []
  if (!found || !planned) return false
  const { connectionId, status, path } = planned
  const due = status === 'pending' ? found.due : null
  await trx('deliveries').insert({
    ...asColumns({ documentId, destinationId, connectionId, status, path, bulkRetryId }),
    workspace_id: trx('documents').select('workspace_id').where({ id: documentId }),
    next_attempt_at: due,
    begin_as: 'delivery',
    begin_at: due,
  })
  // A document that its home did not have when it was looked at.
  await trx.raw(
    `
    insert into home_waiting (document_id, repository_id, due_at)
    select documents.id, repository_id, now() + home_after_days * interval '1 day'
    from documents
    join repositories on repositories.id = repository_id
    where documents.id = :documentId
      and home_destination_id = :destinationId
    on conflict (document_id) do nothing
    `,
    { documentId, destinationId },
  )
  // The trigger of deliveries does this when a status changes.
  await trx.raw(
    `
    update documents
    set
      status = derive_document_status(id), is_unconnected = false, was_routed = origin = 'upstream',
      acknowledged_at = case when status = derive_document_status(id) then acknowledged_at end
    where id = :documentId
    `,
    { documentId },
  )
  return true
}
