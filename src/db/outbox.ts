import type { Database } from './database.ts'
import type { DocumentMessage } from './planned-documents.ts'

export const createOutbox = (db: Database) => ({
  /** Messages at least this old, oldest first: younger ones are still being sent by the process that wrote them. */
  findDue: async (ageMs: number, limit: number): Promise<DocumentMessage[]> => {
    const rows = await db('outbox')
      .select<{ workflow_input: DocumentMessage }[]>('workflow_input')
      .where('created_at', '<=', db.raw(`now() - ? * interval '1 millisecond'`, [ageMs]))
      .orderBy('created_at')
      .limit(limit)
    return rows.map((row) => row.workflow_input)
  },

  /** How many workflows have not been started yet. */
  count: async (): Promise<number> => Number((await db('outbox').count({ total: '*' }))[0]?.['total'] ?? 0),

  /** The workflows of these documents are started: nothing is left to send. */
  remove: async (documentIds: string[]): Promise<void> => {
    await db('outbox').whereIn('document_id', documentIds).delete()
  },
})

export type Outbox = ReturnType<typeof createOutbox>
