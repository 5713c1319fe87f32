import { consoleUrlOf } from '../../base/console-url.ts'
import { remedyFor, type FailedThing } from '../../connectors/error-codes.ts'
import { toCamelCase } from '../../domain/casing.ts'
import {
  incidentEventNames,
  noticeData,
  noticeTypeOf,
  stallNoticeTypes,
  type IncidentEvent,
  type Transition,
} from '../../domain/notices.ts'
import { refusals } from '../../domain/refusal-codes.ts'
import { stallDataOf } from '../../notifications/stalled.ts'
import { consolePathOf, summaryOf } from '../../notifications/text.ts'
import { at, certificate, document, documentPath, error, exampleIds, incidentId, names, operationsId } from './example-story.ts'
import { messageName } from './operation-names.ts'

const baseUrl = 'https://relay.example.com'
const workspace = 'acme/invoices'
const subject = { id: exampleIds.destination, name: names.destination, type: 'objstore' }
const workflowId = `document/acme/invoices/${documentPath}/${exampleIds.document}/${exampleIds.destination}`
const failedDocument = {
  id: exampleIds.document,
  ...document,
  business_object: 'Incoming invoice 5105600123, 2026',
  console_url: consoleUrlOf(baseUrl, `documents/${exampleIds.document}`, workspace),
  workflow_id: workflowId,
  workflow_url: `https://temporal.example.com/namespaces/default/workflows/${encodeURIComponent(workflowId)}`,
}
const ofRepository = { repository: { id: exampleIds.repository, repo_id: document.repo_id } }
const ofTarget = (failed: FailedThing) => ({
  destination: subject,
  error,
  remedy: remedyFor(error.code, names.destination, failed),
  document: failedDocument,
})
/** What a notice says of each kind of incident. The first two belong to the story, the others happen in none. */
const subjects = {
  'destination.failing': ofTarget('retried'),
  'delivery.failed': ofTarget('group'),
  'source.silent': { ...ofRepository, last_request_at: at.received },
  'source.refused': { ...ofRepository, error: { code: 'signature_invalid' }, remedy: refusals.signature_invalid.remedy },
  'certificate.expiring': { ...ofRepository, certificate: { id: exampleIds.certificate, ...certificate } },
  'repository.not_connected': ofRepository,
  'connection.holding': { connection: { id: exampleIds.connection, name: names.connection } },
  'enrichment.failing': { enrichment: { id: exampleIds.enrichment, name: names.enrichment }, document: failedDocument },
  'upstream.failing': ofRepository,
  'content.altered': { destination: subject, error: { code: 'content_altered' }, document: failedDocument },
  'event_subscription.failing': {
    subscription: { id: exampleIds.event_subscription, name: names.eventSubscription },
    destination: { id: operationsId, name: 'Operations', type: 'webhook' },
  },
} satisfies Record<IncidentEvent, object>

const noticeOf = (incident: IncidentEvent, transition: Transition) => {
  const about: (typeof subjects)[IncidentEvent] & { document?: object } = subjects[incident]
  const details = toCamelCase(noticeData, about as never)
  return {
    workspace,
    incident_id: incidentId,
    summary: summaryOf(incident, transition, { ...details, count: '1' }),
    opened_at: at.failed,
    ...(transition === 'closed' && { closed_at: at.recovered }),
    console_url: consoleUrlOf(baseUrl, consolePathOf(incident, details), workspace),
    count: 1,
    ...about,
  }
}
/** The notice of the story. */
export const exampleNotice = noticeOf('delivery.failed', 'opened')

const stallOf = (transition: Transition) => ({
  timestamp: transition === 'opened' ? at.announced : at.recovered,
  data: stallDataOf(
    { id: incidentId, cause: 'no_worker', openedAt: at.failed, closedAt: transition === 'opened' ? null : at.recovered },
    '01K9R4B6ZD8M2V7X0QF3N5T1C0',
    baseUrl,
  ),
})

/** The examples of the messages about incidents and about the installation, by the names of their schemas. */
export const noticeMessages = Object.fromEntries([
  ...(['opened', 'closed'] as const).map((transition) => [messageName(stallNoticeTypes[transition]), stallOf(transition)]),
  ...incidentEventNames.flatMap((incident) =>
    (['opened', 'closed'] as const).map((transition) => [
      messageName(noticeTypeOf(incident, transition)),
      { timestamp: transition === 'opened' ? at.announced : at.recovered, data: noticeOf(incident, transition) },
    ]),
  ),
])
