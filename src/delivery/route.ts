import { enrichedData } from '../archive/enriched-data.ts'
import { metadataSelection } from '../archive/metadata.ts'
import type { Database } from '../db/database.ts'
import { connectionSettings } from '../domain/connection-settings.ts'
import { planDeliveries, type Route, type RoutedDocument } from '../domain/fan-out.ts'
import type { DeliveryRef } from './transition.ts'

/** SQL: the columns of a `RoutedDocument`, of `documents` and `enrichedData`. */
export const routedColumns = `
        repo_id as "repoId", doc_id as "docId", comp_id as "compId", content_type as "contentType", size_bytes as "sizeBytes",
        ${metadataSelection}, fields,
        received_at as "receivedAt"`

/** SQL: a `StoredRoute` of `connections` and `destinations`. */
export const routeObject = `jsonb_build_object(
            'connectionId', connections.id, 'isActive', is_active, 'settings', settings,
            'destination', jsonb_build_object('id', destinations.id, 'name', destinations.name, 'connector', connector_type))`

export type StoredRoute = Omit<Route, 'settings'> & { settings: unknown }

export const routesOf = (routes: StoredRoute[]): Route[] =>
  routes.map((route) => ({ ...route, settings: connectionSettings(route.settings) }))

/** The routes from the repository of a document to a destination. */
interface Found extends RoutedDocument {
  connectionId: string
  routes: StoredRoute[]
  /** False if an enrichment may still find something. */
  isFinal: boolean
}

/** Returns true if a delivery was removed because the filter of its connection has passed the document over, which is still here. */
export const wasPassedOver = async (db: Database, { documentId, destinationId }: DeliveryRef): Promise<boolean> =>
  (await db('documents')
    .where({ id: documentId })
    .whereNotExists(db('deliveries').where({ document_id: documentId, destination_id: destinationId }))
    .first('id')) !== undefined

// The reconciler looks at a delivery that nothing has begun by then: its enrichment did not end.
const graceMinutes = 60

/**
 * Decides whether a document that was planned for a destination goes there, if the filter of its connection needs business data. A delivery
 * that does not is removed, as if the filter had passed the document over when it arrived. Another connection may lead there.
 */
export const decideRoute = (
  db: Database,
  { documentId, destinationId }: DeliveryRef,
): Promise<'send' | 'otherConnection' | 'awaitsData' | 'doesNotMatch'> =>
  db.transaction(async (trx) => {
    await trx('documents').select('id').where({ id: documentId }).forNoKeyUpdate()
    const { rows } = await trx.raw<{ rows: Found[] }>(
      `
      select
        deliveries.connection_id as "connectionId", ${routedColumns},
        is_final as "isFinal",
        array(
          select ${routeObject}
          from connections
          join destinations on destinations.id = deliveries.destination_id
          where connections.id = deliveries.connection_id
            or connections.id in (
              select connection_id
              from connection_repositories
              join connection_destinations using (connection_id)
              where repository_id = documents.repository_id
                and connection_destinations.destination_id = deliveries.destination_id
            )
          order by connections.id
        ) as routes
      from deliveries
      join documents on documents.id = deliveries.document_id
      ${enrichedData}
      where deliveries.document_id = :documentId
        and deliveries.destination_id = :destinationId
      `,
      { documentId, destinationId },
    )
    const [found] = rows
    const own = found?.routes.find(({ connectionId }) => connectionId === found.connectionId)
    // The connection was deleted at this moment.
    if (!found || !own) return 'send'
    const { connectionId, ...document } = found
    const [planned] = planDeliveries(routesOf(found.routes), document, found.isFinal)
    const delivery = () => trx('deliveries').where({ document_id: documentId, destination_id: destinationId })
    if (!planned) {
      await delivery().delete()
      await trx('documents')
        .where({ id: documentId })
        .update({ status: trx.raw('derive_document_status(id)') })
      return 'doesNotMatch'
    }
    if (!planned.isDecided) {
      await delivery().update({
        waiting: 'data',
        attempt_id: null,
        begin_at: null,
        next_attempt_at: trx.raw(
          `(
            select greatest(now(), max(ends_at)) + ? * interval '1 minute'
            from document_enrichments
            where document_id = deliveries.document_id
          )`,
          [graceMinutes],
        ),
      })
      return 'awaitsData'
    }
    if (planned.connectionId === connectionId) return 'send'
    await delivery().update({ connection_id: planned.connectionId, path: planned.path })
    return 'otherConnection'
  })
