import { dayMs, dayOf, endOfDay } from '../base/day.ts'
import { idPrefixAt, newId, newIdAfter, timeOfId } from '../base/ids.ts'
import { capturedOnOf, type Capture } from '../capture/capture.ts'
import type { UnownedContent } from '../content/store.ts'
import { createBatches } from '../db/batches.ts'
import type { Database } from '../db/database.ts'
import { isRefused } from '../db/errors.ts'
import type { StartDocument } from '../db/starts.ts'
import { documentStatus, type DocumentStatus } from '../domain/delivery-states.ts'
import { planDeliveries } from '../domain/fan-out.ts'
import type { DocumentMetadata } from '../domain/template.ts'
import { businessObjectOf, deliveryTerms, traceOf, type DeliveryTermsConfig } from './delivery-input.ts'
import { writeIn, writeInserts, type Insert, type InsertOutcome } from './insert-documents.ts'
import { lockTimeout, type LockConfig } from './locks.ts'
import { columnsOf, withMetadata } from './metadata.ts'
import type { ReceivingRepository } from './receiving-repository.ts'

export interface ReceivedComponent {
  compId: string
  /** Null if the source system sent none. */
  contentType: string | null
  sizeBytes: number
  /** Null if no destination is wired to the repository: the component is acknowledged and not kept. */
  content: UnownedContent | null
  /** Set if it comes from the upstream of the repository. */
  times?: Times
}

/** When an earlier content server created and modified something. */
interface Times {
  createdAt: Date
  modifiedAt: Date
}

/** Components that a create or an update has sent for one archive document. */
export interface ReceivedDocument {
  repository: ReceivingRepository
  docId: string
  /** Letters of the accesses that require a signature; null if the create has none. */
  docProt: string | null
  metadata: DocumentMetadata
  /** When the early metadata among them were changed. */
  earlyAt?: string
  components: ReceivedComponent[]
  receivedAt: Date
  /** Id of the request that contains the document. */
  requestId: string
  /** The captured request, unless another document of the same request takes it. */
  capture: Capture | undefined
  /** Span of the request, if it is traced. */
  traceparent?: string | undefined
  /** Set if it comes from the upstream of the repository. It is kept even if no destination is wired. */
  upstream?: Times
}

/** Attributes of a component that an update keeps from the component it replaces. */
export interface CarriedOver {
  position: number
  contentType?: string | undefined
  createdAt?: Date | undefined
}

export interface InsertedDocument {
  documentId: string
  repoId: string
  compId: string
  contentType: string
  sizeBytes: number
  status: DocumentStatus
  /** Number of destinations that the document is delivered to, including those that an inactive connection holds back. */
  destinations: number
  startsWorkflow: boolean
}

export interface Inserted {
  /** False if nothing was inserted: in mode `create` or `discard`, the docId exists already. */
  inserted: boolean
  documents: InsertedDocument[]
  /** Start the workflows of documents that have a delivery to make, unless it waits for business data. */
  messages: StartDocument[]
  /** True if the caller should send them. Otherwise, the documents wait for their turn behind others of their workspace. */
  atOnce: boolean
}

export type InsertConfig = DeliveryTermsConfig & LockConfig

/** How the archive document comes about: a new one, an existing and locked one, or none for a document whose content is not kept. */
export type Target = { mode: 'create' | 'update'; archiveDocumentId: string } | { mode: 'discard'; archiveDocumentId: null }

const defaultContentType = 'application/octet-stream'

/** Returns an id, later than that of another process whose clock may be ahead. */
const nextId = (after: string | undefined): string => (after === undefined ? newId() : newIdAfter(after))

const planDocument = (
  received: ReceivedDocument,
  component: ReceivedComponent,
  carriedOver: CarriedOver,
  config: InsertConfig,
  after: string | undefined,
) => {
  const { repository, docId, metadata, receivedAt, traceparent = null } = received
  const { repoId, routes, workspace, enrichments } = repository
  const { compId, sizeBytes } = component
  const contentType = component.contentType ?? carriedOver.contentType ?? defaultContentType
  const document = { repoId, docId, compId, contentType, sizeBytes, ...metadata, fields: {}, receivedAt }
  const deliveries = planDeliveries(routes, document, enrichments.length === 0)
  const documentId = nextId(after)
  // A document from the upstream has arrived wherever it has to: it is not discarded.
  const status = received.upstream && deliveries.length === 0 ? 'delivered' : documentStatus(deliveries.map((each) => each.status))
  const destinations = deliveries.filter((each) => each.status === 'pending').map(({ destination }) => destination)
  const message: StartDocument = {
    kind: 'startDocument',
    input: {
      documentId,
      repoId,
      docId,
      compId,
      ...businessObjectOf(metadata),
      ...traceOf({ traceparent }),
      destinations,
      ...deliveryTerms(workspace, config),
    },
  }
  const isEnriched = enrichments.length > 0 && destinations.length > 0
  return { documentId, component, contentType, carriedOver, deliveries, status, message, isEnriched }
}

/**
 * Returns when a document was received, at most a day before its id: its upload may have lasted for longer, or have ended after the clock was set back.
 * The manifest of a day finds its documents by both.
 */
const receivedBefore = (id: string, receivedAt: Date): Date => {
  const idAt = timeOfId(id).getTime()
  return new Date(Math.min(idAt, Math.max(idAt - dayMs, receivedAt.getTime())))
}

/** Returns an id before which are those of a day and of the days before. */
const lastIdOf = (day: string): string => idPrefixAt(endOfDay(day)).padEnd(26, '0')

/** Returns how long the deliveries of a document wait for business data, in seconds. */
const waitOf = ({ enrichments }: Pick<ReceivedDocument['repository'], 'enrichments'>): number =>
  Math.max(0, ...enrichments.map(({ waitSeconds }) => waitSeconds))

const planInsert = (
  { mode, archiveDocumentId }: Target,
  received: ReceivedDocument,
  carriedOver: CarriedOver[],
  config: InsertConfig,
  after: string | undefined,
) => {
  const { repository, docId, docProt, metadata, components, receivedAt, requestId, traceparent = null, capture, upstream } = received
  const plans = components.map((component, index) => planDocument(received, component, carriedOver[index]!, config, after))
  const documents = plans.map((plan) => ({
    id: plan.documentId,
    content_id: plan.component.content?.id ?? null,
    comp_id: plan.component.compId,
    position: plan.carriedOver.position,
    content_type: plan.contentType,
    size_bytes: plan.component.sizeBytes,
    status: plan.status,
    is_unconnected: repository.routes.length === 0 && !upstream,
    component_created_at: plan.carriedOver.createdAt ?? plan.component.times?.createdAt,
    modified_at: plan.component.times?.modifiedAt ?? receivedAt,
    is_enriched: plan.isEnriched,
  }))
  const deliveries = plans.flatMap((plan) =>
    plan.deliveries.map(({ destination, connectionId, status, path }) => ({
      document_id: plan.documentId,
      destination_id: destination.id,
      connection_id: connectionId,
      status,
      path,
    })),
  )
  const firstId = documents.map(({ id }) => id).toSorted()[0] ?? nextId(after)
  const insert: Insert = {
    mode,
    archive_document_id: archiveDocumentId,
    workspace_id: repository.workspace.id,
    repository_id: repository.id,
    repo_id: repository.repoId,
    doc_id: docId,
    doc_prot: docProt,
    ...columnsOf(metadata),
    early_at: received.earlyAt ?? null,
    origin: upstream ? 'upstream' : 'source',
    created_at: upstream?.createdAt ?? receivedAt,
    modified_at: upstream?.modifiedAt ?? receivedAt,
    received_at: receivedBefore(firstId, receivedAt),
    request_id: requestId,
    traceparent,
    enrichments: repository.enrichments.map(({ id, waitSeconds, lateDays }) => ({ id, wait_seconds: waitSeconds, late_days: lateDays })),
    wait_seconds: waitOf(repository),
    first_id: firstId,
    first_on: dayOf(timeOfId(firstId)),
    kept_documents: documents.filter((document) => document.content_id !== null).length,
    captured_on: capturedOnOf(capture),
    documents,
    deliveries,
    contents: components.flatMap(({ content }) => content ?? []),
    capture,
  }
  return { plans, insert }
}

/**
 * Inserts the documents that a request has sent: archive document, contents, documents, planned deliveries, the repository's count and the
 * captured request, all or none. A planned delivery is due at once, so the dispatcher begins it. If no other delivery of the workspace
 * waits, the caller should do so earlier, by the returned messages.
 * @param write writes an insert, by itself or together with others
 * @param carriedOver one entry per component
 * @param after an id that those of the documents must follow: of the same docId, from a process whose clock is ahead, or of a day that is closed
 */
export const insertDocuments = async (
  write: (insert: Insert) => Promise<InsertOutcome>,
  target: Target,
  received: ReceivedDocument,
  carriedOver: CarriedOver[],
  config: InsertConfig,
  after?: string,
): Promise<Inserted> => {
  const { plans, insert } = planInsert(target, received, carriedOver, config, after)
  const { inserted, atOnce, later, early, closedOn } = await write(insert)
  if (!inserted && closedOn !== null) return insertDocuments(write, target, received, carriedOver, config, lastIdOf(closedOn))
  if (!inserted && later !== null) return insertDocuments(write, target, received, carriedOver, config, later)
  if (!inserted && early !== null) {
    const { changedAt, ...told } = early
    const metadata = withMetadata(received.metadata, told)
    return insertDocuments(write, target, { ...received, metadata, earlyAt: changedAt }, carriedOver, config, after)
  }
  if (!inserted) return { inserted, documents: [], messages: [], atOnce: false }
  for (const { buffer } of insert.contents) buffer?.release()
  const waits = waitOf(received.repository) > 0
  const messages = waits ? [] : plans.map(({ message }) => message).filter(({ input }) => input.destinations.length > 0)
  return { inserted, documents: plans.map(describe), messages, atOnce }
}

const describe = ({
  documentId,
  component,
  contentType,
  deliveries,
  status,
  message,
}: ReturnType<typeof planDocument>): InsertedDocument => ({
  documentId,
  repoId: message.input.repoId,
  compId: component.compId,
  contentType,
  sizeBytes: component.sizeBytes,
  status,
  destinations: deliveries.length,
  startsWorkflow: message.input.destinations.length > 0,
})

// The size of the statement that creates share, and the time for which one waits for others. Longer waits accept no more documents per second (bench/README.md).
const batchLimits = { maxItems: 64, maxBytes: 1024 * 1024, maxWaitMs: 2 }
// Cost of a row, in bytes of content.
const rowBytes = 1024
// A create that waits longer for another transaction, which creates the same document, is written by itself. It must not delay the others.
const batchLockTimeoutMs = 100

/**
 * Commits a create: archive document, contents, documents and planned deliveries, all or none. Creates that arrive at the same time share a
 * transaction, and none of them fails because of another one.
 * If no destination is wired to the repository, the documents are discarded and their contents are not kept.
 * The function returns `created: false` if the docId exists already; the contents are then still unowned.
 */
export const createReceive = (db: Database, config: InsertConfig) => {
  const writeAlone = writeIn(db, config)

  const writeTogether = (inserts: Insert[]): Promise<InsertOutcome>[] => {
    if (inserts.length === 1) return inserts.map(writeAlone)
    const outcomes = writeInserts(db, inserts, lockTimeout(config), `${batchLockTimeoutMs}ms`)
    return inserts.map(async (insert, index) => {
      try {
        return (await outcomes)[index]!
      } catch (thrown) {
        // Without an answer of the server, the creates may be committed: repeated, they would be refused as existing ones.
        if (!isRefused(thrown)) throw thrown
        return writeAlone(insert)
      }
    })
  }

  const write = createBatches(writeTogether, batchLimits)

  return async (received: ReceivedDocument): Promise<Omit<Inserted, 'inserted'> & { created: boolean }> => {
    const { components, repository } = received
    const target: Target =
      repository.routes.length === 0 ? { mode: 'discard', archiveDocumentId: null } : { mode: 'create', archiveDocumentId: newId() }
    const positions = components.map((_, position) => ({ position }))
    const { inserted, ...rest } = await insertDocuments((insert) => write(insert, bytesOf(insert)), target, received, positions, config)
    return { created: inserted, ...rest }
  }
}

/** Returns about the bytes that the statement carries for an insert. */
const bytesOf = ({ contents, capture, documents, deliveries }: Insert): number => {
  const bodies = [capture?.requestBody?.data, capture?.responseBody?.data, ...contents.map(({ buffer }) => buffer?.data)]
  return bodies.reduce((sum, data) => sum + (data?.length ?? 0), rowBytes * (documents.length + deliveries.length))
}

export type Receive = ReturnType<typeof createReceive>
