import { z } from 'zod'
import { actorOf } from '../db/audit.ts'
import { timestamp } from '../domain/date-range.ts'
import { noticeData, noticeStatuses, noticeTypes } from '../domain/notices.ts'
import type { NoticeLog } from '../notifications/notice-log.ts'
import { createTestNotification, type TestNotificationDeps } from '../notifications/test-notice.ts'
import { newNotification } from '../workspace/inputs.ts'
import { answered, changeOf, configuredEndpoints } from './configured.ts'
import { testResult } from './destination-tests.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { cursorPageOf, cursorQuery, toCursorPage } from './pagination.ts'
import { idParams, resource, resourceOf } from './schemas.ts'

const notification = resource(
  'Notification',
  'notification',
  answered(newNotification).extend({ created_at: timestamp, updated_at: timestamp }),
)

const notice = resource(
  'Notice',
  'notice',
  z.object({
    notice_type: z.enum(noticeTypes).meta({ id: 'NoticeEventType' }).describe('The type of the message.'),
    status: z
      .enum(noticeStatuses)
      .meta({ id: 'NoticeStatus' })
      .describe(
        '`pending` until the destination has accepted the notice, or the retry settings of the workspace allow no further attempt.',
      ),
    incident_id: z.string(),
    data: noticeData,
    attempts: z.int(),
    last_error: z.string().nullable(),
    last_error_code: z.string().nullable(),
    next_attempt_at: timestamp.nullable(),
    delivered_at: timestamp.nullable(),
    created_at: timestamp,
  }),
)

const presentNotice = resourceOf('notice')

type NotificationDeps = TestNotificationDeps & {
  noticeLog: NoticeLog
}

export const notificationEndpoints = (deps: NotificationDeps): Endpoint[] => {
  const { notifications, noticeLog } = deps
  const test = createTestNotification(deps)
  return [
    ...configuredEndpoints(
      {
        type: 'notification',
        id: 'Notification',
        singular: 'a notification',
        path: '/notifications',
        resource: notification,
        input: newNotification,
        change: changeOf(newNotification),
        descriptions: {
          list: 'Returns the notifications of the workspace in the order in which they were created.',
          create:
            'The relay sends one notice when an incident begins, and one when it has ended. Incidents that are open already are announced, too.',
          update: '`events` replaces the current list.',
          delete: 'Notices that have not been delivered are deleted with it.',
        },
      },
      notifications,
    ),

    endpoint({
      method: 'POST',
      path: '/notifications/:id/test',
      level: 'member',
      audit: 'notification.tested',
      summary: 'Send a test',
      description:
        'Sends a message of the type `relay.notification.test` to the destination of the notification, once, and says what the target answered. ' +
        'The notification may be inactive. The message is not listed among its notices.',
      params: idParams,
      response: testResult,
      isTest: true,
      handle: async ({ params: { id } }, { actor, signal }) => ({
        data: await test(actor.workspace, id, actorOf(actor), signal),
      }),
    }),

    endpoint({
      method: 'GET',
      path: '/notifications/:id/notices',
      level: 'viewer',
      summary: 'List the notices of a notification',
      description: 'Returns what the notification has announced, newest first, and how far the delivery of each notice is.',
      params: idParams,
      query: cursorQuery,
      response: cursorPageOf(notice),
      handle: async ({ params, query }, { workspaceId }) => {
        await notifications.find(workspaceId, params.id)
        return toCursorPage(await noticeLog.list(params.id, query), query, presentNotice)
      },
    }),
  ]
}
