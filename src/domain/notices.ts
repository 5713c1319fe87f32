// Incidents that are announced to operators, and the types of the messages that announce their beginning and their end.
import { z } from 'zod'
import type { CamelCasedOutput } from './casing.ts'
import { relayStatuses } from './relay-state.ts'

/** Each kind of incident, by the name under which notifications subscribe to it, with what it means. */
export const incidentEvents = {
  'destination.failing': 'Attempts at a destination fail one after the other, or its circuit is open',
  'delivery.failed': 'Deliveries to a destination have failed with the same error code, and nobody has acknowledged them',
  'source.silent': 'The source system has sent nothing to a repository for `silence_hours`',
  'source.refused': 'The latest requests of the source system to a repository were all refused',
  'certificate.expiring':
    'A certificate expires soon: one that signed requests need, and no newer one is active, or the client certificate of a destination',
  'repository.not_connected': 'A repository receives documents, and no connection leads from it to a destination: they are discarded',
  'connection.holding': 'An inactive connection has held deliveries for 24 hours',
  'enrichment.failing': 'The calls of an enrichment fail for its latest documents: they are delivered without business data',
  'upstream.failing':
    'The earlier content server of a repository has failed for 5 minutes: documents that only it has, and new ones, are answered with 503',
  'content.altered':
    'A destination that alone has contents does not have some of them any more, or has other bytes: reads of these documents are answered with 503',
  'event_subscription.failing':
    'The receiver of an event subscription has not accepted the next event for 15 minutes, or has answered 410 and so stopped the subscription',
} as const

export type IncidentEvent = keyof typeof incidentEvents

export const incidentEventNames = Object.keys(incidentEvents) as [IncidentEvent, ...IncidentEvent[]]

// `source.recovered` ends `source.silent`.
const otherEnds: Partial<Record<IncidentEvent, string>> = { 'source.refused': 'source.accepted' }

/** Returns the name of the event that ends an incident: `destination.recovered` ends `destination.failing`. */
const recoveredName = (event: IncidentEvent) => otherEnds[event] ?? `${event.split('.')[0]!}.recovered`

/** `opened`: an incident has begun. `closed`: it has ended. */
export type Transition = 'opened' | 'closed'

/** Returns the type of the message about an incident, such as `relay.destination.failing`. */
export const noticeTypeOf = (event: IncidentEvent, transition: Transition): string =>
  `relay.${transition === 'opened' ? event : recoveredName(event)}`

/** The type of the message with which a notification is tested. */
export const testNoticeType = 'relay.notification.test'

/** The type of every message about an incident, in the order of the events. */
export const noticeTypes = incidentEventNames.flatMap((event) => [noticeTypeOf(event, 'opened'), noticeTypeOf(event, 'closed')])

export const noticeStatuses = ['pending', 'delivered', 'failed'] as const

/** Content of a notice, in the API, in the database and in a webhook. An attribute is absent if the incident has no such subject. */
export const noticeData = z
  .object({
    workspace: z.string().describe('`{userSlug}/{workspaceSlug}`'),
    incident_id: z.string(),
    summary: z.string().describe('What has happened, in a sentence.'),
    remedy: z.string().optional().describe('What to do.'),
    opened_at: z.iso
      .datetime()
      .describe('When the incident began, for example when the first of the failed attempts ended. The relay may have found it later.'),
    closed_at: z.iso.datetime().optional().describe('When the relay found that the incident had ended.'),
    console_url: z.string().optional().describe('Address in the console at which to look further, if RELAY_BASE_URL is set.'),
    count: z
      .int()
      .describe(
        'Failed attempts in a row, failed or held deliveries, discarded documents, refused requests, or documents without business data or with altered contents; 1 for other incidents.',
      ),
    destination: z.object({ id: z.string(), name: z.string(), type: z.string() }).meta({ id: 'NoticeDestination' }).optional(),
    repository: z.object({ id: z.string(), repo_id: z.string() }).meta({ id: 'NoticeRepository' }).optional(),
    connection: z.object({ id: z.string(), name: z.string() }).meta({ id: 'NoticeConnection' }).optional(),
    enrichment: z.object({ id: z.string(), name: z.string() }).meta({ id: 'NoticeEnrichment' }).optional(),
    subscription: z.object({ id: z.string(), name: z.string() }).meta({ id: 'NoticeSubscription' }).optional(),
    last_request_at: z.iso.datetime().optional().describe('When a silent source system last sent a request.'),
    certificate: z.object({ id: z.string(), auth_id: z.string(), valid_to: z.iso.datetime() }).meta({ id: 'NoticeCertificate' }).optional(),
    credentials_expire_at: z.iso.datetime().optional().describe('When the client certificate of the destination expires.'),
    error: z
      .object({ code: z.string().optional(), message: z.string().optional() })
      .meta({ id: 'NoticeError' })
      .optional()
      .describe('The latest error.'),
    document: z
      .object({
        id: z.string(),
        repo_id: z.string(),
        doc_id: z.string(),
        comp_id: z.string(),
        business_object: z.string().optional().describe('The business object as people read it, if it is known.'),
        console_url: z.string().optional().describe('Address of the document in the console, if RELAY_BASE_URL is set.'),
        workflow_id: z.string().describe('Id of the workflow of its delivery in Temporal.'),
        workflow_url: z.string().optional().describe('Address of the workflow in the Temporal UI, if TEMPORAL_UI_URL is set.'),
      })
      .meta({ id: 'NoticeDocument' })
      .optional()
      .describe('One of the documents that the incident concerns.'),
  })
  .meta({ id: 'NoticeData' })

export type NoticeData = CamelCasedOutput<typeof noticeData>

/** The types of the messages that tell the operator of the installation that deliveries have stopped, and that they go on. */
export const stallNoticeTypes: Record<Transition, string> = { opened: 'relay.stalled', closed: 'relay.recovered' }

/** Content of such a message. */
export const stallData = z
  .object({
    installation_id: z.string(),
    incident_id: z.string(),
    cause: z.enum(relayStatuses).exclude(['working']),
    summary: z.string().describe('What has happened, in a sentence.'),
    remedy: z.string().optional().describe('What to do.'),
    opened_at: z.iso.datetime().describe('When the oldest delivery that waits was due.'),
    closed_at: z.iso.datetime().optional().describe('When the relay found that deliveries are made again.'),
    console_url: z.string().optional().describe('Address of the console, if RELAY_BASE_URL is set.'),
  })
  .meta({ id: 'StallData' })
