import type { DestinationRef } from '../../workflows/messages.ts'
import type { Database, Transaction } from './database.ts'
import { addMessages, type DocumentMessage } from './outbox.ts'
import { pinnedNow, type Workflow } from './planned-documents.ts'

interface Newer {
  id: string
  workspaceId: string
  revision: number
  repoId: string
  docId: string
  compId: string
}

interface Delivery {
  documentId: string
  destinationId: string
}

/**
 * A superseded document has arrived at its path, perhaps on top of a newer one: the newest one that had arrived there is made again, and
 * one that is on its way will see that it has to be. A time too many does no harm.
 */
export const resendNewer = (db: Database, delivery: Delivery, config: Workflow): Promise<void> =>
  db.transaction(async (trx) => {
    const newer = await lockNewer(trx, delivery)
    if (newer.length === 0) return
    const ids = newer.map(({ id }) => id)
    const arrived: { document_id: string }[] = await trx('deliveries')
      .select('document_id')
      .whereIn('document_id', ids)
      .where({ destination_id: delivery.destinationId, status: 'delivered' })
      .forNoKeyUpdate()
    await trx('deliveries')
      .whereIn('document_id', ids)
      .where({ destination_id: delivery.destinationId })
      .update({ overwrites: trx.raw('overwrites + 1') })
    const newest = newer.findLast(({ id }) => arrived.some((row) => row.document_id === id))
    if (newest) await relayAgain(trx, newest, delivery.destinationId, config)
  })

/** In the order of their ids, locked: who records an attempt of one of them locks its document first, too. */
const lockNewer = async (trx: Transaction, delivery: Delivery): Promise<Newer[]> => {
  const { rows } = await trx.raw<{ rows: Newer[] }>(
    `
    select
      newer.id, newer.workspace_id as "workspaceId", newer.revision, newer.repo_id as "repoId", newer.doc_id as "docId",
      newer.comp_id as "compId"
    from deliveries
    join documents on documents.id = deliveries.document_id
    join documents as newer
      on newer.workspace_id = documents.workspace_id
      and newer.repo_id = documents.repo_id
      and newer.doc_id = documents.doc_id
      and newer.id > documents.id
    join deliveries as theirs
      on theirs.document_id = newer.id
      and theirs.destination_id = deliveries.destination_id
      and theirs.path = deliveries.path
    where deliveries.document_id = :documentId
      and deliveries.destination_id = :destinationId
    order by newer.id
    for no key update of newer
    `,
    { ...delivery },
  )
  return rows
}

const relayAgain = async (trx: Transaction, document: Newer, destinationId: string, config: Workflow): Promise<void> => {
  const destination: DestinationRef | undefined = await trx('destinations')
    .select('id', 'name', 'connector_type as connector')
    .where({ id: destinationId })
    .whereNull('deleted_at')
    .first()
  if (!destination) return
  const { id, workspaceId, revision, repoId, docId, compId } = document
  const message: DocumentMessage = {
    kind: 'document',
    documentId: id,
    revision: revision + 1,
    repoId,
    docId,
    compId,
    destinations: [destination],
    ...(await pinnedNow(trx, workspaceId, config)),
  }
  await trx('deliveries').where({ document_id: id, destination_id: destinationId }).update({ status: 'pending', delivered_at: null })
  await trx('documents')
    .where({ id })
    .update({ revision: revision + 1 })
  await addMessages(trx, [message])
}
