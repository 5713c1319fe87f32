import { cancellationSignal } from '@temporalio/activity'
import type { SendNotice } from '../src/notifications/send-notice.ts'
import type { NoticeActivities } from '../workflows/messages.ts'
import { dueBy } from './due.ts'

export const createNoticeActivities = ({ sendNotice, cancelNotice }: SendNotice): NoticeActivities => ({
  sendNotice: ({ noticeId, attemptTimeoutMs }) => sendNotice(noticeId, attemptTimeoutMs, cancellationSignal(), dueBy()),
  recordNoticeCancellation: ({ noticeId }) => cancelNotice(noticeId),
})
