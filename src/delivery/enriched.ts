import { enrichedData } from '../archive/enriched-data.ts'
import { anyOf, createStatement, type Transaction } from '../db/database.ts'
import { connectionSettings } from '../domain/connection-settings.ts'
import { pathOf, type RoutedDocument } from '../domain/fan-out.ts'
import { routedColumns } from './route.ts'

type Unsent = RoutedDocument & { documentId: string; destinationId: string; path: string; settings: unknown }

const findUnsent = createStatement<Unsent>(
  'unsent-deliveries',
  `
  select deliveries.document_id as "documentId", destination_id as "destinationId", path, settings, ${routedColumns}
  from deliveries
  join documents on documents.id = deliveries.document_id
  ${enrichedData}
  join connections on connections.id = connection_id
  where deliveries.document_id = ${anyOf('documentIds')}
    and deliveries.status in ('pending', 'held')
    and deliveries.attempts = 0
    and attempt_id is null
  `,
)

/**
 * Plans the paths of the deliveries of documents again, from the data that are known now. A path stays once an attempt has begun: every attempt
 * uses the same one. The documents must be locked.
 */
export const planAnew = async (trx: Transaction, documentIds: string[]): Promise<void> => {
  for (const { documentId, destinationId, path, settings, ...document } of await findUnsent(trx, { documentIds })) {
    const planned = pathOf(connectionSettings(settings), document)
    if (planned === path) continue
    // An attempt may have begun.
    await trx('deliveries')
      .where({ document_id: documentId, destination_id: destinationId, attempt_id: null, attempts: 0 })
      .update({ path: planned })
  }
}

const beginWaiting = createStatement(
  'begin-waiting-deliveries',
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
    where document_id = ${anyOf('documentIds')}
    group by document_id
  ) as enriched
  where deliveries.document_id = ${anyOf('documentIds')}
    and enriched.document_id = deliveries.document_id
    and deliveries.status = 'pending'
    and (waiting = 'data' or (:hasEnded::boolean and begin_at = any (waits) and begin_at > due))
  `,
)

/**
 * Begins the deliveries of documents that wait for business data: those that wait for the end of their enrichments, if one has ended and they
 * wait for no other, and those whose connections need data to decide whether they deliver. What still is not known, the latter wait for again.
 * The documents must be locked.
 */
export const beginWaitingForData = async (trx: Transaction, documentIds: string[], hasEnded: boolean): Promise<void> => {
  await beginWaiting(trx, { documentIds, hasEnded })
}
