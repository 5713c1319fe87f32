import type { Database } from './database.ts'
import type { DocumentMessage } from './planned-documents.ts'

export const createOutbox = (db: Database) => ({
  /** Messages that have been due for at least this long, the longest first: younger ones are still being sent by the process that wrote them. */
  findDue: async (ageMs: number, limit: number): Promise<DocumentMessage[]> => {
    const rows = await db('outbox')
      .select<{ workflow_input: DocumentMessage }[]>('workflow_input')
      .where('due_at', '<=', db.raw(`now() - ? * interval '1 millisecond'`, [ageMs]))
      .orderBy('due_at')
      .limit(limit)
    return rows.map((row) => row.workflow_input)
  },

  /** How many workflows have not been started yet, though they are due. */
  count: async (): Promise<number> =>
    Number((await db('outbox').where('due_at', '<=', db.fn.now()).count({ total: '*' }))[0]?.['total'] ?? 0),

  /** The workflows of these messages are started: nothing is left to send. */
  remove: async (messages: DocumentMessage[]): Promise<void> => {
    const keys = messages.map(({ documentId, revision = 1 }) => [documentId, revision])
    await db('outbox').whereIn(['document_id', 'revision'], keys).delete()
  },
})

export type Outbox = ReturnType<typeof createOutbox>
