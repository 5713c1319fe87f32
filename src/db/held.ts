import type { BatchOutcome, BatchSubject, DestinationRef } from '../../workflows/messages.ts'
import { connectionSettings } from '../domain/connection-settings.ts'
import { retryPolicyOf, workspaceSettings } from '../domain/settings.ts'
import { newId } from '../ids.ts'
import type { Database, Transaction } from './database.ts'
import { addMessages, type BatchMessage, type DeliveryMessage, type OutboxMessage } from './outbox.ts'
import type { Workflow } from './planned-documents.ts'

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

type Which = { connectionId: string; limit: number } | { workspaceId: string; documentId: string; destinationId: string }

/** What an active connection must not go on holding. */
export const forwards = (connection: { isActive: boolean; settings: unknown }): boolean =>
  connection.isActive && connectionSettings(connection.settings).onResume === 'forward'

export const releaseOf = ({ id, name }: { id: string; name: string }): BatchMessage => ({
  kind: 'batches',
  subject: { action: 'release', by: 'connection', id, name },
  requestId: newId(),
})

export const createHeld = (db: Database, config: Workflow) => {
  /** Held ones become pending, and the messages that start their workflows are committed with that. Retry settings are those of now. */
  const release = async (trx: Transaction, which: Which): Promise<DeliveryMessage[]> => {
    const { rows } = await trx.raw<{ rows: Released[] }>(
      `
      with picked as (
        select document_id, destination_id
        from deliveries
        where status = 'held'
          and ${
            'limit' in which
              ? 'connection_id = :connectionId'
              : 'workspace_id = :workspaceId and document_id = :documentId and destination_id = :destinationId'
          }
        order by document_id
        ${'limit' in which ? 'limit :limit' : ''}
        for no key update
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
      which,
    )
    const messages = rows.map(({ userSlug, workspaceSlug, settings, ...released }): DeliveryMessage => ({
      kind: 'delivery',
      workspace: `${userSlug}/${workspaceSlug}`,
      ...released,
      policy: retryPolicyOf(workspaceSettings(settings)),
      retryWindowMs: config.DELIVERY_RETRY_WINDOW_MS,
      attemptTimeoutMs: config.DELIVERY_ATTEMPT_TIMEOUT_MS,
      heartbeatTimeoutMs: config.DELIVERY_HEARTBEAT_TIMEOUT_MS,
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
        const messages = await release(trx, { connectionId, limit })
        return { count: messages.length, messages }
      }),

    /** One that an operator wants to go, whatever its connection does. Undefined where it is not held. */
    releaseOne: (workspaceId: string, documentId: string, destinationId: string): Promise<DeliveryMessage | undefined> =>
      db.transaction(async (trx) => (await release(trx, { workspaceId, documentId, destinationId }))[0]),

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
