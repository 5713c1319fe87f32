import type { Database } from '../src/db/database.ts'
import type { OutboxMessage } from '../src/db/outbox.ts'
import type { AttemptNow } from '../src/delivery/attempt-now.ts'
import { cancelBatch } from '../src/delivery/cancel.ts'
import { deliveriesPerBatch, type Release } from '../src/delivery/release.ts'
import type { BatchActivities } from '../workflows/messages.ts'

export interface BatchDeps {
  db: Database
  release: Pick<Release, 'releaseBatch'>
  attemptNow: Pick<AttemptNow, 'attemptBatch'>
  /** Sends messages and waits for them. Messages that cannot be sent are left to the sweep. */
  sendAll(messages: OutboxMessage[]): Promise<void>
  batchSize?: number
}

export const createBatchActivities = ({
  db,
  release,
  attemptNow,
  sendAll,
  batchSize: limit = deliveriesPerBatch,
}: BatchDeps): BatchActivities => ({
  processBatch: async ({ action, by, id }, position = '') => {
    if (action === 'release') return release.releaseBatch(id, limit)
    // The messages are committed with the batch, so a run that is interrupted before they are sent loses none.
    const { messages, ...outcome } =
      action === 'attempt'
        ? await attemptNow.attemptBatch(id, position, limit)
        : await db.transaction((trx) => cancelBatch(trx, { by, id }, limit))
    await sendAll(messages)
    return outcome
  },
})
