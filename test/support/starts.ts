import type { Database, Transaction } from '../../src/db/database.ts'
import type { Start, StartDocument } from '../../src/db/starts.ts'
import { createLook, createToBegin, startsOf } from '../../src/delivery/to-begin.ts'
import { testConfig } from './factories.ts'

const all = 1_000

/** Returns the messages by which the dispatcher begins the deliveries that are due, the oldest first. */
export const dueStarts = async (db: Database | Transaction): Promise<Start[]> => {
  const toBegin = createToBegin(db)
  const turns = (await createLook(db)()).queues.map((queue) => ({ ...queue, documents: all }))
  return (await toBegin.findOldest(turns, [])).flatMap((document) => startsOf(document, { urgency: 'busy', eager: false }, testConfig()))
}

/** Returns the same of all deliveries that wait, even if they are not due yet. */
export const startsToCome = async (db: Database): Promise<Start[]> => {
  const trx = await db.transaction()
  try {
    await trx('deliveries')
      .whereNotNull('begin_at')
      .update({ begin_at: trx.raw('least(begin_at, now())') })
    return await dueStarts(trx)
  } finally {
    await trx.rollback()
  }
}

/** Returns the starts of documents that are to come in a workspace. */
export const documentsToCome = async (db: Database, workspaceSlug: string): Promise<StartDocument[]> =>
  (await startsToCome(db)).filter(
    (start): start is StartDocument => start.kind === 'startDocument' && start.input.workspace.endsWith(`/${workspaceSlug}`),
  )

/** Notes that everything that waits has begun. */
export const noteAllBegun = async (db: Database): Promise<void> => {
  await db('deliveries').whereNotNull('begin_at').update({ begin_at: null })
}
