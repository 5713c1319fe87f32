import { idPrefixAt } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import type { TargetAnswer } from '../connectors/connector.ts'
import type { Database } from '../db/database.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import { columnsAs } from '../domain/casing.ts'

/** Outcomes of an attempt, as the API shows them. `superseded`: nothing was sent, because a newer document lies at the path. */
export const attemptOutcomes = ['delivered', 'superseded', 'retryable', 'permanent', 'interrupted'] as const
export type AttemptOutcomeName = (typeof attemptOutcomes)[number]

/** A recorded attempt. */
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

// The clocks of two processes differ by less.
const clockSkewMs = 3_600_000

const columnsOf = (db: Database) => [
  ...columnsAs('id, destination_id, number, started_at, duration_ms, outcome, answer, bytes_sent'),
  db.raw(`(select name from destinations where destinations.id = destination_id) as "destinationName"`),
  db.raw(`case when error_code is not null then jsonb_build_object('code', error_code, 'message', error_message) end as error`),
]

export const createAttemptLog = (db: Database) => ({
  /**
   * Lists the attempts of a document, oldest first. Partitions from before the receipt are not read.
   * @throws `AppError` 404
   */
  list: async (workspaceId: string, documentId: string, page: PageRequest): Promise<Page<Attempt>> => {
    const document = await db('documents')
      .select<{ receivedAt: Date }[]>('received_at as receivedAt')
      .where({ workspace_id: workspaceId, id: documentId })
      .first()
    if (!document) throw notFound()
    const query = db('delivery_attempts')
      .where({ document_id: documentId })
      .where('id', '>=', idPrefixAt(new Date(document.receivedAt.getTime() - clockSkewMs)))
      .orderBy('id')
    return pageOf<Attempt>(query, columnsOf(db), page)
  },
})

export type AttemptLog = ReturnType<typeof createAttemptLog>
