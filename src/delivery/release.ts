import type { BatchOutcome, BatchSubject } from '../../workflows/messages.ts'
import { newId } from '../base/ids.ts'
import type { Database, Transaction } from '../db/database.ts'
import { createOnItsOwn } from '../db/on-its-own.ts'
import { addMessages, type OutboxMessage, type ProcessBatches } from '../db/outbox.ts'
import { connectionSettings } from '../domain/connection-settings.ts'
import { transitions } from '../domain/delivery-states.ts'
import { isUnlinked } from './cancel.ts'
import type { DeliveryRef } from './transition.ts'

// Released or cancelled per transaction when a connection or destination changes. Ten thousand take one run of the workflow.
export const deliveriesPerBatch = 200

/** Returns true if a connection must not hold deliveries: it is active, and its `on_resume` is `forward`. */
export const shouldRelease = (connection: { isActive: boolean; settings: unknown }): boolean =>
  connection.isActive && connectionSettings(connection.settings).onResume === 'forward'

/** Returns the message that starts the release of everything that a connection holds. */
export const releaseMessage = (connection: { workspace: string; id: string; name: string }): ProcessBatches => {
  const { workspace, id, name } = connection
  return { kind: 'processBatches', subject: { action: 'release', by: 'connection', workspace, id, name }, requestId: newId() }
}

/**
 * Releases up to `limit` held deliveries: the dispatcher begins them. A delivery whose destination has left the connection is cancelled: a create
 * that was under way may have planned it after the others were. A document is locked before its deliveries, as by every statement that changes some.
 * @returns how many are not held any more
 */
const releaseHeld = async (trx: Transaction, connectionId: string, limit: number): Promise<number> => {
  const { from, to } = transitions.release
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `
    with candidate as materialized (
      select document_id, destination_id
      from deliveries
      where connection_id = :connectionId
        and status = 'held'
      order by document_id
      limit :limit
    ), picked as (
      select document_id, destination_id, ${isUnlinked} as is_unlinked
      from candidate
      join documents on documents.id = document_id
      join deliveries using (document_id, destination_id)
      where connection_id = :connectionId
        and deliveries.status = any (:from)
      order by document_id
      for no key update of documents, deliveries
    )
    update deliveries
    set
      status = case when is_unlinked then :unlinkedTo else :to end,
      ended_by = case when is_unlinked then 'connection_changed' end,
      begin_as = 'delivery',
      begin_at = case when not is_unlinked then now() end
    from picked
    where deliveries.document_id = picked.document_id
      and deliveries.destination_id = picked.destination_id
    `,
    { connectionId, limit, from: [...from], to, unlinkedTo: transitions.cancelHeld.to },
  )
  return rowCount
}

/** Finds deleted destinations with open deliveries. Each of them costs one look-up in the index deliveries_open_of_destination. */
const findDeletedWithDeliveries = async (trx: Transaction): Promise<Pick<BatchSubject, 'id' | 'name' | 'workspace'>[]> => {
  const open = transitions.cancel.from.map((status) => `'${status}'`).join(', ')
  const { rows } = await trx.raw<{ rows: Pick<BatchSubject, 'id' | 'name' | 'workspace'>[] }>(
    `
    select destinations.id, name, user_slug || '/' || workspace_slug as workspace
    from destinations
    join workspaces on workspaces.id = workspace_id
    where deleted_at is not null
      and exists (
        select
        from deliveries
        where destination_id = destinations.id
          and status in (${open})
      )
    order by destinations.id
    `,
  )
  return rows
}

export const createRelease = (db: Database, onItsOwn = createOnItsOwn().onItsOwn) => ({
  /** Releases a batch of what a connection holds. Switching the connection off waits for a batch under way, and stops the next one. */
  releaseBatch: (connectionId: string, limit: number): Promise<BatchOutcome> =>
    db.transaction(async (trx) => {
      const connection = await trx('connections')
        .select<{ isActive: boolean } | undefined>('is_active as isActive')
        .where({ id: connectionId })
        .forShare()
        .first()
      if (!connection?.isActive) {
        return { count: 0, stopped: connection ? 'the connection was switched off' : 'the connection was deleted' }
      }
      return { count: await releaseHeld(trx, connectionId, limit) }
    }),

  /**
   * Finds deliveries that are held although their connection is active or deleted, because a create had read the routes before the change,
   * and open deliveries of deleted destinations, because Temporal has lost the workflow that cancelled them. The first query steps from
   * one connection that holds something to the next, however many deliveries each of them holds.
   * @returns the committed messages that release or cancel these deliveries
   */
  releaseOverdue: (): Promise<OutboxMessage[]> =>
    db.transaction(async (trx) => {
      const { rows } = await trx.raw<{
        rows: { id: string; workspace: string; connection: { name: string; isActive: boolean; settings: unknown } | null }[]
      }>(
        `
        with recursive holding as (
          select min(connection_id) as connection_id
          from deliveries
          where status = 'held'
          union all
          select (
            select min(connection_id)
            from deliveries
            where status = 'held'
              and connection_id > holding.connection_id
          )
          from holding
          where connection_id is not null
        )
        select
          connection_id as id,
          (
            select user_slug || '/' || workspace_slug
            from deliveries
            join workspaces on workspaces.id = deliveries.workspace_id
            where deliveries.connection_id = holding.connection_id
              and status = 'held'
            limit 1
          ) as workspace,
          case when connections.id is not null
            then jsonb_build_object('name', name, 'isActive', is_active, 'settings', settings) end as connection
        from holding
        left join connections on connections.id = connection_id
        where connection_id is not null
          and (connections.id is null or is_active)
        `,
      )
      const messagesOf = ({ id, workspace, connection }: (typeof rows)[number]): ProcessBatches[] => {
        const subject: BatchSubject = { action: 'cancel', by: 'connection', workspace, id, name: id }
        if (!connection) return [{ kind: 'processBatches', subject, requestId: newId() }]
        return shouldRelease(connection) ? [releaseMessage({ workspace, id, name: connection.name })] : []
      }
      const messages: ProcessBatches[] = []
      for (const row of rows) messages.push(...((await onItsOwn('reconcile', { connection_id: row.id }, () => messagesOf(row))) ?? []))
      for (const destination of await findDeletedWithDeliveries(trx)) {
        messages.push({ kind: 'processBatches', subject: { action: 'cancel', by: 'destination', ...destination }, requestId: newId() })
      }
      await addMessages(trx, messages)
      return messages
    }),
})

export type Release = ReturnType<typeof createRelease>

/**
 * Holds a delivery whose connection is inactive. The connection is locked first, as by a release: its activation either comes first, and
 * nothing is held, or comes later and finds the held delivery.
 * @returns false if the connection has been activated, or the delivery has ended
 */
export const hold = async (db: Database, { documentId, destinationId }: DeliveryRef): Promise<boolean> => {
  const { from, to } = transitions.hold
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `
    with connection as (
      select connections.id
      from deliveries
      join connections on connections.id = connection_id
      where document_id = :documentId
        and destination_id = :destinationId
        and not is_active
      for share of connections
    ), document as (
      select documents.id, connection.id as connection_id
      from connection
      join documents on documents.id = :documentId
      for no key update of documents
    )
    update deliveries
    set status = :to, attempt_id = null
    from document
    where document_id = document.id
      and destination_id = :destinationId
      and deliveries.connection_id = document.connection_id
      and status = any (:from)
    `,
    { documentId, destinationId, from: [...from], to },
  )
  return rowCount > 0
}
