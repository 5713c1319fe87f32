import type { BatchOutcome } from '../../workflows/messages.ts'
import { startablesOf, type DeliveryTermsConfig, type StartableDelivery } from '../archive/delivery-input.ts'
import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { addMessages, type OutboxMessage, type WakeDelivery } from '../db/outbox.ts'
import { endPause } from './circuit.ts'
import { lockDocument } from './retry.ts'
import { addWakes } from './wake.ts'

// A delivery that waits for its next attempt, or in line, makes its attempt now. It uses up the retry budget like any other attempt.

interface Scope {
  /** Id of the document. It, the destination or both are given. */
  documentId: string | undefined
  destinationId: string | undefined
  /** Whether deliveries in line are also called, ahead of the others. */
  inLine: boolean
  /** Documents up to this one are left out. */
  after: string
  limit: number
}

/** Makes deliveries due that wait. @returns the messages that tell their workflows, added to the outbox */
const makeDue = async (trx: Transaction, scope: Scope, config: DeliveryTermsConfig): Promise<WakeDelivery[]> => {
  const { documentId, destinationId, ...rest } = scope
  const conditions = [
    ...(documentId === undefined ? [] : ['document_id = :documentId']),
    ...(destinationId === undefined ? [] : ['destination_id = :destinationId']),
  ]
  const { rows } = await trx.raw<{ rows: StartableDelivery[] }>(
    `
    with picked as (
      select document_id, destination_id
      from deliveries
      where ${conditions.join(' and ')}
        and status in ('pending', 'retrying')
        and document_id > :after
        and attempt_id is null
        and ((waiting is null and next_attempt_at > now()) or (:inLine::boolean and waiting = 'in_line'))
      order by document_id, destination_id
      limit :limit
      for update skip locked
    ), due as (
      update deliveries
      set next_attempt_at = now(), waiting = case when :inLine::boolean then 'called' end
      from picked
      where deliveries.document_id = picked.document_id
        and deliveries.destination_id = picked.destination_id
      returning deliveries.document_id, deliveries.destination_id
    )
    ${startablesOf('due')}
    `,
    { documentId: documentId ?? null, destinationId: destinationId ?? null, ...rest },
  )
  return addWakes(trx, rows, config, { endsBackOff: true })
}

interface DocumentRequest {
  workspaceId: string
  documentId: string
  /** Id of the destination; if absent, every delivery of the document is attempted. */
  destinationId?: string | undefined
  actor: AuditActor
}

export const createAttemptNow = (db: Database, config: DeliveryTermsConfig) => ({
  /**
   * Makes the waiting deliveries of a document due, or the one to a destination.
   * @returns the committed messages
   * @throws `AppError` 404, or 409 `nothing_to_retry`
   */
  attemptDocument: ({ workspaceId, documentId, destinationId, actor }: DocumentRequest): Promise<WakeDelivery[]> =>
    db.transaction(async (trx) => {
      if (!(await lockDocument(trx, { workspaceId, documentId }))) throw notFound()
      const scope = { documentId, destinationId, inLine: true, after: '', limit: Number.MAX_SAFE_INTEGER }
      const messages = await makeDue(trx, scope, config)
      if (messages.length === 0) {
        const delivery =
          destinationId === undefined ||
          (await trx('deliveries').where({ document_id: documentId, destination_id: destinationId }).first('attempts'))
        if (!delivery) throw notFound()
        const which = destinationId === undefined ? 'no delivery of this document waits' : 'the delivery does not wait'
        throw new AppError('nothing_to_retry', `There is nothing to attempt: ${which} for an attempt.`)
      }
      const destinations = messages.map(({ input }) => input.destination)
      const ids = destinations.map(({ id }) => id)
      await endPause(trx, ids)
      const { repoId, docId, compId } = messages[0]!.input
      await record(trx, {
        workspaceId,
        event: 'document.attempted',
        subjectId: documentId,
        description: `Document ${repoId}/${docId}/${compId} was attempted at once to ${destinations.map(({ name }) => name).join(', ')}.`,
        metadata: { destination_ids: ids },
        actor,
      })
      return messages
    }),

  /**
   * Starts a workflow that makes every delivery of a destination due that waits for its next attempt. Those in line keep their order.
   * @returns the number of these deliveries now, at most `maxCounted`, and the committed message
   * @throws `AppError` 404
   */
  attemptDestination: (
    workspaceId: string,
    destinationId: string,
    actor: AuditActor,
  ): Promise<{ waiting: number; messages: OutboxMessage[] }> =>
    db.transaction(async (trx) => {
      const found = await trx('destinations')
        .join('workspaces', 'workspaces.id', 'workspace_id')
        .where({ 'destinations.id': destinationId, workspace_id: workspaceId })
        .whereNull('deleted_at')
        .first<{ name: string; workspace: string } | undefined>(['name', trx.raw(`user_slug || '/' || workspace_slug as workspace`)])
      if (!found) throw notFound()
      await endPause(trx, [destinationId])
      const { name, workspace } = found
      const message: OutboxMessage = {
        kind: 'processBatches',
        subject: { action: 'attempt', by: 'destination', workspace, id: destinationId, name },
        requestId: newId(),
      }
      await addMessages(trx, [message])
      await record(trx, {
        workspaceId,
        event: 'destination.attempted',
        subjectId: destinationId,
        description: `The waiting deliveries to destination ${name} were attempted at once.`,
        metadata: { name },
        actor,
      })
      return { waiting: await countWaiting(trx, destinationId), messages: [message] }
    }),

  /** Makes the next deliveries of a destination due. @param after document up to which earlier batches have come */
  attemptBatch: (destinationId: string, after: string, limit: number): Promise<BatchOutcome & { messages: WakeDelivery[] }> =>
    db.transaction(async (trx) => {
      const messages = await makeDue(trx, { documentId: undefined, destinationId, inLine: false, after, limit }, config)
      const last = messages.at(-1)?.input.documentId
      return { messages, count: messages.length, ...(last !== undefined && { position: last }) }
    }),
})

export type AttemptNow = ReturnType<typeof createAttemptNow>

/** Up to this number, waiting deliveries are counted exactly. */
const maxCounted = 10_000

const countWaiting = async (trx: Transaction, destinationId: string): Promise<number> => {
  const { rows } = await trx.raw<{ rows: { count: number }[] }>(
    `
    select count(*) as count
    from (
      select
      from deliveries
      where destination_id = :destinationId
        and status in ('pending', 'retrying')
        and attempt_id is null
        and (waiting is not null or next_attempt_at > now())
      limit :maxCounted
    ) as waiting
    `,
    { destinationId, maxCounted },
  )
  return rows[0]!.count
}
