import { enrichedData } from '../archive/enriched-data.ts'
import type { Transaction } from '../db/database.ts'
import { connectionSettings } from '../domain/connection-settings.ts'
import { pathOf, type RoutedDocument } from '../domain/fan-out.ts'
import { routedColumns } from './route.ts'

type Unsent = RoutedDocument & { documentId: string; destinationId: string; path: string; settings: unknown }

/**
 * Plans the paths of the deliveries of documents again, from the data that are known now. A path stays once an attempt has begun: every attempt
 * uses the same one. The documents must be locked.
 */
export const planAnew = async (trx: Transaction, documentIds: string[]): Promise<void> => {
  const { rows } = await trx.raw<{ rows: Unsent[] }>(
    `
    select deliveries.document_id as "documentId", destination_id as "destinationId", path, settings, ${routedColumns}
    from deliveries
    join documents on documents.id = deliveries.document_id
    ${enrichedData}
    join connections on connections.id = connection_id
    where deliveries.document_id = any (:documentIds::text[])
      and deliveries.status in ('pending', 'held')
      and deliveries.attempts = 0
      and attempt_id is null
    `,
    { documentIds },
  )
  for (const { documentId, destinationId, path, settings, ...document } of rows) {
    const planned = pathOf(connectionSettings(settings), document)
    if (planned === path) continue
    // An attempt may have begun.
    await trx('deliveries')
      .where({ document_id: documentId, destination_id: destinationId, attempt_id: null, attempts: 0 })
      .update({ path: planned })
  }
}

/**
 * Begins the deliveries of documents that wait for business data: those that wait for the end of their enrichments, if one has ended and they
 * wait for no other, and those whose connections need data to decide whether they deliver. What still is not known, the latter wait for again.
 * The documents must be locked.
 */
export const beginWaitingForData = async (trx: Transaction, documentIds: string[], hasEnded: boolean): Promise<void> => {
  await trx.raw(
    `
    update deliveries
    set
      waiting = null,
      next_attempt_at = case when waiting = 'data' then now() else due end,
      begin_at = case when waiting = 'data' then now() else due end,
      begin_as = case when waiting = 'data' then 'delivery' else begin_as end
    from (
      select
        document_id, array_agg(waits_until) as waits,
        greatest(now(), max(waits_until) filter (where status = 'pending')) as due
      from document_enrichments
      where document_id = any (:documentIds::text[])
      group by document_id
    ) as enriched
    where deliveries.document_id = any (:documentIds::text[])
      and enriched.document_id = deliveries.document_id
      and deliveries.status = 'pending'
      and (waiting = 'data' or (:hasEnded::boolean and begin_at = any (waits) and begin_at > due))
    `,
    { documentIds, hasEnded },
  )
}
