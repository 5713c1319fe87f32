import { z } from 'zod'
import { actorOf } from '../db/audit.ts'
import { noticeData, noticeStatuses, noticeTypes } from '../domain/notices.ts'
import type { NoticeLog } from '../notifications/notice-log.ts'
import type { Notification } from '../notifications/notifications.ts'
import { createTestNotification, type TestNotificationDeps } from '../notifications/test-notice.ts'
import { newNotification, notificationChange, notificationEvents } from '../workspace/inputs.ts'
import { testResult } from './destination-tests.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { cursorPageOf, cursorQuery, pageOfMany, pageQuery, toCursorPage, toPage } from './pagination.ts'
import { idParams, one, resource, resourceOf, timestamp } from './schemas.ts'

const notification = resource(
  'Notification',
  'notification',
  z.object({
    name: z.string(),
    events: notificationEvents,
    destination_id: z.string(),
    quiet_seconds: z.int(),
    silence_hours: z.int(),
    is_active: z.boolean(),
    created_at: timestamp,
    updated_at: timestamp,
  }),
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

const present = resourceOf('notification')
const presentNotice = resourceOf('notice')

const versionOf = ({
  name: displayName,
  events: own,
  destinationId: destination,
  quietSeconds: quiet,
  silenceHours: silence,
  isActive: isOn,
}: VersionedValues) => [displayName, own, destination, quiet, silence, isOn]
type VersionedValues = Pick<Notification, 'name' | 'events' | 'destinationId' | 'quietSeconds' | 'silenceHours' | 'isActive'>
const version = ({ data }: { data: { attributes: VersionedValues } }) => versionOf(data.attributes)

export type NotificationDeps = TestNotificationDeps & {
  noticeLog: NoticeLog
}

export const notificationEndpoints = (deps: NotificationDeps): Endpoint[] => {
  const { notifications, noticeLog, findConnector } = deps
  const test = createTestNotification(deps)
  return [
    endpoint({
      method: 'GET',
      path: '/notifications',
      level: 'viewer',
      summary: 'List notifications',
      description: 'Returns the notifications of the workspace in the order in which they were created.',
      query: pageQuery,
      response: pageOfMany(notification),
      status: 200,
      handle: async ({ query }, { workspaceId }) => toPage(await notifications.list(workspaceId, query), query, present),
    }),

    endpoint({
      method: 'GET',
      path: '/notifications/:id',
      level: 'viewer',
      summary: 'Retrieve a notification',
      params: idParams,
      response: one(notification),
      version,
      status: 200,
      handle: async ({ params }, { workspaceId }) => ({ data: present(await notifications.find(workspaceId, params.id)) }),
    }),

    endpoint({
      method: 'POST',
      path: '/notifications',
      level: 'member',
      audit: 'notification.created',
      summary: 'Create a notification',
      description:
        'The relay sends one notice when an incident begins, and one when it has ended. Incidents that are open already are announced, too.',
      body: newNotification.meta({ id: 'NotificationInput' }),
      response: one(notification),
      version,
      status: 201,
      handle: async ({ body }, { workspaceId, actor }) => ({
        data: present(await notifications.insert(workspaceId, body, actorOf(actor), findConnector)),
      }),
    }),

    endpoint({
      method: 'PATCH',
      path: '/notifications/:id',
      level: 'member',
      audit: 'notification.updated',
      summary: 'Update a notification',
      description: '`events` replaces the current list.',
      params: idParams,
      body: notificationChange.meta({ id: 'NotificationChange' }),
      response: one(notification),
      version,
      status: 200,
      checksVersion: true,
      handle: async ({ params, body }, { workspaceId, actor, checkVersion }) => {
        const check = (current: Notification) => checkVersion(versionOf(current))
        return { data: present(await notifications.update(workspaceId, params.id, body, actorOf(actor), findConnector, check)) }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/notifications/:id',
      level: 'admin',
      audit: 'notification.deleted',
      summary: 'Delete a notification',
      description: 'Notices that have not been delivered are deleted with it.',
      params: idParams,
      response: 'none',
      status: 204,
      checksVersion: true,
      handle: async ({ params }, { workspaceId, actor, checkVersion }) => {
        const check = (current: Notification) => checkVersion(versionOf(current))
        await notifications.delete(workspaceId, params.id, actorOf(actor), check)
      },
    }),

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
      status: 200,
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
      status: 200,
      handle: async ({ params, query }, { workspaceId }) => {
        await notifications.find(workspaceId, params.id)
        return toCursorPage(await noticeLog.list(params.id, query), query, presentNotice)
      },
    }),
  ]
}
