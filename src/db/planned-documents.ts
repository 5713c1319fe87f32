import { randomInt } from 'node:crypto'
import type { Config } from '../config.ts'
import type { UnownedContent } from '../content/store.ts'
import { planDeliveries } from '../domain/fan-out.ts'
import { retryPolicyOf, workspaceSettings } from '../domain/settings.ts'
import { newId } from '../ids.ts'
import { bindCapture, captureWith, type Capture } from './captures.ts'
import type { Database, Transaction } from './database.ts'
import { keyOf, type DocumentMessage } from './outbox.ts'
import type { Source } from './sources.ts'

export interface ReceivedComponent {
  compId: string
  /** Null where the source system sent none. */
  contentType: string | null
  sizeBytes: number
  /** Null where nothing is wired to the repository: acknowledged, not kept. */
  content: UnownedContent | null
}

export interface Metadata {
  erpObjectType: string | null
  erpObjectId: string | null
  arObject: string | null
}

/** Components that have come for one archive document. */
export interface Arrival {
  source: Source
  docId: string
  metadata: Metadata
  components: ReceivedComponent[]
  receivedAt: Date
  /** The request that brought them, unless it has been written with another document. */
  captured?: Capture | undefined
}

/** What a component takes over from the one it replaces. */
export interface Heritage {
  position: number
  contentType?: string | undefined
  createdAt?: Date | undefined
}

export type Workflow = Pick<Config, 'DELIVERY_RETRY_WINDOW_MS' | 'DELIVERY_ATTEMPT_TIMEOUT_MS' | 'DELIVERY_HEARTBEAT_TIMEOUT_MS'>

/** What a workflow goes by from its start on, whatever is set later. */
export const pinnedOf = ({ userSlug, workspaceSlug, settings }: Omit<Source['workspace'], 'id'>, config: Workflow) => ({
  workspace: `${userSlug}/${workspaceSlug}`,
  policy: retryPolicyOf(settings),
  retryWindowMs: config.DELIVERY_RETRY_WINDOW_MS,
  attemptTimeoutMs: config.DELIVERY_ATTEMPT_TIMEOUT_MS,
  heartbeatTimeoutMs: config.DELIVERY_HEARTBEAT_TIMEOUT_MS,
})

/** The same by what the workspace is at this moment. */
export const pinnedNow = async (trx: Transaction, workspaceId: string, config: Workflow) => {
  const { settings, ...slugs }: { userSlug: string; workspaceSlug: string; settings: unknown } = await trx('workspaces')
    .select('user_slug as userSlug', 'workspace_slug as workspaceSlug', 'settings')
    .where({ id: workspaceId })
    .first()
  return pinnedOf({ ...slugs, settings: workspaceSettings(settings) }, config)
}

// enough that writers seldom meet, few enough to add up on every read
const countShards = 16
const untyped = 'application/octet-stream'

export const planDocument = (arrival: Arrival, component: ReceivedComponent, heritage: Heritage, config: Workflow) => {
  const { source, docId, metadata, receivedAt } = arrival
  const id = newId()
  const { repoId } = source.repository
  const { compId, sizeBytes } = component
  const contentType = component.contentType ?? heritage.contentType ?? untyped
  const deliveries = planDeliveries(source.wires, {
    repoId,
    docId,
    compId,
    contentType,
    sizeBytes,
    arObject: metadata.arObject,
    receivedAt,
  })
  const destinations = deliveries.filter((delivery) => delivery.status === 'pending').map((delivery) => delivery.destination)
  const message: DocumentMessage = {
    kind: 'document',
    documentId: id,
    repoId,
    docId,
    compId,
    destinations,
    ...pinnedOf(source.workspace, config),
  }
  return { id, component, contentType, heritage, deliveries, message }
}

export type Plan = ReturnType<typeof planDocument>

/** The messages that start a workflow: where there is nothing to deliver, there is none to start. */
export const messagesOf = (plans: Plan[]): DocumentMessage[] =>
  plans.map((plan) => plan.message).filter((message) => message.destinations.length > 0)

/** The archive document that the planned ones belong to, as a statement that returns its id, or no row where it cannot be had. */
export interface Archive {
  /** Of the prepared statement that it becomes a part of: another one for another `sql`. */
  name: string
  sql: string
  bindings: Record<string, string | number | Date | Buffer | null>
  /** Common table expressions of what is to be written along with it. */
  along?: string
}

/**
 * Everything but the bytes in one statement, however many components there are.
 * @returns false, and nothing is inserted, where `archive` gives no row
 */
export const insertPlanned = async (db: Database | Transaction, arrival: Arrival, plans: Plan[], archive: Archive): Promise<boolean> => {
  const { source, docId, metadata, receivedAt } = arrival
  const documents = plans.map(({ id, component, contentType, heritage, deliveries }) => ({
    id,
    content_id: component.content?.id ?? null,
    comp_id: component.compId,
    position: heritage.position,
    content_type: contentType,
    size_bytes: component.sizeBytes,
    // nothing kept: discarded; every connection's filter passed it over: it has reached all zero destinations that want it
    status: component.content === null ? 'discarded' : deliveries.length > 0 ? 'pending' : 'delivered',
    component_created_at: heritage.createdAt ?? null,
  }))
  const deliveries = plans.flatMap((plan) =>
    plan.deliveries.map(({ destination, connectionId, status, path }) => ({
      document_id: plan.id,
      destination_id: destination.id,
      connection_id: connectionId,
      status,
      path,
    })),
  )
  const messages = messagesOf(plans).map((message) => ({ key: keyOf(message), message }))

  const { rows } = await db
    .raw<{ rows: { inserted: boolean }[] }>(
      `
    with archive_document as (
      ${archive.sql}
    ), ${archive.along ? `${archive.along}, ` : ''}document as (
      insert into documents (
        id, workspace_id, repository_id, archive_document_id, content_id, repo_id, doc_id, comp_id, position, content_type, size_bytes,
        status, erp_object_type, erp_object_id, ar_object, received_at, modified_at, component_created_at)
      select
        planned.id, :workspaceId, :repositoryId, archive_document.id, content_id, :repoId, :docId, comp_id, position, content_type, size_bytes,
        status, :erpObjectType, :erpObjectId, :arObject, :receivedAt::timestamptz, :receivedAt::timestamptz, component_created_at
      from archive_document, jsonb_to_recordset(:documents::jsonb) as planned (
        id text, content_id text, comp_id text, position integer, content_type text, size_bytes bigint, status text,
        component_created_at timestamptz)
    ), delivery as (
      insert into deliveries (document_id, destination_id, workspace_id, connection_id, status, path)
      select document_id, destination_id, :workspaceId, connection_id, status, path
      from archive_document, jsonb_to_recordset(:deliveries::jsonb) as planned (
        document_id text, destination_id text, connection_id text, status text, path text)
    ), message as (
      insert into outbox (key, message)
      select key, message
      from archive_document, jsonb_to_recordset(:messages::jsonb) as planned (key text, message jsonb)
    ), counted as (
      insert into repository_counts (repository_id, shard, documents)
      select :repositoryId, :shard::smallint, :kept::bigint
      from archive_document
      where :kept::bigint > 0
      on conflict (repository_id, shard) do update
      set documents = repository_counts.documents + excluded.documents
    ), ${captureWith('archive_document')}
    select count(*) > 0 as inserted from archive_document
    `,
      {
        ...archive.bindings,
        workspaceId: source.workspace.id,
        repositoryId: source.repository.id,
        repoId: source.repository.repoId,
        docId,
        ...metadata,
        receivedAt,
        documents: JSON.stringify(documents),
        deliveries: JSON.stringify(deliveries),
        messages: JSON.stringify(messages),
        shard: randomInt(countShards),
        kept: documents.filter(({ status }) => status !== 'discarded').length,
        ...bindCapture(arrival.captured),
      },
    )
    .options({ name: `insert-documents-${archive.name}` })
  return rows[0]!.inserted
}
