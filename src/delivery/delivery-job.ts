import type { Database } from '../db/database.ts'
import type { DeliveryStatus } from '../domain/delivery-states.ts'
import type { DeliveryRef } from './transition.ts'

/** A delivery, loaded for one attempt: the document, its content and the destination as they are now. */
export interface DeliveryJob {
  status: DeliveryStatus
  /** Planned when the document was received; the same for every attempt. */
  path: string
  /** True if the source system has replaced or deleted the document. */
  superseded: boolean
  /** True if a newer document has been delivered to the same path. */
  overtaken: boolean
  /** Times that an older document may have overwritten this one at its path. */
  overwrites: number
  workspaceId: string
  repoId: string
  docId: string
  compId: string
  erpObjectType: string | null
  erpObjectId: string | null
  arObject: string | null
  contentType: string
  receivedAt: Date
  content: { id: string; store: 'postgres' | 's3'; sizeBytes: number; appends: number }
  /** Null after an append, until a delivery has computed it. */
  sha256: Buffer | null
  destination: {
    id: string
    name: string
    connector: string
    config: Record<string, unknown>
    deleted: boolean
    downloadLinksVersion: number
  }
  credentialsSealed: Buffer
  /** Message of the last attempt, if it failed. */
  lastError: string | null
  lastErrorCode: string | null
  /**
   * Null, unless the connection of the delivery is inactive: then the settings of the active connections that also lead from the
   * repository to the destination.
   */
  activeRoutes: unknown[] | null
}

/** A destination as it was loaded, for a change that must not be applied to another version of it. */
export interface PinnedDestination {
  workspaceId: string
  id: string
  connector: string
  config: Record<string, unknown>
  credentialsSealed: Buffer
}

/** Loads a delivery by its key. @returns undefined if the document or its content is gone */
export const createLoadJob =
  (db: Database) =>
  async ({ documentId, destinationId }: DeliveryRef): Promise<DeliveryJob | undefined> => {
    const { rows } = await db
      .raw<{ rows: DeliveryJob[] }>(
        `
        select
          deliveries.status, deliveries.path, overwrites, superseded_at is not null as superseded,
          -- Only a superseded document can be overtaken. The index documents_by_doc_id finds the newer ones.
          case when superseded_at is not null then exists (
            select
            from documents as newer
            join deliveries as delivered on delivered.document_id = newer.id
            where newer.workspace_id = documents.workspace_id
              and newer.repo_id = documents.repo_id
              and newer.doc_id = documents.doc_id
              and newer.id > documents.id
              and delivered.destination_id = deliveries.destination_id
              and delivered.path = deliveries.path
              and delivered.status = 'delivered'
          ) else false end as overtaken,
          deliveries.workspace_id as "workspaceId", repo_id as "repoId", doc_id as "docId", comp_id as "compId",
          erp_object_type as "erpObjectType", erp_object_id as "erpObjectId", ar_object as "arObject",
          content_type as "contentType", received_at as "receivedAt", credentials_sealed as "credentialsSealed",
          case when appends = 0 then sha256 else appended_sha256 end as sha256,
          jsonb_build_object(
            'id', contents.id, 'store', contents.store, 'sizeBytes', documents.size_bytes, 'appends', appends) as content,
          jsonb_build_object(
            'id', destinations.id, 'name', destinations.name, 'connector', connector_type, 'config', config,
            'deleted', destinations.deleted_at is not null, 'downloadLinksVersion', download_links_version) as destination,
          deliveries.last_error as "lastError", last_error_code as "lastErrorCode",
          -- A connection that was deleted, or from which the destination was removed, does not hold what it has forwarded.
          case when exists (
            select
            from connections
            join connection_destinations on connection_id = connections.id
            where connections.id = deliveries.connection_id
              and destination_id = deliveries.destination_id
              and not is_active
          ) then array(
            select settings
            from connection_repositories
            join connection_destinations using (connection_id)
            join connections on connections.id = connection_id
            where repository_id = documents.repository_id
              and connection_destinations.destination_id = deliveries.destination_id
              and is_active
          ) end as "activeRoutes"
        from deliveries
        join documents on documents.id = deliveries.document_id
        join contents on contents.id = documents.content_id
        join destinations on destinations.id = deliveries.destination_id
        where deliveries.document_id = ?
          and deliveries.destination_id = ?
        `,
        [documentId, destinationId],
      )
      // A named statement is parsed and planned once per connection, which is half of its cost.
      .options({ name: 'load-delivery-job' })
    return rows[0]
  }

export type LoadJob = ReturnType<typeof createLoadJob>
