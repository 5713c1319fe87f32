import { cancelBatch } from '../src/db/cancellations.ts'
import type { Config } from '../src/config.ts'
import type { Database } from '../src/db/database.ts'
import type { Held } from '../src/db/held.ts'
import type { OutboxMessage } from '../src/db/outbox.ts'
import type { BatchActivities } from '../workflows/messages.ts'

export interface BatchDeps {
  db: Database
  held: Held
  /** Resolves once these are sent, or left to the sweep. */
  sendAll(messages: OutboxMessage[]): Promise<void>
  config: Pick<Config, 'DELIVERY_BATCH_SIZE'>
}

/** A batch is committed together with the messages that follow from it: one that is cut off in between has lost nothing. */
export const createBatchActivities = ({ db, held, sendAll, config }: BatchDeps): BatchActivities => ({
  workOffBatch: async ({ action, by, id }) => {
    const limit = config.DELIVERY_BATCH_SIZE
    const { messages, ...outcome } =
      action === 'release' ? await held.releaseBatch(id, limit) : await db.transaction((trx) => cancelBatch(trx, { by, id }, limit))
    await sendAll(messages)
    return outcome
  },
})
