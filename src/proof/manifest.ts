import { visibleLine } from '../base/text.ts'
import { version } from '../base/version.ts'
import type { Database } from '../db/database.ts'
import { snakeCased } from '../domain/casing.ts'
import type { DocumentStatus } from '../domain/delivery-states.ts'
import type { Receipt } from '../domain/receipt.ts'
import {
  deliveriesOf,
  documentPages,
  holdPages,
  receiptPages,
  supersededPages,
  type DeliveryRow,
  type DocumentRow,
  type HoldRow,
  type ManifestSubject,
  type ReceiptRow,
  type SupersededRow,
} from './manifest-rows.ts'

// A manifest is a file of JSON lines: a header, the legal holds, the documents that were received on that day, receipts of documents that were
// received before, such documents that were replaced or deleted, the totals of each repository, and the end. The same rows give the same bytes.

const manifestFormat = 'document-relay/manifest/1'

/** Counts what a manifest contains, while its lines are read. */
export interface ManifestCounts {
  legalHolds: number
  documents: number
  receipts: number
  superseded: number
}

/** An id that a target makes. Anything else is the text of a person or a program. */
const madeId = /^[\x21-\x7e]{1,256}$/

/**
 * What a target calls an object, and the form that it has. Other text of targets is left out, such as paths and replies; of a webhook also what
 * has this form, because its receiver chooses it.
 */
const targetForms: Readonly<Record<string, RegExp>> = {
  status: /^[0-9]{3}$/,
  // An entity-tag of RFC 9110.
  etag: /^(?:W\/)?"[\x21\x23-\x7e]{0,256}"$/,
  version_id: madeId,
  item_id: madeId,
  file_id: madeId,
  doc_id: madeId,
  message_id: /^<[\x21-\x3b\x3d\x3f-\x7e]{1,320}>$/,
  enclosed: /^(?:attachment|link)$/,
}

const targetIn = (kind: string, target: Receipt['target']) =>
  Object.fromEntries(
    Object.entries(targetForms).flatMap(([name, form]) => {
      const value = target[name]
      const isShown = value !== undefined && form.test(String(value)) && (kind !== 'webhook' || name === 'status')
      return isShown ? [[name, value]] : []
    }),
  )

const receiptIn = (kind: string, { sha256, size_bytes, attempt_id, answered_at, target }: Receipt) => ({
  sha256,
  size_bytes,
  attempt_id,
  answered_at,
  target: targetIn(kind, target),
})

const isoOf = (time: Date | null): string | null => time && time.toISOString()

/** Returns the lines of a manifest, some hundreds at a time, each with its line feed. */
export async function* manifestOf(db: Database, subject: ManifestSubject, counts: ManifestCounts): AsyncGenerator<Buffer, void, undefined> {
  const totals = new Map<string, Totals>()
  yield linesOf([headerOf(subject)])
  for await (const rows of holdPages(db, subject)) {
    counts.legalHolds += rows.length
    yield linesOf(rows.map(holdLine))
  }
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
  for await (const rows of supersededPages(db, subject)) {
    counts.superseded += rows.length
    yield linesOf(rows.map(supersededLine))
  }
  const ofRepositories = [...totals].toSorted(([one], [other]) => (one < other ? -1 : 1))
  yield linesOf([
    ...ofRepositories.map(([repoId, counted]) => ({ type: 'repository', repo_id: repoId, ...counted })),
    { type: 'end', ...snakeCased(counts) },
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
  superseded_by: row.supersededBy,
  legal_holds: row.legalHolds,
  deliveries: deliveries.map(({ destinationId, kind, status, statusSince, attempts, receipt }) => ({
    destination_id: destinationId,
    kind,
    status,
    status_since: statusSince.toISOString(),
    attempts,
    receipt: receipt && receiptIn(kind, receipt),
  })),
})

const receiptLine = ({ documentId, destinationId, kind, receipt }: ReceiptRow) => ({
  type: 'receipt',
  document_id: documentId,
  destination_id: destinationId,
  kind,
  receipt: receiptIn(kind, receipt),
})

const supersededLine = ({ id, repoId, docId, supersededAt, supersededBy }: SupersededRow) => ({
  type: 'superseded',
  doc_id: docId,
  repo_id: repoId,
  document_id: id,
  superseded_at: supersededAt.toISOString(),
  superseded_by: supersededBy,
})

/** Returns the line of a hold. The business object and the reason are business data. */
const holdLine = ({ id, scope, repoId, docId, createdAt }: HoldRow) => ({
  type: 'legal_hold',
  id,
  scope,
  repo_id: repoId,
  doc_id: docId,
  set_at: createdAt.toISOString(),
})

type Totals = { documents: number; size_bytes: number } & Partial<Record<DocumentStatus, number>>

const countIn = (totals: Map<string, Totals>, { repoId, sizeBytes, status }: DocumentRow): void => {
  const counted = totals.get(repoId) ?? { documents: 0, size_bytes: 0, delivered: 0, pending: 0, retrying: 0, failed: 0, discarded: 0 }
  counted.documents += 1
  counted.size_bytes += sizeBytes
  counted[status] = (counted[status] ?? 0) + 1
  totals.set(repoId, counted)
}
