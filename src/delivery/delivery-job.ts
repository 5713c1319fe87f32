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
  /** The attempt under way: the one that was to be started, or an earlier one whose worker was lost. Null if none was started. */
  attemptId: string | null
  /** Lost attempts of the same activity that have been recorded. */
  lostAttempts: number
}

/** A destination as it was loaded, for a change that must not be applied to another version of it. */
export interface PinnedDestination {
  workspaceId: string
  id: string
  connector: string
  config: Record<string, unknown>
  credentialsSealed: Buffer
}

// An attempt of a delivery in one of these statuses may send something.
const startable: readonly DeliveryStatus[] = ['pending', 'retrying', 'failed']

/**
 * Loads a delivery by its key, and marks the attempt as started. The mark stays until the attempt is recorded: one that is found here
 * belongs to an attempt whose worker was lost, and is not replaced.
 * @param attemptId of the attempt to start; undefined if none is to be made
 * @returns undefined if the document or its content is gone
 */
export const createLoadJob =
  (db: Database) =>
  async ({ documentId, destinationId }: DeliveryRef, attemptId?: string): Promise<DeliveryJob | undefined> => {
    const { rows } = await db
      .raw<{ rows: DeliveryJob[] }>(
        `
        with job as (
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
            deliveries.last_error as "lastError", last_error_code as "lastErrorCode", lost_attempts as "lostAttempts",
            attempt_id,
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
          where deliveries.document_id = :documentId
            and deliveries.destination_id = :destinationId
        ), started as (
          update deliveries
          set attempt_id = :attemptId
          from job
          where :attemptId::text is not null
            and document_id = :documentId
            and destination_id = :destinationId
            and deliveries.attempt_id is null
            and deliveries.status = any (:startable)
          returning deliveries.attempt_id
        )
        select job.*, coalesce(started.attempt_id, job.attempt_id) as "attemptId"
        from job
        left join started on true
        `,
        { documentId, destinationId, attemptId: attemptId ?? null, startable: [...startable] },
      )
      // A named statement is parsed and planned once per connection, which is half of its cost.
      .options({ name: 'load-delivery-job' })
    return rows[0]
  }

export type LoadJob = ReturnType<typeof createLoadJob>

/** Removes the mark of an attempt that was started and will not be made. */
export const withdrawAttempt = async (db: Database, { documentId, destinationId }: DeliveryRef, attemptId: string): Promise<void> => {
  await db('deliveries')
    .where({ document_id: documentId, destination_id: destinationId, attempt_id: attemptId })
    .update({ attempt_id: null })
}
