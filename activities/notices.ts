import { cancellationSignal } from '@temporalio/activity'
import type { SendNotice } from '../src/notifications/send-notice.ts'
import { attemptRetry, type NoticeActivities } from '../workflows/messages.ts'
import { dueBy } from './due.ts'
import { repeat } from './repeat.ts'

export const createNoticeActivities = ({ sendNotice, cancelNotice }: SendNotice): NoticeActivities => ({
  sendNotice: async ({ noticeId, attemptTimeoutMs }) =>
    repeat(await sendNotice(noticeId, attemptTimeoutMs, cancellationSignal(), dueBy(attemptRetry))),
  recordNoticeCancellation: ({ noticeId }) => cancelNotice(noticeId),
})
