import { randomInt } from 'node:crypto'
import type { DocumentInput } from '../../workflows/messages.ts'
import type { Config } from '../config.ts'
import type { UnownedContent } from '../content/store.ts'
import { planDeliveries } from '../domain/fan-out.ts'
import { retryPolicyOf } from '../domain/settings.ts'
import { newId } from '../ids.ts'
import type { Database, Transaction } from './database.ts'
import type { Source } from './sources.ts'

export interface ReceivedComponent {
  compId: string
  contentType: string
  sizeBytes: number
  /** Null where nothing is wired to the repository: acknowledged, not kept. */
  content: UnownedContent | null
}

export interface Receipt {
  source: Source
  docId: string
  docProt: string | null
  metadata: { erpObjectType: string | null; erpObjectId: string | null; arObject: string | null }
  components: ReceivedComponent[]
  receivedAt: Date
}

/** A document's workflow as the outbox keeps it. Whether search attributes are registered is known only when it is started. */
export type DocumentMessage = Omit<DocumentInput, 'searchAttributes'>

type Workflow = Pick<Config, 'DELIVERY_RETRY_WINDOW_MS' | 'DELIVERY_ATTEMPT_TIMEOUT_MS' | 'DELIVERY_HEARTBEAT_TIMEOUT_MS'>

// enough that writers seldom meet, few enough to add up on every read
const countShards = 16

const planDocument = (receipt: Receipt, component: ReceivedComponent, position: number, config: Workflow) => {
  const { source, docId, metadata, receivedAt } = receipt
  const id = newId()
  const { repoId } = source.repository
  const deliveries = planDeliveries(source.wires, { ...component, repoId, docId, arObject: metadata.arObject, receivedAt })
  const destinations = deliveries.filter((delivery) => delivery.status === 'pending').map((delivery) => delivery.destination)
  const message: DocumentMessage = {
    documentId: id,
    workspace: `${source.workspace.userSlug}/${source.workspace.workspaceSlug}`,
    repoId,
    docId,
    compId: component.compId,
    destinations,
    policy: retryPolicyOf(source.workspace.settings),
    retryWindowMs: config.DELIVERY_RETRY_WINDOW_MS,
    attemptTimeoutMs: config.DELIVERY_ATTEMPT_TIMEOUT_MS,
    heartbeatTimeoutMs: config.DELIVERY_HEARTBEAT_TIMEOUT_MS,
  }
  return { id, component, position, deliveries, message }
}

type Plan = ReturnType<typeof planDocument>

/**
 * Everything but the bytes in one statement, however many components there are.
 * @returns false, and nothing is inserted, where the docId exists already
 */
const insertReceipt = async (db: Database | Transaction, receipt: Receipt, plans: Plan[]): Promise<boolean> => {
  const { source, docId, docProt, metadata, receivedAt } = receipt
  const documents = plans.map(({ id, component, position, deliveries }) => ({
    id,
    content_id: component.content?.id ?? null,
    comp_id: component.compId,
    position,
    content_type: component.contentType,
    size_bytes: component.sizeBytes,
    // nothing kept: discarded; every connection's filter passed it over: it has reached all zero destinations that want it
    status: component.content === null ? 'discarded' : deliveries.length > 0 ? 'pending' : 'delivered',
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
  const messages = plans
    .filter((plan) => plan.message.destinations.length > 0)
    .map((plan) => ({ document_id: plan.id, workflow_input: plan.message }))

  const { rows } = await db.raw<{ rows: { created: boolean }[] }>(
    `
    with archive_document as (
      ${isDiscarded(receipt) ? 'select null::text as id' : insertArchiveDocument}
    ), document as (
      insert into documents (
        id, workspace_id, repository_id, archive_document_id, content_id, repo_id, doc_id, comp_id, position, content_type,
        size_bytes, status, erp_object_type, erp_object_id, ar_object, received_at, modified_at)
      select
        planned.id, :workspaceId, :repositoryId, archive_document.id, content_id, :repoId, :docId, comp_id, position, content_type,
        size_bytes, status, :erpObjectType, :erpObjectId, :arObject, :receivedAt::timestamptz, :receivedAt::timestamptz
      from archive_document, jsonb_to_recordset(:documents::jsonb) as planned (
        id text, content_id text, comp_id text, position integer, content_type text, size_bytes bigint, status text)
    ), delivery as (
      insert into deliveries (document_id, destination_id, workspace_id, connection_id, status, path)
      select document_id, destination_id, :workspaceId, connection_id, status, path
      from archive_document, jsonb_to_recordset(:deliveries::jsonb) as planned (
        document_id text, destination_id text, connection_id text, status text, path text)
    ), message as (
      insert into outbox (document_id, workflow_input)
      select document_id, workflow_input
      from archive_document, jsonb_to_recordset(:messages::jsonb) as planned (document_id text, workflow_input jsonb)
    ), counted as (
      insert into repository_counts (repository_id, shard, documents)
      select :repositoryId, :shard::smallint, :kept::bigint
      from archive_document
      where :kept::bigint > 0
      on conflict (repository_id, shard) do update
      set documents = repository_counts.documents + excluded.documents
    )
    select count(*) > 0 as created from archive_document
    `,
    {
      archiveDocumentId: newId(),
      workspaceId: source.workspace.id,
      repositoryId: source.repository.id,
      repoId: source.repository.repoId,
      docId,
      docProt,
      ...metadata,
      receivedAt,
      documents: JSON.stringify(documents),
      deliveries: JSON.stringify(deliveries),
      messages: JSON.stringify(messages),
      shard: randomInt(countShards),
      kept: documents.filter(({ status }) => status !== 'discarded').length,
    },
  )
  return rows[0]!.created
}

// of two at the same time, the second one waits here for the first one's commit
const insertArchiveDocument = `
      insert into archive_documents (id, workspace_id, repository_id, doc_id, doc_prot, created_at, modified_at)
      values (:archiveDocumentId, :workspaceId, :repositoryId, :docId, :docProt, :receivedAt, :receivedAt)
      on conflict (repository_id, doc_id) where deleted_at is null do nothing
      returning id`

/** Nothing is wired to the repository: the documents are acknowledged, and nothing of them is kept. */
const isDiscarded = ({ source }: Receipt) => source.wires.length === 0

class DocumentExists extends Error {}

export const createReceipts = (db: Database, config: Workflow) => ({
  /**
   * Commits what a create brought: archive document, contents, documents, planned deliveries and the messages that will start
   * their workflows, all or none.
   * @returns `created: false` where the docId exists already; the contents are then still unowned
   */
  receive: async (receipt: Receipt): Promise<{ created: false } | { created: true; messages: DocumentMessage[] }> => {
    const plans = receipt.components.map((component, position) => planDocument(receipt, component, position, config))
    if (isDiscarded(receipt)) {
      await insertReceipt(db, receipt, plans)
      return { created: true, messages: [] }
    }
    try {
      await db.transaction(async (trx) => {
        for (const { content } of receipt.components) await content?.own(trx)
        if (!(await insertReceipt(trx, receipt, plans))) throw new DocumentExists()
      })
    } catch (thrown) {
      if (thrown instanceof DocumentExists) return { created: false }
      throw thrown
    }
    return { created: true, messages: plans.map((plan) => plan.message).filter((message) => message.destinations.length > 0) }
  },
})

export type Receipts = ReturnType<typeof createReceipts>
