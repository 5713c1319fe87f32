import { z } from 'zod'
import { idPattern } from '../../base/ids.ts'
import {
  endSentences,
  mostUrgentFirst,
  deliveryStatuses,
  documentStatuses,
  failureStatuses,
  type DeliveryEnd,
} from '../../domain/delivery-states.ts'
import type { KeyLevel } from '../../security/levels.ts'
import { remedyOf, type DeliveryWithError } from '../remedy.ts'
import type { Json } from './relay.ts'

export interface Tool {
  name: string
  description: string
  method: 'GET' | 'POST'
  /** Path of the operation, relative to the workspace. An input with the name of a parameter of the path replaces it. */
  path: string
  input: z.ZodObject
  /** What every call sends. */
  always?: Record<string, string>
  level: KeyLevel
  /** If the tool changes something: whether that concerns many documents, and whether a second call changes nothing. */
  changes?: { isWide: boolean; isIdempotent: boolean }
  /** The longest list of an answer. By default a page. */
  listMax?: number
  /** Adds to the answer. */
  explain?: (answer: Json) => Json
}

export const pageRows = 20

const id = (what: string) => z.string().regex(idPattern).describe(`Id of the ${what}`)
const text = (what: string, maxLength = 255) => z.string().min(1).max(maxLength).describe(what)
const time = (what: string) => text(`${what} A date, or a time like 2026-11-21T09:00:00Z`, 40)
const dates = {
  date_from: time('Start of the range, inclusive.').optional(),
  date_to: time('End of the range, inclusive.').optional(),
}
const perPage = z.int().min(1).max(pageRows).default(pageRows).describe('Rows of an answer')
const pages = { page: z.int().min(1).max(1_000_000).default(1).describe('Page number'), per_page: perPage }
const waitSeconds = z.int().min(0).max(30)
const dryRun = z.boolean().default(true).describe('Only count the documents. Pass false to change them')
const documentId = z.strictObject({ id: id('document') })

type Delivery = DeliveryWithError & { ended_by: DeliveryEnd | null }

/** Adds to each delivery what has ended it and what to do, and puts those that need attention first. */
const explainDeliveries = (answer: Json): Json => {
  const { attributes } = answer.data
  const deliveries = mostUrgentFirst(attributes.deliveries as Delivery[]).map((delivery) => ({
    ...delivery,
    end_explained: delivery.ended_by === null ? null : endSentences[delivery.ended_by],
    remedy: remedyOf(delivery) ?? null,
  }))
  return { ...answer, data: { ...answer.data, attributes: { ...attributes, deliveries } } }
}

const readTools: Tool[] = [
  {
    name: 'find_documents',
    description:
      'Finds documents, newest first. Without a condition, the newest. Continue with before = meta.next_cursor until that is null: a page may have few rows, or none.',
    method: 'GET',
    path: '/documents/search',
    input: z.strictObject({
      q: text(
        'doc_id, business key or its parts (with or without type, company code, leading zeros), or beginning of a field; or last digits',
      ).optional(),
      repo_id: text('repo_id of the repository').optional(),
      status: z.enum(documentStatuses).optional(),
      acknowledged: z.boolean().describe('Whether an operator has acknowledged the failure').optional(),
      erp_object_type: text('Type of the business object, for example BKPF').optional(),
      erp_object_id: text('Key of the business object').optional(),
      field: text('Value of a field of the enrichment: vendor_name:Acme Ltd').optional(),
      destination_id: id('destination').optional(),
      delivery_status: z.enum(deliveryStatuses).describe('Status of one delivery').optional(),
      error_code: text('Code of the last error of a delivery, or none', 100).optional(),
      ...dates,
      before: text('meta.next_cursor of the page before').optional(),
      per_page: perPage,
    }),
    always: { include: 'metadata' },
    level: 'viewer',
  },
  {
    name: 'get_document',
    description:
      'Returns a document with its business data and its deliveries, those that need attention first: what each waits for (waiting_for, next_attempt_at), its last error, why it ended (end_explained) and what to do (remedy).',
    method: 'GET',
    path: '/documents/{id}',
    input: documentId.extend({
      wait_seconds: waitSeconds.default(0).describe('Wait as long for a final status'),
    }),
    level: 'viewer',
    explain: explainDeliveries,
  },
  {
    name: 'list_attempts',
    description:
      'Lists the attempts to deliver a document, oldest first: time, duration, outcome, error, and what the target has answered.',
    method: 'GET',
    path: '/documents/{id}/attempts',
    input: documentId.extend(pages),
    level: 'viewer',
  },
  {
    name: 'list_failures',
    description:
      'Groups the failed deliveries of documents that nobody has acknowledged by destination and error, the largest group first. Begin here to see what is wrong.',
    method: 'GET',
    path: '/failures',
    input: z.strictObject({
      status: z.enum(failureStatuses).default('failed'),
      destination_id: id('destination').optional(),
      min_age_seconds: z.int().min(0).max(31_536_000).describe('In this status for at least as long').optional(),
      ...pages,
    }),
    level: 'viewer',
  },
  {
    name: 'list_destinations',
    description:
      'Lists the destinations with their state: last error, last delivery, warnings, circuit (open: no attempts until next_trial_at).',
    method: 'GET',
    path: '/destinations',
    input: z.strictObject(pages),
    level: 'viewer',
  },
  {
    name: 'get_destination',
    description: 'Returns a destination with its state, its settings without credentials, and the connections that lead to it.',
    method: 'GET',
    path: '/destinations/{id}',
    input: z.strictObject({ id: id('destination') }),
    level: 'viewer',
  },
  {
    name: 'list_discarded',
    description: 'Counts, for each repository, the documents that were discarded because no connection led to a destination.',
    method: 'GET',
    path: '/discarded',
    input: z.strictObject(pages),
    level: 'viewer',
  },
  {
    name: 'follow_events',
    description:
      'Returns what has happened to documents, oldest first. Begin with after = latest, then pass after = meta.next_cursor of each answer. Without after, begins with the oldest event that is kept.',
    method: 'GET',
    path: '/events',
    input: z.strictObject({
      after: text('meta.next_cursor of the answer before, or latest').optional(),
      types: text('Types, separated by commas: document.delivered,document.failed', 1_000).optional(),
      per_page: perPage,
      wait_seconds: waitSeconds.default(0).describe('Wait as long for an event'),
    }),
    level: 'viewer',
  },
  {
    name: 'statistics',
    description:
      'Counts documents, deliveries, attempts and errors of a range, by default the last 24 hours, with the oldest open deliveries and the time that deliveries take.',
    method: 'GET',
    path: '/stats',
    input: z.strictObject({
      ...dates,
      repo_id: text('repo_id of the repository').optional(),
      destination_id: id('destination').optional(),
    }),
    level: 'viewer',
    // The longest range has 92 days.
    listMax: 100,
  },
]

const changeTools: Tool[] = [
  {
    name: 'retry_document',
    description:
      'Retries the failed and cancelled deliveries of a document. Remove the cause of the failure first. Then wait with get_document.',
    method: 'POST',
    path: '/documents/{id}/retry',
    input: documentId,
    level: 'member',
    changes: { isWide: false, isIdempotent: true },
  },
  {
    name: 'attempt_now',
    description:
      'Makes the next attempt of the deliveries of a document that wait for one at once. It uses up the retry budget like any other.',
    method: 'POST',
    path: '/documents/{id}/attempt',
    input: documentId,
    level: 'member',
    changes: { isWide: false, isIdempotent: false },
  },
  {
    name: 'acknowledge_document',
    description:
      'Marks a failed or discarded document as one that will not be delivered. It is then no longer in list_failures or list_discarded. ' +
      'Deliveries that are still open go on: meta.open_deliveries names them.',
    method: 'POST',
    path: '/documents/{id}/acknowledge',
    input: documentId,
    level: 'member',
    changes: { isWide: false, isIdempotent: true },
  },
  {
    name: 'retry_failures',
    description:
      'Retries all failed deliveries to a destination, in the background: a group of list_failures. Counts them first, with dry_run.',
    method: 'POST',
    path: '/documents/retry',
    input: z.strictObject({
      destination_id: id('destination'),
      error_code: text('Only deliveries whose last error has this code', 100).optional(),
      dry_run: dryRun,
    }),
    level: 'member',
    changes: { isWide: true, isIdempotent: true },
  },
  {
    name: 'replay_discarded',
    description:
      'Takes the discarded documents of a repository again, in the background, so that they are delivered. Counts them first, with dry_run. Connect the repository first.',
    method: 'POST',
    path: '/documents/replay',
    input: z.strictObject({ repo_id: text('repo_id of the repository'), dry_run: dryRun }),
    level: 'admin',
    changes: { isWide: true, isIdempotent: true },
  },
]

export const tools: readonly Tool[] = [...readTools, ...changeTools]
