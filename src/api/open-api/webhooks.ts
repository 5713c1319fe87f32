import { z } from 'zod'
import { eventNames, eventTypes, type EventName } from '../../domain/events.ts'
import {
  incidentEventNames,
  incidentEvents,
  noticeData,
  noticeTypeOf,
  stallData,
  stallNoticeTypes,
  testNoticeType,
  type IncidentEvent,
  type Transition,
} from '../../domain/notices.ts'
import { exampleIds } from './example-story.ts'
import { eventSchemaName, messageName, pascalCase } from './operation-names.ts'
import type { SchemaConverter } from './operations.ts'

const header = (name: string, example: string, description: string, required = true) => ({
  name,
  in: 'header',
  required,
  schema: { type: 'string' },
  description,
  example,
})

const headers = [
  header('webhook-id', exampleIds.notice, 'The id of the message, the same in every attempt to send it.'),
  header('webhook-timestamp', '1795338000', 'When this attempt was made, in seconds since 1970.'),
  header(
    'webhook-signature',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
    'One signature for each secret of the destination: `v1,` and base64. Absent if the destination has none.',
    false,
  ),
  header('x-relay-workspace', 'acme/invoices', 'The workspace, as in the body: `{userSlug}/{workspaceSlug}`.'),
  header('content-digest', 'sha-256=:I7X0xYfG3bk1mQ5TtJZ2QpHn8V0pGmE3rJ0t4u8Yx9s=:', 'The SHA-256 of the body (RFC 9530).'),
  header(
    'signature-input',
    'relay=("@method" "content-type" "content-digest" "webhook-id" "x-relay-event-type" "x-relay-workspace");created=1795338000;keyid="5f2b1c0a9d8e7f60";alg="hmac-sha256"',
    'What each signature of `signature` covers (RFC 9421). Absent like `webhook-signature`.',
    false,
  ),
  header(
    'signature',
    'relay=:K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=:',
    'One signature for each secret of the destination (RFC 9421). Absent like `webhook-signature`.',
    false,
  ),
]

const typeHeader = (type: string) => header('x-relay-event-type', type, 'The type of the message, as in the body.')

const summaryOf = (event: IncidentEvent, transition: Transition) =>
  transition === 'opened' ? incidentEvents[event] : `The incident ${event} has ended`

interface Webhook {
  type: string
  summary: string
  /** Names the webhook to which it is sent, and what is special about it. */
  description: string
  message: z.ZodObject
  /** What an answer 2xx means, and any other one. */
  accepted: string
  headers?: typeof headers
}

/** Describes a message by its type. */
const webhookOf = (
  { type, summary, description, message, accepted, headers: parameters = headers }: Webhook,
  converter: SchemaConverter,
) => {
  const schema = converter.schemaOf(message, 'response')
  const post = {
    operationId: `on${pascalCase(type)}`,
    summary,
    description,
    security: [],
    parameters: [...parameters, typeHeader(type)],
    requestBody: { required: true, content: { 'application/json': { schema, example: converter.responseExampleOf(schema) } } },
    responses: { '2XX': { description: accepted } },
  }
  return [type, { post }] as const
}

/** Returns the form of a message about `data`. */
const messageOf = (type: string, data: z.ZodType, id = messageName(type), timestamp = 'When the notice was written.') =>
  z.object({ type: z.literal(type), timestamp: z.iso.datetime().describe(timestamp), data }).meta({ id })

const noticeWebhook = (type: string, summary: string): Webhook => ({
  type,
  summary,
  description: 'Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).',
  message: messageOf(type, noticeData),
  accepted: 'The notice was accepted. After any other answer, the relay sends it again.',
})

// It concerns no workspace.
const stallHeaders = headers
  .filter(({ name }) => name !== 'x-relay-workspace')
  .map((each) => ({ ...each, example: each.example.replace(' "x-relay-workspace"', '') }))

const stallWebhook = (type: string, summary: string): Webhook => ({
  type,
  summary,
  description: 'Sent to the webhook of RELAY_NOTICES_FILE (Standard Webhooks, HTTP Message Signatures).',
  message: messageOf(type, stallData),
  accepted: 'The notice was accepted. After any other answer, the relay sends it again every minute.',
  headers: stallHeaders,
})

/** Business data that was found after the document was sent. */
const lateData = z
  .object({
    type: z.literal('document.metadata'),
    timestamp: z.iso.datetime().describe('When it was found.'),
    data: z
      .object({
        delivery_id: z.string().describe('As in the message that contained the document.'),
        document_id: z.string(),
        repo_id: z.string(),
        doc_id: z.string(),
        comp_id: z.string(),
        erp_object_type: z.string().nullable(),
        erp_object_id: z.string().nullable(),
        ar_object: z.string().nullable(),
        file_name: z.string().nullable(),
        description: z.string().nullable(),
        fields: z.record(z.string(), z.string()).describe('Everything that is known by now, by the names of the fields.'),
        path: z.string().describe('As in the message that contained the document.'),
        received_at: z.iso.datetime(),
      })
      .meta({ id: 'LateDocumentData' }),
  })
  .meta({ id: messageName('document.metadata') })

const lateDataWebhook: Webhook = {
  type: 'document.metadata',
  summary: 'Business data was found after the document was sent',
  description:
    'Sent to a destination of the kind webhook that has got the document (Standard Webhooks, HTTP Message Signatures), whatever its `format` is.',
  message: lateData,
  accepted: 'The data was accepted. After any other answer, the relay sends it again, for a day at most.',
}

const eventWebhook = (type: EventName): Webhook => ({
  type,
  summary: eventTypes[type].summary,
  description:
    'Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.',
  message: messageOf(type, eventTypes[type].data, eventSchemaName(type), 'When the event was written.'),
  accepted: 'The event was accepted. After any other answer, the relay sends it again, and later ones wait.',
})

const webhooks = (): Webhook[] => [
  ...incidentEventNames.flatMap((event) =>
    (['opened', 'closed'] as const).map((transition) => noticeWebhook(noticeTypeOf(event, transition), summaryOf(event, transition))),
  ),
  noticeWebhook(testNoticeType, 'A test of a notification'),
  stallWebhook(stallNoticeTypes.opened, 'Deliveries are not made: no worker runs, or Temporal does not answer'),
  stallWebhook(stallNoticeTypes.closed, 'Deliveries are made again'),
  lateDataWebhook,
  ...eventNames.map(eventWebhook),
]

/** Describes the messages that webhooks get beside documents, by their types. */
export const describeWebhooks = (converter: SchemaConverter) =>
  Object.fromEntries(webhooks().map((webhook) => webhookOf(webhook, converter)))
