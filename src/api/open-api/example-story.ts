/*
 * The story that the examples of the API tell:
 *
 * 08:30  an administrator connects the repository Z1 to the destination Invoice archive, and has incidents and events sent to Operations
 * 09:00  the invoice arrives, and its delivery fails: the bucket does not know the access key
 * 09:01  the incident is announced
 * 09:10  the administrator saves another access key, and retries what has failed; the invoice is delivered
 * 09:11  the end of the incident is announced
 *
 * An answer shows what a client gets at its time in the story: a list of failures before 09:10, a document after it.
 */

/** Ids of the story, by the type of the resource. */
export const exampleIds = {
  api_key: '01K9R4B6ZD8M2V7X0QF3N5T1CK',
  audit_log: '01K9R4B6ZD8M2V7X0QF3N5T1C4',
  bulk_retry: '01K9R4B6ZD8M2V7X0QF3N5T1CX',
  captured_request: '01K9R4B6ZD8M2V7X0QF3N5T1CE',
  certificate: '01K9R4B6ZD8M2V7X0QF3N5T1CM',
  connection: '01K9R4B6ZD8M2V7X0QF3N5T1CB',
  connector_type: 'objstore',
  delivery_attempt: '01K9R4B6ZD8M2V7X0QF3N5T1C1',
  destination: '01K9R4B6ZD8M2V7X0QF3N5T1CG',
  document_migration: '01K9R4B6ZD8M2V7X0QF3N5T1D5',
  destination_stats: '01K9R4B6ZD8M2V7X0QF3N5T1CG',
  discarded_group: 'Z1',
  document: '01K9R4B6ZD8M2V7X0QF3N5T1CF',
  enrichment: '01K9R4B6ZD8M2V7X0QF3N5T1CS',
  event: '660b0a182de650000000a91c4000000002f17',
  event_subscription: '01K9R4B6ZD8M2V7X0QF3N5T1CV',
  failure_group: '01K9R4B6ZD8M2V7X0QF3N5T1CG-failed-credentials_refused',
  legal_hold: '01K9R4B6ZD8M2V7X0QF3N5T1D6',
  manifest: '2026-11-21',
  notice: '01K9R4B6ZD8M2V7X0QF3N5T1CP',
  notification: '01K9R4B6ZD8M2V7X0QF3N5T1CQ',
  relay: '01K9R4B6ZD8M2V7X0QF3N5T1CW',
  repository: '01K9R4B6ZD8M2V7X0QF3N5T1CH',
  settings: '01K9R4B6ZD8M2V7X0QF3N5T1CW',
  stats: '01K9R4B6ZD8M2V7X0QF3N5T1CW',
} as const

/** The webhook to which incidents and events are sent. */
export const operationsId = '01K9R4B6ZD8M2V7X0QF3N5T1CY'
/** The incident of the failed delivery. */
export const incidentId = '01K9R4B6ZD8M2V7X0QF3N5T1CN'

/** Names of what the administrator creates. */
export const names = {
  connection: 'Invoices to the archive',
  destination: 'Invoice archive',
  enrichment: 'MM invoices',
  eventSubscription: 'Data warehouse',
  notification: 'On call',
  repository: 'Incoming invoices',
}

/** Times of the story. */
export const at = {
  setUp: '2026-11-21T08:30:00.000Z',
  received: '2026-11-21T09:00:00.000Z',
  answered: '2026-11-21T09:00:00.184Z',
  attempted: '2026-11-21T09:00:02.816Z',
  failed: '2026-11-21T09:00:03.000Z',
  announced: '2026-11-21T09:01:00.000Z',
  announcedEnd: '2026-11-21T09:01:00.184Z',
  mended: '2026-11-21T09:10:00.000Z',
  retried: '2026-11-21T09:10:30.000Z',
  attemptedAgain: '2026-11-21T09:10:30.500Z',
  delivered: '2026-11-21T09:10:30.684Z',
  recovered: '2026-11-21T09:11:00.000Z',
}

/** Why the delivery fails. */
export const error = { code: 'credentials_refused', message: 'The bucket invoices answered 403 InvalidAccessKeyId' }
/** The invoice. */
export const document = { repo_id: 'Z1', doc_id: '005056B5A3F21EEFA9C1D04F7B6E8C11', comp_id: 'data' }
/** What the invoice is about in the source system. The relay asks for it after the receipt. */
export const businessObject = { erp_object_type: 'BUS2081', erp_object_id: '51056001232026', ar_object: 'ZFIINVOICE' }
export const documentPath = `${document.repo_id}/${document.doc_id}/${document.comp_id}`
export const certificate = { auth_id: 'CN=SAP,O=ACME,C=DE', valid_to: '2036-11-21T09:00:00.000Z' }
