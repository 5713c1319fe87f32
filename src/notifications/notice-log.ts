import type { Database } from '../db/database.ts'
import { pageByCursor, type CursorPage, type CursorRequest } from '../db/page.ts'
import { columnsAs, toCamelCase } from '../domain/casing.ts'
import { noticeData, noticeTypeOf, type IncidentEvent, type NoticeData, type noticeStatuses, type Transition } from '../domain/notices.ts'

/** A notice and how far its delivery is, as operators see it. */
export interface Notice {
  id: string
  incidentId: string
  /** Such as `relay.destination.failing`. */
  noticeType: string
  data: NoticeData
  status: (typeof noticeStatuses)[number]
  attempts: number
  lastError: string | null
  lastErrorCode: string | null
  nextAttemptAt: Date | null
  deliveredAt: Date | null
  createdAt: Date
}

type Row = Omit<Notice, 'noticeType' | 'data'> & { transition: Transition; event: IncidentEvent; data: never }

const columns = (db: Database) => [
  ...columnsAs(
    'id, incident_id, transition, data, status, attempts, last_error, last_error_code, next_attempt_at, delivered_at, created_at',
  ),
  db.raw('(select event from incidents where incidents.id = incident_id) as event'),
]

export const createNoticeLog = (db: Database) => ({
  /** Lists the notices of a notification, newest first. */
  list: async (notificationId: string, cursor: CursorRequest): Promise<CursorPage<Notice>> => {
    const query = db('notices').where({ notification_id: notificationId })
    const { items, nextCursor } = await pageByCursor<Row>(query, columns(db), cursor)
    const notices = items.map(({ event, transition, data, ...row }) => ({
      ...row,
      noticeType: noticeTypeOf(event, transition),
      data: toCamelCase(noticeData, data),
    }))
    return { items: notices, nextCursor }
  },
})

export type NoticeLog = ReturnType<typeof createNoticeLog>
