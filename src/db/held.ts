import type { BatchOutcome, BatchSubject, DestinationRef } from '../../workflows/messages.ts'
import { connectionSettings } from '../domain/connection-settings.ts'
import { workspaceSettings } from '../domain/settings.ts'
import { newId } from '../ids.ts'
import type { Database, Transaction } from './database.ts'
import { addMessages, type BatchMessage, type DeliveryMessage, type OutboxMessage } from './outbox.ts'
import { pinnedOf, type Workflow } from './planned-documents.ts'

interface Released {
  documentId: string
  repoId: string
  docId: string
  compId: string
  userSlug: string
  workspaceSlug: string
  settings: unknown
  destination: DestinationRef
}

/** What an active connection must not go on holding. */
export const forwards = (connection: { isActive: boolean; settings: unknown }): boolean =>
  connection.isActive && connectionSettings(connection.settings).onResume === 'forward'

export const releaseOf = ({ id, name }: { id: string; name: string }): BatchMessage => ({
  kind: 'batches',
  subject: { action: 'release', by: 'connection', id, name },
  requestId: newId(),
})

export const createHeld = (db: Database, config: Workflow) => {
  /**
   * Held ones become pending, and the messages that start their workflows are committed with that. Retry settings are those of now. A
   * document's row is locked before its deliveries, as by all who change some.
   */
  const release = async (trx: Transaction, connectionId: string, limit: number): Promise<DeliveryMessage[]> => {
    const { rows } = await trx.raw<{ rows: Released[] }>(
      `
      with candidate as materialized (
        select document_id, destination_id
        from deliveries
        where connection_id = :connectionId
          and status = 'held'
        order by document_id
        limit :limit
      ), picked as (
        select document_id, destination_id
        from candidate
        join documents on documents.id = document_id
        join deliveries using (document_id, destination_id)
        where connection_id = :connectionId
          and deliveries.status = 'held'
        order by document_id
        for no key update of documents, deliveries
      ), released as (
        update deliveries
        set status = 'pending'
        from picked
        where deliveries.document_id = picked.document_id
          and deliveries.destination_id = picked.destination_id
        returning deliveries.document_id, deliveries.destination_id
      )
      select
        documents.id as "documentId", repo_id as "repoId", doc_id as "docId", comp_id as "compId",
        user_slug as "userSlug", workspace_slug as "workspaceSlug", workspaces.settings,
        jsonb_build_object('id', destinations.id, 'name', destinations.name, 'connector', connector_type) as destination
      from released
      join documents on documents.id = released.document_id
      join workspaces on workspaces.id = documents.workspace_id
      join destinations on destinations.id = released.destination_id
      order by documents.id
      `,
      { connectionId, limit },
    )
    const messages = rows.map(({ userSlug, workspaceSlug, settings, ...released }): DeliveryMessage => ({
      kind: 'delivery',
      ...released,
      ...pinnedOf({ userSlug, workspaceSlug, settings: workspaceSettings(settings) }, config),
    }))
    await addMessages(trx, messages)
    return messages
  }

  return {
    /** Some of what a connection holds, unless it was switched off again meanwhile: a switch waits here for the batch before it. */
    releaseBatch: (connectionId: string, limit: number): Promise<BatchOutcome & { messages: DeliveryMessage[] }> =>
      db.transaction(async (trx) => {
        const connection = await trx('connections')
          .select<{ isActive: boolean } | undefined>('is_active as isActive')
          .where({ id: connectionId })
          .forShare()
          .first()
        if (!connection?.isActive) {
          return { count: 0, messages: [], stopped: connection ? 'the connection was switched off' : 'the connection was deleted' }
        }
        const messages = await release(trx, connectionId, limit)
        return { count: messages.length, messages }
      }),

    /**
     * What came to be held after its connection was switched on, or deleted: the receipt had read the wiring before. Steps from one
     * connection that holds something to the next, however many deliveries each of them holds.
     * @returns the messages that release or cancel it, committed
     */
    settleStragglers: (): Promise<OutboxMessage[]> =>
      db.transaction(async (trx) => {
        const { rows } = await trx.raw<{
          rows: { id: string; connection: { name: string; isActive: boolean; settings: unknown } | null }[]
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
            case when connections.id is not null
              then jsonb_build_object('name', name, 'isActive', is_active, 'settings', settings) end as connection
          from holding
          left join connections on connections.id = connection_id
          where connection_id is not null
            and (connections.id is null or is_active)
          `,
        )
        const subjects = rows.flatMap(({ id, connection }): BatchSubject[] => {
          if (!connection) return [{ action: 'cancel', by: 'connection', id, name: id }]
          return forwards(connection) ? [{ action: 'release', by: 'connection', id, name: connection.name }] : []
        })
        const messages = subjects.map((subject): BatchMessage => ({ kind: 'batches', subject, requestId: newId() }))
        await addMessages(trx, messages)
        return messages
      }),
  }
}

export type Held = ReturnType<typeof createHeld>
