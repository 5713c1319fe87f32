import { z } from 'zod'
import { notFound, validationFailed } from '../base/refusals.ts'
import type { FindConnector } from '../connectors/connector.ts'
import { quietSecondsBounds, silenceHoursBounds } from '../domain/bounds.ts'
import { incidentEventNames, incidentEvents, noticeData, noticeStatuses, noticeTypes } from '../domain/notices.ts'
import type { NoticeLog } from '../observe/notices/notice-log.ts'
import { actorOf } from '../workspace/authenticator.ts'
import type { Notification, Notifications } from '../workspace/notifications.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { cursorPageOf, cursorQuery, pageOfMany, pageQuery, toCursorPage, toPage } from './pagination.ts'
import { idParams, name, one, resource, resourceOf, timestamp } from './schemas.ts'

const eventList = incidentEventNames.map((event) => `\`${event}\`: ${incidentEvents[event]}.`).join(' ')

const events = z
  .array(z.enum(incidentEventNames).meta({ id: 'IncidentEvent' }))
  .min(1)
  .max(incidentEventNames.length)
  .describe(`The incidents that are announced, each at its beginning and at its end. ${eventList}`)
const destinationId = z.string().describe('The id of the destination that the notices are sent to, of the type `email` or `webhook`.')
const quietSeconds = z
  .int()
  .min(quietSecondsBounds.min)
  .max(quietSecondsBounds.max)
  .describe(
    'Time after a notice in which no other incident of the same subject is announced. One that is still open then is announced then.',
  )
const silenceHours = z
  .int()
  .min(silenceHoursBounds.min)
  .max(silenceHoursBounds.max)
  .describe('Hours without a request to a repository after which `source.silent` is announced. Choose more than a usual night or weekend.')
const isActive = z.boolean().describe('An inactive notification announces nothing.')

export const newNotification = z.strictObject({
  name,
  events,
  destination_id: destinationId,
  quiet_seconds: quietSeconds.default(900),
  silence_hours: silenceHours.default(72),
  is_active: isActive.default(true),
})

/** Returns a check that throws AppError 422 if a destination does not exist or cannot send notices. */
export const createNoticeCheck = (findConnector: FindConnector) => (connectorType: string | undefined) => {
  if (connectorType === undefined) {
    throw validationFailed([{ path: 'destination_id', message: 'there is no such destination in this workspace' }])
  }
  if (findConnector(connectorType)?.sendNotice) return
  throw validationFailed([
    { path: 'destination_id', message: `must be a destination of the type email or webhook; this one is of the type ${connectorType}` },
  ])
}

const notification = resource(
  'notification',
  z.object({
    name: z.string(),
    events,
    destination_id: z.string(),
    quiet_seconds: z.int(),
    silence_hours: z.int(),
    is_active: z.boolean(),
    created_at: timestamp,
    updated_at: timestamp,
  }),
).meta({ id: 'Notification' })

const notice = resource(
  'notice',
  z.object({
    notice_type: z.enum(noticeTypes).meta({ id: 'NoticeType' }).describe('The type of the message.'),
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
).meta({ id: 'Notice' })

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

export interface NotificationDeps {
  notifications: Notifications
  noticeLog: NoticeLog
  findConnector: FindConnector
}

export const notificationEndpoints = ({ notifications, noticeLog, findConnector }: NotificationDeps): Endpoint[] => {
  const checkDestination = createNoticeCheck(findConnector)

  const find = async (workspaceId: string, id: string): Promise<Notification> => {
    const found = await notifications.find(workspaceId, id)
    if (!found) throw notFound()
    return found
  }

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
      handle: async ({ params }, { workspaceId }) => ({ data: present(await find(workspaceId, params.id)) }),
    }),

    endpoint({
      method: 'POST',
      path: '/notifications',
      level: 'member',
      audit: 'notification.created',
      summary: 'Create a notification',
      description:
        'The relay sends one notice when an incident begins, and one when it has ended. Incidents that are open already are announced, too.',
      body: newNotification,
      response: one(notification),
      version,
      status: 201,
      handle: async ({ body }, { workspaceId, actor }) => ({
        data: present(await notifications.insert(workspaceId, body, actorOf(actor), checkDestination)),
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
      body: z
        .strictObject({
          name,
          events,
          destination_id: destinationId,
          quiet_seconds: quietSeconds,
          silence_hours: silenceHours,
          is_active: isActive,
        })
        .partial(),
      response: one(notification),
      version,
      status: 200,
      checksVersion: true,
      handle: async ({ params, body }, { workspaceId, actor, checkVersion }) => {
        const checkCurrent = (current: Notification) => checkVersion(versionOf(current))
        const updated = await notifications.update(workspaceId, params.id, body, actorOf(actor), checkDestination, checkCurrent)
        if (!updated) throw notFound()
        return { data: present(updated) }
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
        if (!(await notifications.delete(workspaceId, params.id, actorOf(actor), check))) throw notFound()
      },
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
        await find(workspaceId, params.id)
        return toCursorPage(await noticeLog.list(params.id, query), query, presentNotice)
      },
    }),
  ]
}
