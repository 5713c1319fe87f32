import type { Database, Transaction } from '../db/database.ts'
import { connectionSettings } from '../domain/connection-settings.ts'
import { pathOf, type RoutedDocument } from '../domain/fan-out.ts'
import { routedColumns } from './route.ts'

// After the wait for an enrichment, the workflow of the document begins the deliveries. If it is lost, the dispatcher does.
const graceMs = 30_000

/**
 * Postpones the time from which the dispatcher begins the deliveries of a document until its workflow has waited for the enrichment. The
 * document does not count as open meanwhile.
 */
export const postponeBegin = (db: Database, documentId: string): Promise<void> =>
  db.transaction(async (trx) => {
    await trx('documents').select('id').where({ id: documentId }).forNoKeyUpdate()
    await trx.raw(
      `
      update deliveries
      set
        next_attempt_at = greatest(waits_until, now()),
        begin_at = greatest(waits_until, now()) + :graceMs::integer * interval '1 millisecond'
      from document_enrichments
      where document_enrichments.document_id = :documentId
        and deliveries.document_id = :documentId
        and deliveries.status = 'pending'
        and begin_as = 'document'
        and begin_at is not null
        and attempt_id is null
      `,
      { documentId, graceMs },
    )
  })

type Unsent = RoutedDocument & { destinationId: string; path: string; settings: unknown }

/**
 * Plans the paths of the deliveries of a document anew, with what is known of it now. A path stays once an attempt has begun: every attempt
 * uses the same one. The document must be locked.
 */
export const planAnew = async (trx: Transaction, documentId: string): Promise<void> => {
  const { rows } = await trx.raw<{ rows: Unsent[] }>(
    `
    select destination_id as "destinationId", path, settings, ${routedColumns}
    from deliveries
    join documents on documents.id = deliveries.document_id
    join document_enrichments on document_enrichments.document_id = documents.id
    join connections on connections.id = connection_id
    where deliveries.document_id = :documentId
      and deliveries.status in ('pending', 'held')
      and deliveries.attempts = 0
      and attempt_id is null
    `,
    { documentId },
  )
  for (const { destinationId, path, settings, ...document } of rows) {
    const planned = pathOf(connectionSettings(settings), document)
    if (planned === path) continue
    // An attempt may have begun meanwhile.
    await trx('deliveries')
      .where({ document_id: documentId, destination_id: destinationId, attempt_id: null, attempts: 0 })
      .update({ path: planned })
  }
}

/**
 * Begins the deliveries of a document whose connections need business data to decide whether they deliver it. Those that still do not know wait
 * again. The document must be locked.
 */
export const beginWaitingForData = async (trx: Transaction, documentId: string): Promise<void> => {
  await trx('deliveries')
    .where({ document_id: documentId, waiting: 'data', status: 'pending' })
    .update({ waiting: null, next_attempt_at: trx.fn.now(), begin_as: 'delivery', begin_at: trx.fn.now() })
}
