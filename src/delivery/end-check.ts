import { setTimeout as sleep } from 'node:timers/promises'
import type { DocumentKey } from '../../workflows/ids.ts'
import { newId } from '../base/ids.ts'
import type { Database, Transaction } from '../db/database.ts'
import { addMessages, type CancelDelivery } from '../db/outbox.ts'
import { transitions, type DeliveryEnd } from '../domain/delivery-states.ts'

/** The documents of a check of a repository. */
interface Checked {
  workspaceId: string
  repoId: string
  docIds: string[]
}

// A target that answers has the documents of a check within a second or two.
const firstAttemptsMs = 5_000
const lookMs = 200

/**
 * Creates the end of a check of a repository: what is still to be delivered of its documents is cancelled, after a short wait for the first
 * attempts. These documents are not needed, so none that has not arrived stays behind as an open or failed delivery.
 * @param waitMs longest wait for first attempts
 */
export const createEndCheck =
  (db: Database, waitMs = firstAttemptsMs) =>
  async (checked: Checked): Promise<void> => {
    if (checked.docIds.length === 0) return
    const deadline = performance.now() + waitMs
    while (performance.now() < deadline && (await hasPending(db, checked))) await sleep(lookMs)
    await db.transaction(async (trx) => {
      const ids = await lockDocuments(trx, checked)
      await cancelAll(trx, ids)
      // Otherwise they would be failures that an operator has to look at.
      await trx('documents').whereIn('id', ids).where({ status: 'failed' }).update({ acknowledged_at: trx.fn.now() })
    })
  }

export type EndCheck = ReturnType<typeof createEndCheck>

const hasPending = async (db: Database, { workspaceId, repoId, docIds }: Checked): Promise<boolean> => {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `
    select
    from documents
    join deliveries on deliveries.document_id = documents.id
    where documents.workspace_id = :workspaceId
      and repo_id = :repoId
      and doc_id = any(:docIds)
      and deliveries.status = 'pending'
    limit 1
    `,
    { workspaceId, repoId, docIds },
  )
  return rows.length > 0
}

/** Locks in the order of the ids. @returns the ids */
const lockDocuments = async (trx: Transaction, { workspaceId, repoId, docIds }: Checked): Promise<string[]> => {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `
    select id
    from documents
    where workspace_id = :workspaceId
      and repo_id = :repoId
      and doc_id = any(:docIds)
    order by id
    for no key update
    `,
    { workspaceId, repoId, docIds },
  )
  return rows.map(({ id }) => id)
}

/** Cancels what is to be delivered. A message is without effect for a delivery that has no workflow. */
const cancelAll = async (trx: Transaction, ids: string[]): Promise<void> => {
  const { from, to } = transitions.cancel
  const endedBy: DeliveryEnd = 'check_ended'
  const { rows } = await trx.raw<{ rows: { document: DocumentKey; destinationId: string }[] }>(
    `
    update deliveries
    set status = :to, ended_by = :endedBy
    from documents
    join workspaces on workspaces.id = documents.workspace_id
    where documents.id = any(:ids)
      and deliveries.document_id = documents.id
      and deliveries.status = any(:from)
    returning
      jsonb_build_object(
        'documentId', documents.id, 'workspace', user_slug || '/' || workspace_slug, 'repoId', repo_id, 'docId', doc_id, 'compId', comp_id)
        as document,
      destination_id as "destinationId"
    `,
    { ids, from: [...from], to, endedBy },
  )
  const requestId = newId()
  await addMessages(
    trx,
    rows.map((delivery): CancelDelivery => ({ kind: 'cancelDelivery', ...delivery, requestId })),
  )
}
