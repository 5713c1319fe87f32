import type { Database } from '../../src/db/database.ts'
import type { OutboxMessage } from '../../src/db/outbox.ts'

/** Returns the messages that are due and have not been sent, oldest first. */
export const dueMessages = async (db: Database): Promise<OutboxMessage[]> =>
  (await db('outbox').where('due_at', '<=', db.fn.now()).orderBy('due_at').select<{ message: OutboxMessage }[]>('message')).map(
    ({ message }) => message,
  )
