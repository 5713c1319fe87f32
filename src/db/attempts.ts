import type { TargetAnswer } from '../connectors/connector.ts'
import { idPrefixAt } from '../ids.ts'
import type { Database } from './database.ts'
import type { AttemptOutcomeName } from './deliveries.ts'
import { pageOf, type Page, type PageRequest } from './page.ts'

export interface Attempt {
  id: string
  destinationId: string
  destinationName: string
  number: number
  startedAt: Date
  durationMs: number
  outcome: AttemptOutcomeName
  error: { code: string; message: string } | null
  answer: TargetAnswer | null
  bytesSent: number | null
}

// clocks of two processes differ by less
const clockSkewMs = 3_600_000

export const createAttempts = (db: Database) => ({
  /** Oldest first. Undefined where there is no such document. Reads no partition of a time before the document was received. */
  list: async (workspaceId: string, documentId: string, page: PageRequest): Promise<Page<Attempt> | undefined> => {
    const document = await db('documents')
      .select<{ received_at: Date }[]>('received_at')
      .where({ workspace_id: workspaceId, id: documentId })
      .first()
    if (!document) return undefined
    const query = db('delivery_attempts')
      .where({ document_id: documentId })
      .where('id', '>=', idPrefixAt(new Date(document.received_at.getTime() - clockSkewMs)))
      .orderBy('id')
    return pageOf<Attempt>(query, columnsOf(db), page)
  },
})

const columnsOf = (db: Database) => [
  'id',
  'destination_id as destinationId',
  db.raw(`(select name from destinations where destinations.id = destination_id) as "destinationName"`),
  'number',
  'started_at as startedAt',
  'duration_ms as durationMs',
  'outcome',
  db.raw(`case when error_code is not null then jsonb_build_object('code', error_code, 'message', error_message) end as error`),
  'answer',
  'bytes_sent as bytesSent',
]
