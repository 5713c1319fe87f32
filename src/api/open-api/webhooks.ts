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

const webhookOf = (type: string, summary: string, converter: SchemaConverter) => {
  const message = z
    .object({
      type: z.literal(type),
      timestamp: z.iso.datetime().describe('When the notice was written.'),
      data: noticeData,
    })
    .meta({ id: messageName(type) })
  const schema = converter.schemaOf(message, 'response')
  const post = {
    operationId: `on${pascalCase(type)}`,
    summary,
    description: 'Sent to the webhook of a notification (Standard Webhooks, HTTP Message Signatures).',
    security: [],
    parameters: [...headers, typeHeader(type)],
    requestBody: { required: true, content: { 'application/json': { schema, example: converter.responseExampleOf(schema) } } },
    responses: { '2XX': { description: 'The notice was accepted. After any other answer, the relay sends it again.' } },
  }
  return [type, { post }] as const
}

// It concerns no workspace.
const stallHeaders = headers
  .filter(({ name }) => name !== 'x-relay-workspace')
  .map((each) => ({ ...each, example: each.example.replace(' "x-relay-workspace"', '') }))

const stallWebhook = (type: string, summary: string, converter: SchemaConverter) => {
  const message = z.object({ type: z.literal(type), timestamp: z.iso.datetime().describe('When the notice was written.'), data: stallData })
  const schema = converter.schemaOf(message.meta({ id: messageName(type) }), 'response')
  const post = {
    operationId: `on${pascalCase(type)}`,
    summary,
    description: 'Sent to the webhook of RELAY_NOTICES_FILE (Standard Webhooks, HTTP Message Signatures).',
    security: [],
    parameters: [...stallHeaders, typeHeader(type)],
    requestBody: { required: true, content: { 'application/json': { schema, example: converter.responseExampleOf(schema) } } },
    responses: { '2XX': { description: 'The notice was accepted. After any other answer, the relay sends it again every minute.' } },
  }
  return [type, { post }] as const
}

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

const lateDataWebhook = (converter: SchemaConverter) => {
  const schema = converter.schemaOf(lateData, 'response')
  const post = {
    operationId: 'onDocumentMetadata',
    summary: 'Business data was found after the document was sent',
    description:
      'Sent to a destination of the kind webhook that has got the document (Standard Webhooks, HTTP Message Signatures), whatever its `format` is.',
    security: [],
    parameters: [...headers, typeHeader('document.metadata')],
    requestBody: { required: true, content: { 'application/json': { schema, example: converter.responseExampleOf(schema) } } },
    responses: { '2XX': { description: 'The data was accepted. After any other answer, the relay sends it again, for a day at most.' } },
  }
  return ['document.metadata', { post }] as const
}

const eventWebhook = (event: EventName, converter: SchemaConverter) => {
  const { summary, data } = eventTypes[event]
  const message = z.object({ type: z.literal(event), timestamp: z.iso.datetime().describe('When the event was written.'), data })
  const schema = converter.schemaOf(message.meta({ id: eventSchemaName(event) }), 'response')
  const post = {
    operationId: `on${pascalCase(event)}`,
    summary,
    description:
      'Sent to the webhook of an event subscription (Standard Webhooks, HTTP Message Signatures). `webhook-id` is the id of the event.',
    security: [],
    parameters: [...headers, typeHeader(event)],
    requestBody: { required: true, content: { 'application/json': { schema, example: converter.responseExampleOf(schema) } } },
    responses: { '2XX': { description: 'The event was accepted. After any other answer, the relay sends it again, and later ones wait.' } },
  }
  return [event, { post }] as const
}

/** Describes the messages that webhooks get beside documents, by their types. */
export const describeWebhooks = (converter: SchemaConverter) =>
  Object.fromEntries([
    ...incidentEventNames.flatMap((event) =>
      (['opened', 'closed'] as const).map((transition) =>
        webhookOf(noticeTypeOf(event, transition), summaryOf(event, transition), converter),
      ),
    ),
    webhookOf(testNoticeType, 'A test of a notification', converter),
    stallWebhook(stallNoticeTypes.opened, 'Deliveries are not made: no worker runs, or Temporal does not answer', converter),
    stallWebhook(stallNoticeTypes.closed, 'Deliveries are made again', converter),
    lateDataWebhook(converter),
    ...eventNames.map((event) => eventWebhook(event, converter)),
  ])
