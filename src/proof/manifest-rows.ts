import { holdsOf, type LegalHold } from '../archive/legal-holds.ts'
import { dayMs, endOfDay, startOfDay } from '../base/day.ts'
import { idPrefixAt } from '../base/ids.ts'
import type { Database } from '../db/database.ts'
import { columnsAs } from '../domain/casing.ts'
import type { DeliveryStatus, DocumentStatus } from '../domain/delivery-states.ts'
import type { Receipt } from '../domain/receipt.ts'

// What a manifest is made of: rows of the day, in pages, each read from an index.

const hourMs = 3_600_000

const boundsOf = (day: string) => ({ start: startOfDay(day), end: endOfDay(day) })

/** What the manifest of a day says about the one before. */
export interface PreviousManifest {
  day: string
  /** Hex. */
  sha256: string
  /** See the column `manifests.database`. */
  database: string | null
}

export interface ManifestSubject {
  installationId: string
  workspaceId: string
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  day: string
  /** Null for the first manifest of the workspace. */
  previous: PreviousManifest | null
  database: string | null
  madeAt: Date
}

export interface DocumentRow {
  id: string
  repoId: string
  docId: string
  receivedAt: Date
  /** The same time with its microseconds. */
  receivedExactly: string
  sizeBytes: number
  sha256: string | null
  status: DocumentStatus
  isKept: boolean
  supersededAt: Date | null
  supersededBy: string | null
  legalHolds: string[]
}

export interface DeliveryRow {
  documentId: string
  destinationId: string
  kind: string
  status: DeliveryStatus
  statusSince: Date
  attempts: number
  receipt: Receipt | null
}

const rowsPerPage = 2_000

/**
 * The documents whose ids were made on the day, in the order of their receipt. A request is received when it begins: the index is read from a day
 * before, for uploads that last over midnight.
 */
export async function* documentPages(db: Database, { workspaceId, day }: ManifestSubject): AsyncGenerator<DocumentRow[], void, undefined> {
  const { start, end } = boundsOf(day)
  let after = { time: new Date(start.getTime() - dayMs).toISOString(), id: '' }
  for (;;) {
    const { rows } = await db.raw<{ rows: DocumentRow[] }>(
      `
      with page as (
        select
          id, workspace_id, repo_id, doc_id, erp_object_type, erp_object_id, received_at, size_bytes, status, content_id, superseded_at, superseded_by
        from documents
        where workspace_id = :workspaceId
          and (received_at, id) > (:afterTime::timestamptz, :afterId)
          and received_at < :before::timestamptz
          -- Concatenated, so that the index of the workspace is read and not the one of all documents.
          and id || '' >= :first
          and id || '' < :next
        order by received_at, id
        limit :limit
      )
      select
        page.id, repo_id as "repoId", doc_id as "docId", received_at as "receivedAt", received_at::text as "receivedExactly",
        page.size_bytes as "sizeBytes", page.status, content_id is not null as "isKept",
        -- What was replaced later is in the manifest of that day.
        case when superseded_at < :end then superseded_at end as "supersededAt",
        case when superseded_at < :end then superseded_by end as "supersededBy",
        array(select distinct hold_id from (${holdsOf('page')}) as held order by hold_id) as "legalHolds",
        encode(case when appends = 0 then sha256 else appended_sha256 end, 'hex') as sha256
      from page
      left join contents on contents.id = content_id
      order by received_at, page.id
      `,
      {
        workspaceId,
        afterTime: after.time,
        afterId: after.id,
        // Clocks differ.
        before: new Date(end.getTime() + hourMs),
        first: idPrefixAt(start),
        next: idPrefixAt(end),
        end,
        limit: rowsPerPage,
      },
    )
    if (rows.length > 0) yield rows
    const last = rows.at(-1)
    if (!last || rows.length < rowsPerPage) return
    after = { time: last.receivedExactly, id: last.id }
  }
}

export const deliveriesOf = async (db: Database, documents: DocumentRow[]): Promise<DeliveryRow[]> => {
  const { rows } = await db.raw<{ rows: DeliveryRow[] }>(
    `
    select
      document_id as "documentId", destination_id as "destinationId", connector_type as kind, deliveries.status,
      status_since as "statusSince", attempts,
      -- A later one is in the manifest of its day.
      case when late_receipt_at is null then receipt end as receipt
    from deliveries
    join destinations on destinations.id = destination_id
    where document_id = any(:ids)
    order by document_id, destination_id
    `,
    { ids: documents.map(({ id }) => id) },
  )
  return rows
}

export type ReceiptRow = Pick<DeliveryRow, 'documentId' | 'destinationId' | 'kind'> & { receipt: Receipt }

/** The receipts that were recorded on the day for documents of earlier days, in the order in which they were recorded. */
export async function* receiptPages(db: Database, { workspaceId, day }: ManifestSubject): AsyncGenerator<ReceiptRow[], void, undefined> {
  const { start, end } = boundsOf(day)
  let after = { time: start.toISOString(), documentId: '', destinationId: '' }
  for (;;) {
    const { rows } = await db.raw<{ rows: (ReceiptRow & { recordedExactly: string })[] }>(
      `
      with page as materialized (
        select document_id, destination_id, late_receipt_at, receipt
        from deliveries
        where workspace_id = :workspaceId
          and (late_receipt_at, document_id, destination_id) > (:time::timestamptz, :documentId, :destinationId)
          and late_receipt_at < :end
        order by late_receipt_at, document_id, destination_id
        limit :limit
      )
      select
        document_id as "documentId", destination_id as "destinationId", connector_type as kind, receipt,
        late_receipt_at::text as "recordedExactly"
      from page
      join destinations on destinations.id = destination_id
      order by late_receipt_at, document_id, destination_id
      `,
      { workspaceId, ...after, end, limit: rowsPerPage },
    )
    if (rows.length > 0) yield rows
    const last = rows.at(-1)
    if (!last || rows.length < rowsPerPage) return
    after = { time: last.recordedExactly, documentId: last.documentId, destinationId: last.destinationId }
  }
}

export type HoldRow = Pick<LegalHold, 'id' | 'scope' | 'repoId' | 'docId' | 'createdAt'>

/** The holds that are set at the close, in the order in which they were set. */
export async function* holdPages(db: Database, { workspaceId }: ManifestSubject): AsyncGenerator<HoldRow[], void, undefined> {
  let after = ''
  for (;;) {
    const rows: HoldRow[] = await db('legal_holds')
      .where({ workspace_id: workspaceId })
      .where('id', '>', after)
      .orderBy('id')
      .limit(rowsPerPage)
      .select(columnsAs('id, scope, repo_id, doc_id, created_at'))
    if (rows.length > 0) yield rows
    if (rows.length < rowsPerPage) return
    after = rows.at(-1)!.id
  }
}

export type SupersededRow = Pick<DocumentRow, 'id' | 'repoId' | 'docId' | 'supersededBy'> & {
  supersededAt: Date
  supersededExactly: string
}

/** The documents of earlier days that were replaced or deleted on the day, in the order in which that happened. */
export async function* supersededPages(
  db: Database,
  { workspaceId, day }: ManifestSubject,
): AsyncGenerator<SupersededRow[], void, undefined> {
  const { start, end } = boundsOf(day)
  // Before every id.
  let after = { time: start.toISOString(), id: '' }
  for (;;) {
    const { rows } = await db.raw<{ rows: SupersededRow[] }>(
      `
      select
        id, repo_id as "repoId", doc_id as "docId", superseded_by as "supersededBy", superseded_at as "supersededAt",
        superseded_at::text as "supersededExactly"
      from documents
      where workspace_id = :workspaceId
        and (superseded_at, id) > (:afterTime::timestamptz, :afterId)
        and superseded_at < :end
        -- Concatenated: see above.
        and id || '' < :first
      order by superseded_at, id
      limit :limit
      `,
      { workspaceId, afterTime: after.time, afterId: after.id, end, first: idPrefixAt(start), limit: rowsPerPage },
    )
    if (rows.length > 0) yield rows
    const last = rows.at(-1)
    if (!last || rows.length < rowsPerPage) return
    after = { time: last.supersededExactly, id: last.id }
  }
}
