import { z } from 'zod'
import { isStorable } from '../base/text.ts'
import { dateFrom, dateTo, timestamp } from '../domain/date-range.ts'
import { deliveryEnds, deliveryStatuses, documentStatuses, waitReasons } from '../domain/delivery-states.ts'
import { enrichmentStatuses, stepStatuses } from '../domain/enrichment-states.ts'
import { receipt } from '../domain/receipt.ts'
import { metadataMaxCharacters } from '../domain/template.ts'
import { documentOrigins } from '../domain/upstream.ts'
import { errorCode, errorCodeText, flag, resourceId } from '../http/filters.ts'
import { connectorTypeName } from '../workspace/inputs.ts'
import { legalHoldScopes } from './legal-holds.ts'

// A document and its deliveries, as they are read, as every answer has them, and the conditions by which they are found.

const documentStatus = z.enum(documentStatuses).meta({ id: 'DocumentStatus' })
export const deliveryStatus = z.enum(deliveryStatuses).meta({ id: 'DeliveryStatus' })

const deliveryFields = z.object({
  destination_id: z.string(),
  destination_name: z.string(),
  status: deliveryStatus,
  delivered_at: timestamp.nullable(),
  attempts: z.int(),
  status_since: timestamp.describe('When the delivery got its status.'),
  next_attempt_at: timestamp
    .nullable()
    .describe(
      'When the next attempt of a `retrying` delivery is due, or the next trial of the circuit that the delivery waits for; otherwise null. It ' +
        'is past while the attempt is under way.',
    ),
  waiting_for: z
    .object({
      reason: z.enum(waitReasons).meta({ id: 'WaitReason' }),
      connection_id: z.string().nullable(),
      connection_name: z.string().nullable(),
    })
    .meta({ id: 'Wait' })
    .nullable()
    .describe(
      'Why an open delivery makes no attempt at the moment. `attempt`: the next one is due at `next_attempt_at`. `slot`: it waits for a ' +
        'slot of the destination or a place in a worker. `circuit`: the next trial of the destination is due at `next_attempt_at`. ' +
        '`connection`: this connection is inactive. `data`: its filter needs business data that is not known yet. `paused`: an operator has paused it in Temporal. `worker`: an attempt is due, and no worker has begun with it. `temporal`: an attempt is due, and Temporal does not answer. Null while an attempt is under way, and after the end.',
    ),
  last_error: z
    .object({ code: z.string().nullable(), message: z.string() })
    .meta({ id: 'DeliveryProblem' })
    .nullable()
    .describe('The error of the last attempt, or null if it succeeded. `code` is null if a person has ended the workflow in Temporal.'),
  ended_by: z
    .enum(deliveryEnds)
    .meta({ id: 'DeliveryEnd' })
    .nullable()
    .describe(
      'What ended a failed or cancelled delivery. `permanent_error`: the error is not retried automatically. `max_retries`, `retry_ttl_seconds`: this retry ' +
        'setting was the limit. `workflow_cancelled`, `workflow_terminated`: a person has ended the workflow in Temporal. ' +
        '`destination_deleted`, `connection_deleted`, `document_erased`: this was deleted. `connection_changed`: the connection does not lead ' +
        'to the destination any more. `content_removed`: the content is missing, and nobody has erased it. `check_ended`: the check of the repository that made the document ' +
        'has ended.',
    ),
})

export const documentAttributes = z.object({
  doc_id: z.string(),
  repo_id: z.string(),
  repository_name: z.string().describe('The name of the repository, for people.'),
  comp_id: z.string(),
  content_type: z.string(),
  file_name: z
    .string()
    .nullable()
    .describe('The name of the file that was brought in for the document, without folders. Null if none was.'),
  description: z.string().nullable().describe('What was told about the document, with its name.'),
  size_bytes: z.int(),
  status: documentStatus,
  origin: z
    .enum(documentOrigins)
    .meta({ id: 'DocumentOrigin' })
    .describe(
      '`source`: the source system has sent the document. `upstream`: the relay has fetched it from the content server that the source ' +
        'system used before. Such a document without deliveries is `delivered`.',
    ),
  content_retained: z.boolean().describe('Whether the bytes are kept and can be downloaded.'),
  legal_hold: z.boolean().describe('Whether the document is on legal hold: nothing removes it.'),
  acknowledged_at: timestamp
    .nullable()
    .describe('When an operator acknowledged the failed or discarded document, or replayed the request of the discarded one.'),
  received_at: timestamp,
  superseded_at: timestamp
    .nullable()
    .describe(
      'When the document was replaced (by the source system, or by a newer copy of the upstream) or deleted. The source system does not read ' +
        'it any more; deliveries continue, and copies stay. The requests of the `doc_id` tell what the source system did.',
    ),
  request_id: z.string().describe('The captured request that contained the document. It may have been removed since.'),
  deliveries: z.array(deliveryFields.meta({ id: 'Delivery' })),
})

export const legalHoldScope = z.enum(legalHoldScopes).meta({ id: 'LegalHoldScope' })

/** A hold that applies to a document. */
export const holdOfDocument = z
  .object({ id: z.string(), scope: legalHoldScope, reason: z.string().meta({ examples: ['Tax audit 2026'] }), created_at: timestamp })
  .meta({ id: 'DocumentLegalHold' })

export const stepOutcome = z.object({
  name: z.string(),
  status: z
    .enum(stepStatuses)
    .meta({ id: 'EnrichmentStepStatus' })
    .describe(
      'Of the last try. `skipped`: the step is for other documents. `waiting`: a value that the call or the condition needs is not known yet, or the relay was too busy to begin it. `incomplete`: the ' +
        'answer lacks a field. `failed`: there was no answer.',
    ),
  error: z
    .string()
    .nullable()
    .describe('Why the step is not done. If it is done: why fields that are optional have no value, or null if each has one.'),
  at: z.iso.datetime().describe('When the step ended.'),
})
export const enrichmentOfDocument = z
  .object({
    status: z
      .enum(enrichmentStatuses)
      .meta({ id: 'EnrichmentStatus' })
      .describe(
        '`pending`: the calls are repeated until `ends_at`. `complete`: every field was found that is not optional. `partial`: some were. `failed`: none was. `skipped`: its steps are for other documents. ' +
          'Deliveries do not depend on it.',
      ),
    enrichment_id: z.string().describe('The enrichment. It may have been deleted since.'),
    enrichment_name: z.string().nullable().describe('Its name. Null if it was deleted.'),
    steps: z.array(stepOutcome.meta({ id: 'EnrichmentStepOutcome' })),
    attempts: z.int().describe('The number of tries.'),
    waits_until: timestamp.describe('When the deliveries start, if the enrichment is not complete earlier.'),
    ends_at: timestamp.describe('When the calls are not repeated any more.'),
    updated_at: timestamp,
  })
  .meta({ id: 'DocumentEnrichment' })
const lateData = z
  .object({
    status: z
      .enum(['pending', 'updated', 'failed', 'not_possible'])
      .meta({ id: 'LateDataStatus' })
      .describe(
        '`pending`: it is being brought to the copy. `updated`: the copy has it. `failed`: it could not be brought, for the reason in `error`. ' +
          '`not_possible`: a destination of this kind cannot take it.',
      ),
    found_at: timestamp.describe('When it was found.'),
    updated_at: timestamp.nullable().describe('When the copy was last updated.'),
    error: z.string().nullable().describe('Why the last try has failed.'),
  })
  .meta({ id: 'LateData' })
  .nullable()
  .describe('Business data that was found after the delivery. Null if the copy was delivered with everything that is known.')

export const singleDelivery = deliveryFields
  .extend({
    path: z.string().describe('The location of the document at the destination.'),
    receipt: receipt
      .nullable()
      .describe(
        'What the destination has last acknowledged of the document. Null before, and if a newer document had replaced it by then.',
      ),
    late_data: lateData,
  })
  .meta({ id: 'SingleDelivery' })

const searchText = z.string().min(1).max(metadataMaxCharacters).refine(isStorable).optional()
const bytes = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional()

export const listConditions = {
  repo_id: z.string().optional().describe('Only documents of this repository (`repo_id`).'),
  status: documentStatus.optional().describe('Only documents with this status.'),
  acknowledged: flag.optional().describe('Only documents that an operator has acknowledged (`true`) or has not (`false`).'),
  date_from: dateFrom,
  date_to: dateTo,
  include: z.literal('metadata').optional().describe('`metadata`: each document with its business object, as in the single document.'),
}

export const searchConditions = {
  q: searchText.describe(
    'Only documents that people call by this text, in upper or lower case: the beginning of a `doc_id`, of a file name (also of a component that is one), of a business key or of the value of a field, or ' +
      'the last digits of a number, at least three. A business key is also found without its company code (the first four characters), by its parts, ' +
      'without leading zeros, with its type, and in every form in which the console shows it: `1900004711/2026`, `BKPF 100019000047112026` and ' +
      '`Invoice 1900004711, company 1000, 2026` find the same document. Several words must all be found.',
  ),
  doc_id: searchText.describe('Only documents with this `doc_id`.'),
  doc_id_prefix: searchText.describe('Only documents whose `doc_id` begins with this text.'),
  erp_object_type: searchText.describe('Only documents of business objects of this type, for example `BKPF`.'),
  erp_object_id: searchText.describe('Only documents of the business object with this key.'),
  ar_object: searchText.describe('Only documents of this document type of the source system.'),
  field: z
    .string()
    .max(metadataMaxCharacters)
    .refine(isStorable)
    .regex(/^[a-z][a-z0-9_]*:./, 'must be the name of a field, a colon, and a value')
    .transform((text) => ({ name: text.slice(0, text.indexOf(':')), value: text.slice(text.indexOf(':') + 1) }))
    .optional()
    .describe('Only documents with this value of a field of their enrichment, in upper or lower case: `vendor_name:Acme Ltd`.'),
  file_name: searchText.describe('Only documents with this file name that was brought in, in upper or lower case.'),
  legal_hold: flag.optional().describe('Only documents that are on legal hold (`true`) or are not (`false`).'),
  content_type: searchText.describe('Only documents with this content type, as the source system sent it.'),
  size_min: bytes.describe('Only documents of at least this number of bytes.'),
  size_max: bytes.describe('Only documents of at most this number of bytes.'),
  destination_id: resourceId.optional().describe('Only documents with a delivery to this destination.'),
  connection_id: resourceId.optional().describe('Only documents with a delivery that this connection has planned.'),
  connector_type: connectorTypeName.optional().describe('Only documents with a delivery through this connector.'),
  delivery_status: deliveryStatus
    .optional()
    .describe(
      'Only documents with a delivery of this status; to the destination, of the connection or through the connector, if one is given.',
    ),
  error_code: errorCode.describe(`Only documents with a delivery, of the other conditions on deliveries, ${errorCodeText}`),
}
