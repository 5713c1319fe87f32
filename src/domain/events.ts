// What programs can follow: the types of events, and what each says.
import { z } from 'zod'
import { receipt } from './receipt.ts'

const document = {
  document_id: z.string(),
  repo_id: z.string(),
  doc_id: z.string(),
  comp_id: z.string(),
  revision: z.int().describe('1 for the document as it was received. Delivering it again, after appends for example, is another revision.'),
}
const businessObject = { erp_object_type: z.string().nullable(), erp_object_id: z.string().nullable(), ar_object: z.string().nullable() }
const delivery = { ...document, destination_id: z.string(), attempts: z.int().describe('Attempts so far.') }
const end = {
  ended_by: z.string().nullable().describe('What ended the delivery, as in `deliveries[].ended_by` of the document.'),
  error_code: z.string().nullable().describe('The code of the last error of an attempt.'),
}

interface EventType {
  summary: string
  data: z.ZodObject
}

/** Each type of event, with what it means and what its `data` says. The triggers of migrations/0008_events.sql write it. */
export const eventTypes = {
  'document.received': {
    summary: 'A document was received and acknowledged',
    data: z
      .object({ ...document, content_type: z.string(), size_bytes: z.int(), request_id: z.string(), ...businessObject })
      .meta({ id: 'DocumentReceivedData' }),
  },
  'document.discarded': {
    summary: 'A document goes to no destination',
    data: z.object({ ...document, reason: z.string().describe('`no_connection` or `filter`.') }).meta({ id: 'DocumentDiscardedData' }),
  },
  'document.delivered': {
    summary: 'Every delivery of a document has ended, at least one of them with success',
    data: z.object(document).meta({ id: 'DocumentDeliveredData' }),
  },
  'document.failed': {
    summary: 'A delivery of a document has failed and is not repeated, or all were cancelled',
    data: z.object(document).meta({ id: 'DocumentFailedData' }),
  },
  'document.acknowledged': {
    summary: 'An operator has acknowledged that a document is not delivered',
    data: z.object(document).meta({ id: 'DocumentAcknowledgedData' }),
  },
  'document.metadata_updated': {
    summary: 'The business data of a document has changed: retrieve the document for it',
    data: z
      .object({ ...document, changed: z.string().describe('`business_object`, `file_name` (or the description), or `fields`.') })
      .meta({ id: 'DocumentMetadataUpdatedData' }),
  },
  'document.appended': {
    summary: 'The source system has appended to a document',
    data: z.object({ ...document, size_bytes: z.int().describe('With what was appended.') }).meta({ id: 'DocumentAppendedData' }),
  },
  'document.superseded': {
    summary: 'The source system has replaced a document by another one',
    data: z.object(document).meta({ id: 'DocumentSupersededData' }),
  },
  'document.deleted': {
    summary: 'The source system has deleted a document: it reads it no longer',
    data: z.object(document).meta({ id: 'DocumentDeletedData' }),
  },
  'document.erased': {
    summary: 'The content of a document was erased',
    data: z.object(document).meta({ id: 'DocumentErasedData' }),
  },
  'delivery.delivered': {
    summary: 'A destination has received a document',
    data: z
      .object({
        ...delivery,
        location: z.string().nullable().describe('Where the destination stored it, as it reported.'),
        receipt: receipt.nullable().describe('What the destination has acknowledged. Null if a newer document had replaced this one.'),
      })
      .meta({ id: 'DeliveryDeliveredData' }),
  },
  'delivery.failed': {
    summary: 'A delivery has failed and is not repeated unless it is retried',
    data: z.object({ ...delivery, ...end }).meta({ id: 'DeliveryFailedData' }),
  },
  'delivery.cancelled': {
    summary: 'A delivery was cancelled',
    data: z.object({ ...delivery, ...end }).meta({ id: 'DeliveryCancelledData' }),
  },
  'certificate.received': {
    summary: 'The source system has sent a certificate',
    data: z
      .object({
        certificate_id: z.string(),
        repository_id: z.string(),
        auth_id: z.string(),
        subject: z.string(),
        fingerprint_sha256: z.string(),
      })
      .meta({ id: 'CertificateReceivedData' }),
  },
} as const satisfies Record<string, EventType>

export type EventName = keyof typeof eventTypes

export const eventNames = Object.keys(eventTypes) as [EventName, ...EventName[]]

/** The place of an event in the order of all events: see docs/events.md. */
export interface EventPosition {
  epoch: number
  transaction: number
  number: number
}

export const eventIdPattern = /^[0-9a-f]{37}$/

export const beforeAllEvents: EventPosition = { epoch: 0, transaction: 0, number: 0 }

/** Digits of the parts of an id. Epochs are microseconds until 2112. 48 bits of transactions last for 8,000 years at a thousand a second. */
const digits = { epoch: 13, transaction: 12, number: 12 }

/** Returns the id of a position. Ids sort like positions. */
export const eventIdOf = ({ epoch, transaction, number }: EventPosition): string =>
  epoch.toString(16).padStart(digits.epoch, '0') +
  transaction.toString(16).padStart(digits.transaction, '0') +
  number.toString(16).padStart(digits.number, '0')

export const eventPositionOf = (id: string): EventPosition => ({
  epoch: Number.parseInt(id.slice(0, 13), 16),
  transaction: Number.parseInt(id.slice(13, 25), 16),
  number: Number.parseInt(id.slice(25), 16),
})

/** The error of the receiver of a subscription that wants no more events: 410 Gone. */
export const goneReceiver = 'http_410'
