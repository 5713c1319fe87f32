import type { ConnectorType } from '../domain/connector-type.ts'
import type { Transaction } from './database.ts'
import { addMessages, type RetryMessage } from './outbox.ts'
import { pinnedNow, type Workflow } from './planned-documents.ts'

/** Which deliveries of one document are to be made now. */
export interface Start {
  workspaceId: string
  documentId: string
  /** All of them, where none is named. */
  destinationId?: string | undefined
  /** Those that stand like this. */
  statuses: string[]
  /** The same request counts once, however often its message is sent. */
  requestId: string
}

interface Row {
  destinationId: string
  name: string
  connector: ConnectorType
  repoId: string
  docId: string
  compId: string
  revision: number
}

/**
 * Starts deliveries by hand, under the settings of this moment: each becomes `retrying`, and a message to its workflow comes with that.
 * Those whose destination is deleted stay as they are. The document's row must be locked.
 */
export const startDeliveries = async (trx: Transaction, start: Start, config: Workflow): Promise<RetryMessage[]> => {
  const { workspaceId, documentId, destinationId, statuses, requestId } = start
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `
    with started as (
      update deliveries
      set status = 'retrying'
      from destinations
      where document_id = :documentId
        and (:destinationId::text is null or destination_id = :destinationId)
        and deliveries.status = any (:statuses)
        and destinations.id = deliveries.destination_id
        and destinations.deleted_at is null
      returning document_id, destinations.id, destinations.name, connector_type
    )
    select
      started.id as "destinationId", started.name, connector_type as connector,
      repo_id as "repoId", doc_id as "docId", comp_id as "compId", revision
    from started
    join documents on documents.id = document_id
    order by started.id
    `,
    { documentId, destinationId: destinationId ?? null, statuses },
  )
  if (rows.length === 0) return []
  const pinned = await pinnedNow(trx, workspaceId, config)
  const messages = rows.map((row): RetryMessage => {
    const { repoId, docId, compId, revision, name, connector } = row
    return {
      kind: 'retry',
      requestId,
      documentId,
      revision,
      repoId,
      docId,
      compId,
      destination: { id: row.destinationId, name, connector },
      ...pinned,
    }
  })
  await addMessages(trx, messages)
  return messages
}
