import { notFound } from '../base/refusals.ts'
import { decodeHeader } from '../content-server/encoding.ts'
import { countDocuments } from '../db/counters.ts'
import type { Database, Transaction } from '../db/database.ts'
import { pageOf, type CursorPage, type CursorRequest, type Page, type PageRequest } from '../db/page.ts'
import { columnsAs, toCamelCase, type CamelCasedOutput } from '../domain/casing.ts'
import type { CodePage } from '../domain/code-pages.ts'
import type { ContentStoreKind } from '../domain/content-store.ts'
import { openDocumentStatuses, type DocumentStatus, type WaitReason } from '../domain/delivery-states.ts'
import type { NamedDocument } from '../domain/file-name.ts'
import { receipt, type Receipt } from '../domain/receipt.ts'
import type { DocumentMetadata } from '../domain/template.ts'
import type { documentAttributes, enrichmentOfDocument, singleDelivery } from './document-fields.ts'
import { createDocumentSearch, type DocumentSearch } from './document-search.ts'
import { enrichedData } from './enriched-data.ts'
import { holdsOf, isOnHold, type LegalHold } from './legal-holds.ts'
import { metadataSelection } from './metadata.ts'

/** A delivery of a document, with business data that was found after it. */
type SingleDelivery = CamelCasedOutput<typeof singleDelivery>
export type DocumentDelivery = Omit<SingleDelivery, 'lateData'>
type LateData = NonNullable<SingleDelivery['lateData']>
export type Document = Omit<CamelCasedOutput<typeof documentAttributes>, 'deliveries'> &
  DocumentMetadata & { id: string; deliveries: DocumentDelivery[] }

/** A document without its deliveries. Its content type has one character for each byte, of UTF-8 or of the code page of its repository. */
type DocumentRow = Omit<Document, 'deliveries'> & { codePage: CodePage }

/** Business data of a document from one enrichment, and how far it is. */
type DocumentEnrichment = CamelCasedOutput<typeof enrichmentOfDocument> & { fields: Record<string, string> }

/** @see Documents.find */
interface SingleDocument extends Document {
  /** The enrichments of the document, the oldest first. */
  enrichments: DocumentEnrichment[]
  legalHolds: Pick<LegalHold, 'id' | 'scope' | 'reason' | 'createdAt'>[]
  /** What they have found. Of fields with the same name, that of the first one counts. */
  fields: Record<string, string>
  deliveries: SingleDelivery[]
}

/** Conditions of a list. Both ends of the time of receipt are inclusive. */
export type DocumentFilter = Pick<DocumentSearch, 'repoId' | 'status' | 'acknowledged' | 'dateFrom' | 'dateTo'>

/** Location of a document's content, with the facts for a download. */
export interface DocumentContent extends NamedDocument {
  content: { id: string; sizeBytes: number; appends: number; store: ContentStoreKind }
}

const columnsOf = (db: Database) => [
  ...columnsAs('id, doc_id, repo_id, comp_id, content_type, size_bytes, status, origin, acknowledged_at, received_at, superseded_at'),
  ...columnsAs('request_id'),
  db.raw('(select name from repositories where repositories.id = documents.repository_id) as "repositoryName"'),
  db.raw('content_id is not null as "contentRetained"'),
  db.raw(`${isOnHold('documents')} as "legalHold"`),
  db.raw(metadataSelection),
  db.raw('(select code_page from repositories where repositories.id = documents.repository_id) as "codePage"'),
]

/** Selects the documents of a workspace by repository and time of receipt. */
export const documentsOf = (
  db: Database | Transaction,
  workspaceId: string,
  { repoId, dateFrom, dateTo }: Pick<DocumentFilter, 'repoId' | 'dateFrom' | 'dateTo'>,
) => {
  const query = db('documents').where({ 'documents.workspace_id': workspaceId })
  if (repoId !== undefined) query.where({ repo_id: repoId })
  if (dateFrom) query.where('received_at', '>=', dateFrom)
  if (dateTo) query.where('received_at', '<=', dateTo)
  return query
}

// SQL of look-ups that few deliveries need.
const gate = (column: string) =>
  `select ${column} from destination_gates where destination_gates.destination_id = deliveries.destination_id and circuit <> 'closed'`
const heldBy = (column: string) => `select ${column} from connections where connections.id = deliveries.connection_id`

/** SQL: why a delivery makes no attempt at the moment. */
const waitReason = `
          case
            when deliveries.status = 'held' then 'connection'
            when deliveries.status not in ('pending', 'retrying') or attempt_id is not null then null
            when waiting in ('paused', 'data') then waiting
            when waiting is not null then case when exists (${gate('')}) then 'circuit' else 'slot' end
            when next_attempt_at > now() then 'attempt'
            else 'worker'
          end`

const contentColumns = `
          comp_id as "compId", content_type as "contentType", file_name as "fileName",
          (select fields from (values (1)) as one ${enrichedData}) as fields,
          contents.id as "contentId", documents.size_bytes as "sizeBytes", appends, contents.store`

type ContentRow = Omit<DocumentContent, 'content'> & Omit<DocumentContent['content'], 'id'> & { contentId: string }

const contentOf = (row: ContentRow | undefined): DocumentContent | undefined => {
  if (!row) return undefined
  const { contentId, sizeBytes, appends, store, ...document } = row
  return { ...document, content: { id: contentId, sizeBytes, appends, store } }
}

/** Returns what a delivery waits for whose attempt is due: a worker, unless it is known that Temporal does not answer. */
export type DueReason = () => Promise<Extract<WaitReason, 'worker' | 'temporal'>>

export const createDocuments = (db: Database, dueReason: DueReason = async () => 'worker') => {
  const findIds = createDocumentSearch(db)

  /** Adds the deliveries of a page of documents, in one query. */
  const withDeliveries = async (documents: DocumentRow[]): Promise<Document[]> => {
    if (documents.length === 0) return []
    const { rows } = await db.raw<{ rows: (Omit<DocumentDelivery, 'receipt'> & { documentId: string; receipt: Receipt | null })[] }>(
      `
      select
        document_id as "documentId", destinations.id as "destinationId", destinations.name as "destinationName",
        deliveries.status, delivered_at as "deliveredAt", attempts, status_since as "statusSince", ended_by as "endedBy",
        case
          when waiting in ('in_line', 'called') then (${gate('trial_at')})
          when deliveries.status = 'retrying' then next_attempt_at
        end as "nextAttemptAt",
        case when ${waitReason} is not null then jsonb_build_object(
          'reason', ${waitReason},
          'connectionId', case when deliveries.status = 'held' then (${heldBy('id')}) end,
          'connectionName', case when deliveries.status = 'held' then (${heldBy('name')}) end) end as "waitingFor",
        case when deliveries.last_error is not null
          then jsonb_build_object('code', last_error_code, 'message', deliveries.last_error) end as "lastError",
        coalesce(location, path) as path, receipt
      from deliveries
      join destinations on destinations.id = deliveries.destination_id
      where document_id = any (:ids)
      order by document_id, deliveries.destination_id
      `,
      { ids: documents.map(({ id }) => id) },
    )
    const due = rows.flatMap(({ waitingFor }) => (waitingFor?.reason === 'worker' ? [waitingFor] : []))
    if (due.length > 0) {
      const reason = await dueReason()
      for (const each of due) each.reason = reason
    }
    const deliveries = rows.map((row) => ({ ...row, receipt: row.receipt && toCamelCase(receipt, row.receipt) }))
    const byDocument = Map.groupBy(deliveries, (row) => row.documentId)
    return documents.map(({ codePage, ...document }) => ({
      ...document,
      contentType: decodeHeader(document.contentType, codePage),
      deliveries: byDocument.get(document.id) ?? [],
    }))
  }

  const findEnrichments = (id: string): Promise<DocumentEnrichment[]> =>
    db('document_enrichments')
      .leftJoin('enrichments', 'enrichments.id', 'enrichment_id')
      .where({ document_id: id })
      .orderBy('enrichment_id')
      .select([
        ...columnsAs('status, enrichment_id, fields, document_enrichments.steps, attempts, waits_until, ends_at'),
        ...columnsAs('document_enrichments.updated_at'),
        'name as enrichmentName',
      ])

  const findHolds = async (id: string): Promise<SingleDocument['legalHolds']> => {
    const { rows } = await db.raw<{ rows: SingleDocument['legalHolds'] }>(
      `
      select legal_holds.id, scope, reason, created_at as "createdAt"
      from documents
      cross join lateral (${holdsOf('documents')}) as hold
      join legal_holds on legal_holds.id = hold_id
      where documents.id = ?
      order by legal_holds.id
      `,
      [id],
    )
    return rows
  }

  const findLateData = async (id: string): Promise<Map<string, LateData>> => {
    const rows: (LateData & { destinationId: string })[] = await db('late_data')
      .where({ document_id: id })
      .whereNot({ status: 'current' })
      .select(columnsAs('destination_id, status, found_at, updated_at, error'))
    return new Map(rows.map(({ destinationId, ...late }) => [destinationId, late]))
  }

  return {
    /** Lists documents, newest first. */
    list: async (workspaceId: string, filter: DocumentFilter & PageRequest): Promise<Page<Document>> => {
      const { repoId, status, acknowledged, dateFrom, dateTo, page, perPage } = filter
      const matching = () => {
        const query = documentsOf(db, workspaceId, filter)
        if (status) query.where({ status })
        if (acknowledged === true) query.whereNotNull('acknowledged_at')
        if (acknowledged === false) query.whereNull('acknowledged_at')
        return query
      }
      const counter = {
        ...(repoId !== undefined && { repo_id: repoId }),
        ...(status && { status }),
        ...(acknowledged !== undefined && { details: acknowledged ? ['acknowledged'] : ['', 'unconnected'] }),
      }
      // Times of receipt have milliseconds.
      const range = { since: dateFrom ?? null, before: dateTo ? new Date(dateTo.getTime() + 1) : null }
      const { items, total } = await pageOf<DocumentRow>(
        matching().orderBy([
          { column: 'received_at', order: 'desc' },
          { column: 'id', order: 'desc' },
        ]),
        columnsOf(db),
        { page, perPage },
        () => countDocuments(db, workspaceId, counter, range, matching),
      )
      return { items: await withDeliveries(items), total }
    },

    /** Lists the documents that a search finds, newest first, or oldest first after a document. A page may have fewer rows than were asked for. */
    search: async (workspaceId: string, search: DocumentSearch & CursorRequest): Promise<CursorPage<Document>> => {
      const { ids, nextCursor } = await findIds(workspaceId, search)
      const found = await withDeliveries(await db('documents').select<DocumentRow[]>(columnsOf(db)).whereIn('id', ids))
      const byId = new Map(found.map((document) => [document.id, document]))
      return { items: ids.flatMap((id) => byId.get(id) ?? []), nextCursor }
    },

    /** @throws `AppError` 404 */
    find: async (workspaceId: string, id: string): Promise<SingleDocument> => {
      const rows = await db('documents').select<DocumentRow[]>(columnsOf(db)).where({ workspace_id: workspaceId, id })
      const [found] = await withDeliveries(rows)
      if (!found) throw notFound()
      const lateData = await findLateData(id)
      const deliveries = found.deliveries.map((delivery) => ({ ...delivery, lateData: lateData.get(delivery.destinationId) ?? null }))
      const enrichments = await findEnrichments(id)
      const fields = Object.assign({}, ...enrichments.map((each) => each.fields).toReversed()) as Record<string, string>
      return { ...found, deliveries, enrichments, fields, legalHolds: found.legalHold ? await findHolds(id) : [] }
    },

    /** Returns the statuses of those documents that have a final one, by id. */
    findEnded: async (ids: string[]): Promise<Map<string, DocumentStatus>> => {
      const ended: { id: string; status: DocumentStatus }[] = await db('documents')
        .select('id', 'status')
        .whereRaw('id = any (?)', [ids])
        .whereNotIn('status', openDocumentStatuses)
      return new Map(ended.map(({ id, status }) => [id, status]))
    },

    /** Returns the id of the workspace that a document belongs to. */
    findWorkspaceId: async (id: string): Promise<string | undefined> =>
      (await db('documents').where({ id }).first<{ workspaceId: string } | undefined>('workspace_id as workspaceId'))?.workspaceId,

    /** Finds the content of a document. @throws `AppError` 404 if the document does not exist or its content is not kept */
    findContent: async (workspaceId: string, id: string): Promise<DocumentContent> => {
      const found = contentOf(
        await db('documents')
          .join('contents', 'contents.id', 'documents.content_id')
          .select<ContentRow[]>(db.raw(contentColumns))
          .where({ 'documents.workspace_id': workspaceId, 'documents.id': id })
          .first(),
      )
      if (!found) throw notFound()
      return found
    },

    /**
     * Finds the content that a download link leads to.
     * @returns undefined if the content is not kept, the source system has deleted the document, or the destination was deleted or its
     *   links were revoked; a document that an update has replaced can still be downloaded
     */
    findLinkedContent: async (link: {
      workspaceId: string
      documentId: string
      destinationId: string
      version: number
    }): Promise<DocumentContent | undefined> => {
      const { rows } = await db.raw<{ rows: ContentRow[] }>(
        `
        select ${contentColumns}
        from documents
        join contents on contents.id = documents.content_id
        join deliveries on deliveries.document_id = documents.id
        join destinations on destinations.id = deliveries.destination_id
        where documents.workspace_id = :workspaceId
          and documents.id = :documentId
          and destinations.id = :destinationId
          and destinations.deleted_at is null
          and download_links_version = :version
          and exists (
            select
            from documents as current
            where current.archive_document_id = documents.archive_document_id
              and current.comp_id = documents.comp_id
              and current.superseded_at is null
          )
        `,
        link,
      )
      return contentOf(rows[0])
    },
  }
}

export type Documents = ReturnType<typeof createDocuments>
