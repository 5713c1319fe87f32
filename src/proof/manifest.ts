import { idPrefixAt } from '../base/ids.ts'
import { visibleLine } from '../base/text.ts'
import { version } from '../base/version.ts'
import type { Database } from '../db/database.ts'
import type { DeliveryStatus, DocumentStatus } from '../domain/delivery-states.ts'
import type { Receipt } from '../domain/receipt.ts'

// A manifest is a file of JSON lines: a header, the documents that were received on that day, receipts of documents that were received before,
// the totals of each repository, and the end. The same rows give the same bytes.

const manifestFormat = 'document-relay/manifest/1'

const dayMs = 86_400_000
const hourMs = 3_600_000

/** The bounds of a day in UTC. */
const boundsOf = (day: string) => {
  const start = new Date(`${day}T00:00:00.000Z`)
  return { start, end: new Date(start.getTime() + dayMs) }
}

/** Returns the day (UTC) of a time. */
export const dayOf = (time: Date): string => time.toISOString().slice(0, 'yyyy-mm-dd'.length)

/** Returns the day after another one. */
export const dayAfter = (day: string): string => dayOf(boundsOf(day).end)

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
  /** The longest that an attempt may take. */
  attemptMaxMs: number
}

/** Counts what a manifest contains, while its lines are read. */
export interface ManifestCounts {
  documents: number
  receipts: number
}

interface DocumentRow {
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
}

interface DeliveryRow {
  documentId: string
  destinationId: string
  kind: string
  status: DeliveryStatus
  statusSince: Date
  attempts: number
  receipt: Receipt | null
}

/** What a target calls an object, without the free text of targets: paths, replies, and ids that a webhook's receiver chooses. */
const targetKeys = ['status', 'etag', 'version_id', 'item_id', 'file_id', 'doc_id', 'message_id', 'enclosed']

const receiptIn = ({ sha256, size_bytes, attempt_id, answered_at, target }: Receipt) => ({
  sha256,
  size_bytes,
  attempt_id,
  answered_at,
  target: Object.fromEntries(targetKeys.flatMap((key) => (target[key] === undefined ? [] : [[key, target[key]]]))),
})

const isoOf = (time: Date | null): string | null => time && time.toISOString()

/** Returns the lines of a manifest, some hundreds at a time, each with its line feed. */
export async function* manifestOf(db: Database, subject: ManifestSubject, counts: ManifestCounts): AsyncGenerator<Buffer, void, undefined> {
  const totals = new Map<string, Totals>()
  yield linesOf([headerOf(subject)])
  for await (const rows of documentPages(db, subject)) {
    counts.documents += rows.length
    const byDocument = Map.groupBy(await deliveriesOf(db, rows), ({ documentId }) => documentId)
    for (const row of rows) countIn(totals, row)
    yield linesOf(rows.map((row) => documentLine(row, byDocument.get(row.id) ?? [])))
  }
  for await (const rows of receiptPages(db, subject)) {
    counts.receipts += rows.length
    yield linesOf(rows.map(receiptLine))
  }
  const ofRepositories = [...totals].toSorted(([one], [other]) => (one < other ? -1 : 1))
  yield linesOf([
    ...ofRepositories.map(([repoId, counted]) => ({ type: 'repository', repo_id: repoId, ...counted })),
    { type: 'end', ...counts },
  ])
}

// A manifest may be read in a terminal.
const linesOf = (values: object[]): Buffer => Buffer.from(values.map((value) => `${visibleLine(JSON.stringify(value))}\n`).join(''))

const headerOf = ({ installationId, workspace, day, previous, database, madeAt }: ManifestSubject) => ({
  type: 'manifest',
  format: manifestFormat,
  relay_version: version,
  installation_id: installationId,
  workspace,
  day,
  previous: previous && { day: previous.day, sha256: previous.sha256 },
  database,
  database_changed: previous !== null && previous.database !== database,
  made_at: madeAt.toISOString(),
})

const documentLine = (row: DocumentRow, deliveries: DeliveryRow[]) => ({
  type: 'document',
  doc_id: row.docId,
  repo_id: row.repoId,
  document_id: row.id,
  received_at: row.receivedAt.toISOString(),
  size_bytes: row.sizeBytes,
  sha256: row.sha256,
  status: row.status,
  content_retained: row.isKept,
  superseded_at: isoOf(row.supersededAt),
  deliveries: deliveries.map(({ destinationId, kind, status, statusSince, attempts, receipt }) => ({
    destination_id: destinationId,
    kind,
    status,
    status_since: statusSince.toISOString(),
    attempts,
    receipt: receipt && receiptIn(receipt),
  })),
})

const receiptLine = ({ documentId, destinationId, kind, receipt }: ReceiptRow) => ({
  type: 'receipt',
  document_id: documentId,
  destination_id: destinationId,
  kind,
  receipt: receiptIn(receipt),
})

type Totals = { documents: number; size_bytes: number } & Partial<Record<DocumentStatus, number>>

const countIn = (totals: Map<string, Totals>, { repoId, sizeBytes, status }: DocumentRow): void => {
  const counted = totals.get(repoId) ?? { documents: 0, size_bytes: 0, delivered: 0, pending: 0, retrying: 0, failed: 0, discarded: 0 }
  counted.documents += 1
  counted.size_bytes += sizeBytes
  counted[status] = (counted[status] ?? 0) + 1
  totals.set(repoId, counted)
}

const rowsPerPage = 2_000

/**
 * The documents whose ids were made on the day, in the order of their receipt. A request is received when it begins: the index is read from a day
 * before, for uploads that last over midnight.
 */
async function* documentPages(db: Database, { workspaceId, day }: ManifestSubject): AsyncGenerator<DocumentRow[], void, undefined> {
  const { start, end } = boundsOf(day)
  let after = { time: new Date(start.getTime() - dayMs).toISOString(), id: '' }
  for (;;) {
    const { rows } = await db.raw<{ rows: DocumentRow[] }>(
      `
      with page as (
        select id, repo_id, doc_id, received_at, size_bytes, status, content_id, superseded_at
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
        page.size_bytes as "sizeBytes", page.status, content_id is not null as "isKept", superseded_at as "supersededAt",
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
        limit: rowsPerPage,
      },
    )
    if (rows.length > 0) yield rows
    const last = rows.at(-1)
    if (!last || rows.length < rowsPerPage) return
    after = { time: last.receivedExactly, id: last.id }
  }
}

const deliveriesOf = async (db: Database, documents: DocumentRow[]): Promise<DeliveryRow[]> => {
  const { rows } = await db.raw<{ rows: DeliveryRow[] }>(
    `
    select
      document_id as "documentId", destination_id as "destinationId", connector_type as kind, deliveries.status,
      status_since as "statusSince", attempts, receipt
    from deliveries
    join destinations on destinations.id = destination_id
    where document_id = any(:ids)
    order by document_id, destination_id
    `,
    { ids: documents.map(({ id }) => id) },
  )
  return rows
}

type ReceiptRow = Pick<DeliveryRow, 'documentId' | 'destinationId' | 'kind'> & { receipt: Receipt }

// A worker repeats the record of an attempt for two minutes.
const recordMaxMs = 10 * 60_000

/** The receipts of the day for documents of earlier days, in the order in which their attempts were started. */
async function* receiptPages(
  db: Database,
  { workspaceId, day, attemptMaxMs }: ManifestSubject,
): AsyncGenerator<ReceiptRow[], void, undefined> {
  const { start, end } = boundsOf(day)
  let after = idPrefixAt(new Date(start.getTime() - attemptMaxMs - recordMaxMs))
  for (;;) {
    const { rows } = await db.raw<{ rows: (Omit<ReceiptRow, 'receipt'> & { attemptId: string; receipt: Receipt | null })[] }>(
      `
      with page as materialized (
        select id, document_id, destination_id
        from delivery_attempts
        where workspace_id = :workspaceId
          and id > :after
          and id < :next
          and outcome = 'delivered'
          and document_id < :first
        order by id
        limit :limit
      )
      select
        page.id as "attemptId", page.document_id as "documentId", page.destination_id as "destinationId", connector_type as kind,
        case when receipt ->> 'attempt_id' = page.id then receipt end as receipt
      from page
      -- With offset 0, each is looked up: the planner would read all deliveries instead.
      left join lateral (
        select receipt
        from deliveries
        where deliveries.document_id = page.document_id
          and deliveries.destination_id = page.destination_id
        offset 0
      ) as delivery on true
      left join destinations on destinations.id = page.destination_id
      order by page.id
      `,
      { workspaceId, after, next: idPrefixAt(end), first: idPrefixAt(start), limit: rowsPerPage },
    )
    const isOfDay = ({ answered_at: at }: Receipt) => at >= start.toISOString() && at < end.toISOString()
    const found = rows.flatMap(({ receipt, ...row }) => (receipt && isOfDay(receipt) ? [{ ...row, receipt }] : []))
    if (found.length > 0) yield found
    const last = rows.at(-1)
    if (!last || rows.length < rowsPerPage) return
    after = last.attemptId
  }
}
