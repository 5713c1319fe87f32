import type { TargetAnswer } from '../connectors/connector.ts'
import type { ConnectorType } from '../domain/connector-type.ts'
import type { DeliveryStatus } from '../domain/status.ts'
import { newId } from '../ids.ts'
import type { Database } from './database.ts'
import { resendNewer } from './newer-deliveries.ts'
import type { Workflow } from './planned-documents.ts'
import { storable } from './storable.ts'

/** What may come of an attempt. `superseded`: nothing was sent, as a newer document lies at its place. */
export const attemptOutcomes = ['delivered', 'superseded', 'retryable', 'permanent', 'interrupted'] as const
export type AttemptOutcomeName = (typeof attemptOutcomes)[number]

/** Everything an attempt needs to know, as it is now. */
export interface Consignment {
  status: DeliveryStatus
  /** As planned: the same for every attempt. */
  path: string
  /** The source system has replaced or deleted it since. */
  superseded: boolean
  /** A newer document of the same name has been delivered to the same path. */
  overtaken: boolean
  /** How often an older document of the same name may have taken its place. */
  overwrites: number
  workspaceId: string
  repoId: string
  docId: string
  compId: string
  arObject: string | null
  contentType: string
  receivedAt: Date
  content: { id: string; store: 'postgres' | 's3'; sizeBytes: number; sha256: Buffer }
  destination: {
    id: string
    connector: ConnectorType
    config: unknown
    credentialsSealed: Buffer
    deleted: boolean
  }
}

interface Row {
  status: DeliveryStatus
  path: string
  superseded: boolean
  overtaken: boolean
  overwrites: number
  workspace_id: string
  repo_id: string
  doc_id: string
  comp_id: string
  ar_object: string | null
  content_type: string
  received_at: Date
  content_id: string
  store: 'postgres' | 's3'
  size_bytes: number
  sha256: Buffer
  destination_id: string
  connector_type: ConnectorType
  config: unknown
  credentials_sealed: Buffer
  destination_deleted: boolean
}

/** One attempt, as it is recorded. */
export interface AttemptRecord {
  documentId: string
  destinationId: string
  /** The bytes that were sent: others may have taken their place meanwhile. */
  contentId: string
  /** What the delivery counted when the attempt began. */
  overwrites: number
  /** What the delivery becomes. */
  status: 'retrying' | 'delivered' | 'failed'
  startedAt: Date
  durationMs: number
  outcome: AttemptOutcomeName
  /** Where it lies at the destination, once delivered. */
  location?: string
  error?: { code: string; message: string }
  answer?: TargetAnswer
  bytesSent?: number
}

export interface Recorded {
  status: DeliveryStatus
  superseded: boolean
}

export const createDeliveries = (db: Database) => ({
  // A statement that runs once a document or more carries a name: it is parsed and planned once a connection, which is half of its cost.

  /** Undefined where the document is gone. One row by its key. */
  load: async (documentId: string, destinationId: string): Promise<Consignment | undefined> => {
    const { rows } = await db
      .raw<{ rows: Row[] }>(
        `
      select
        deliveries.status, deliveries.path, deliveries.workspace_id, repo_id, doc_id, comp_id, ar_object, content_type, received_at,
        contents.id as content_id, contents.store, contents.size_bytes, contents.sha256,
        destinations.id as destination_id, connector_type, config, credentials_sealed,
        destinations.deleted_at is not null as destination_deleted, overwrites, superseded_at is not null as superseded,
        -- by the index that finds documents by docId, and only where there can be one
        case when superseded_at is not null then exists (
          select
          from documents as newer
          join deliveries as arrived on arrived.document_id = newer.id
          where newer.workspace_id = documents.workspace_id
            and newer.repo_id = documents.repo_id
            and newer.doc_id = documents.doc_id
            and newer.id > documents.id
            and arrived.destination_id = deliveries.destination_id
            and arrived.path = deliveries.path
            and arrived.status = 'delivered'
        ) else false end as overtaken
      from deliveries
      join documents on documents.id = deliveries.document_id
      join contents on contents.id = documents.content_id
      join destinations on destinations.id = deliveries.destination_id
      where deliveries.document_id = ?
        and deliveries.destination_id = ?
      `,
        [documentId, destinationId],
      )
      .options({ name: 'load-delivery' })
    const row = rows[0]
    return row && toConsignment(row)
  },

  /**
   * Records an attempt and what follows from it for the delivery and its destination; the document's status follows by a
   * trigger. What has been delivered stays delivered (and is to be sent again where the document was appended to meanwhile), what was cancelled meanwhile stays so unless it has arrived.
   * @returns the delivery's status now, and whether its document has been superseded
   */
  record: async (attempt: AttemptRecord): Promise<Recorded> => {
    const { rows } = await db
      .raw<{ rows: Recorded[] }>(recordAttempt, {
        id: newId(),
        documentId: attempt.documentId,
        destinationId: attempt.destinationId,
        contentId: attempt.contentId,
        overwrites: attempt.overwrites,
        status: attempt.status,
        outcome: attempt.outcome,
        location: attempt.location ?? null,
        startedAt: attempt.startedAt,
        durationMs: attempt.durationMs,
        errorCode: attempt.error?.code ?? null,
        // what a target says may be any text, and an attempt that cannot be recorded is made for ever
        errorMessage: attempt.error ? storable(attempt.error.message) : null,
        answer: attempt.answer ? JSON.stringify(attempt.answer, storableText) : null,
        bytesSent: attempt.bytesSent ?? null,
      })
      .options({ name: 'record-attempt' })
    return rows[0] ?? { status: 'delivered', superseded: false }
  },

  resendNewer: (delivery: { documentId: string; destinationId: string }, config: Workflow): Promise<void> =>
    resendNewer(db, delivery, config),

  /** Attempts are made again, though none was asked for by the API: an operator has signalled the workflow. */
  reopen: (documentId: string, destinationId: string): Promise<void> => become(db, { documentId, destinationId }, ['failed'], 'retrying'),

  /** No attempt will follow, whatever the last one said. */
  fail: (documentId: string, destinationId: string, error: string): Promise<void> =>
    become(db, { documentId, destinationId }, ['pending', 'retrying'], 'failed', error),

  /** Ends what has not been delivered. Does nothing to a delivery that has ended already. */
  cancel: (documentId: string, destinationId: string): Promise<void> =>
    become(db, { documentId, destinationId }, ['pending', 'held', 'retrying', 'failed'], 'cancelled'),
})

export type Deliveries = ReturnType<typeof createDeliveries>

const storableText = (_key: string, value: unknown) => (typeof value === 'string' ? storable(value) : value)

/** From one of these statuses to another one. The document is locked first, as by all who change its deliveries: none waits for another in turn. */
const become = async (
  db: Database,
  delivery: { documentId: string; destinationId: string },
  from: DeliveryStatus[],
  to: DeliveryStatus,
  error?: string,
): Promise<void> => {
  await db.raw(
    `
    with document as (
      select id from documents where id = :documentId for no key update
    )
    update deliveries
    set status = :to, last_error = coalesce(:error, last_error)
    from document
    where document_id = document.id
      and destination_id = :destinationId
      and status = any (:from)
    `,
    { ...delivery, from, to, error: error ?? null },
  )
}

// The destination's row is written only when it says something new: it is one row for every document that goes there.
const recordAttempt = `
  with document as (
    -- locked, so that an append either comes before and is seen here, or after and sees what is written here
    select content_id, superseded_at is not null as superseded from documents where id = :documentId for no key update
  ), delivery as (
    update deliveries
    set
      attempts = attempts + 1,
      status = case
        when status = 'cancelled' and :status <> 'delivered' then status
        -- its workflow was terminated meanwhile: nobody would go on
        when status = 'failed' and :status = 'retrying' then status
        -- what has arrived is no longer what the document is, or may lie there no longer
        when :status = 'delivered' and (document.content_id <> :contentId or overwrites <> :overwrites::integer) then 'retrying'
        else :status
      end,
      location = coalesce(:location, location),
      delivered_at = case
        when :status = 'delivered' and document.content_id = :contentId and overwrites = :overwrites::integer then now()
      end,
      last_error = :errorMessage
    from document
    where document_id = :documentId
      and destination_id = :destinationId
      and status <> 'delivered'
    returning deliveries.workspace_id, attempts, status, superseded
  ), attempt as (
    insert into delivery_attempts (
      id, workspace_id, document_id, destination_id, number, started_at, duration_ms, outcome, error_code, error_message, answer,
      bytes_sent)
    select
      :id, workspace_id, :documentId, :destinationId, attempts, :startedAt::timestamptz, :durationMs::integer, :outcome, :errorCode, :errorMessage,
      :answer::jsonb, :bytesSent::bigint
    from delivery
  ), destination as (
    update destinations
    set
      status = case when delivery.status = 'failed' then 'failing' else 'connected' end,
      last_error = case when delivery.status = 'failed' then :errorMessage end,
      last_delivered_at = case when delivery.status = 'delivered' then now() else last_delivered_at end
    from delivery
    where destinations.id = :destinationId
      and (
        (delivery.status = 'failed' and (destinations.status <> 'failing' or last_error is distinct from :errorMessage))
        or (delivery.status = 'delivered' and :outcome = 'delivered'
          and (destinations.status <> 'connected' or last_delivered_at is null or last_delivered_at < now() - interval '1 minute'))
      )
  )
  select status, superseded from delivery
`

const toConsignment = (row: Row): Consignment => ({
  status: row.status,
  path: row.path,
  superseded: row.superseded,
  overtaken: row.overtaken,
  overwrites: row.overwrites,
  workspaceId: row.workspace_id,
  repoId: row.repo_id,
  docId: row.doc_id,
  compId: row.comp_id,
  arObject: row.ar_object,
  contentType: row.content_type,
  receivedAt: row.received_at,
  content: { id: row.content_id, store: row.store, sizeBytes: row.size_bytes, sha256: row.sha256 },
  destination: {
    id: row.destination_id,
    connector: row.connector_type,
    config: row.config,
    credentialsSealed: row.credentials_sealed,
    deleted: row.destination_deleted,
  },
})
