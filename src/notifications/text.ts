import { visibleLine } from '../base/text.ts'
import { goneReceiver } from '../domain/events.ts'
import type { IncidentEvent, NoticeData, Transition } from '../domain/notices.ts'
import type { IncidentDetails } from './condition.ts'

type Subject = IncidentDetails & {
  /** How many, as text: `at least 1000` if no more were counted. */
  count: string
}

const destinationName = ({ destination }: Subject) => `${destination?.name} (${destination?.type})`
const errorName = ({ error }: Subject) => (error?.code === undefined ? 'without an error code' : `with ${error.code}`)
const certificateName = ({ certificate, repository, destination, ...rest }: Subject) =>
  destination
    ? `The client certificate of destination ${destinationName({ destination, ...rest })}`
    : `Certificate ${certificate?.authId} of repository ${repository?.repoId}`
const expiryOf = ({ certificate, credentialsExpireAt }: Subject) => (certificate?.validTo ?? credentialsExpireAt)?.slice(0, 10)
const few = (count: string, one: string, many: string) => `${count} ${count === '1' ? one : many}`

const summaries: Record<IncidentEvent, Record<Transition, (subject: Subject) => string>> = {
  'destination.failing': {
    opened: (subject) =>
      `Destination ${destinationName(subject)} fails: ${few(subject.count, 'attempt', 'attempts in a row')} without success.`,
    closed: (subject) => `Destination ${destinationName(subject)} no longer fails.`,
  },
  'delivery.failed': {
    opened: (subject) =>
      `${few(subject.count, 'delivery', 'deliveries')} to destination ${destinationName(subject)} failed ${errorName(subject)}.`,
    closed: (subject) =>
      `No delivery to destination ${destinationName(subject)} that failed ${errorName(subject)} needs attention any more.`,
  },
  'source.silent': {
    opened: ({ repository, lastRequestAt }) => `Repository ${repository?.repoId} has received no request since ${lastRequestAt}.`,
    closed: ({ repository }) => `The silence of repository ${repository?.repoId} has ended.`,
  },
  'source.refused': {
    opened: ({ repository, count, error }) =>
      `Repository ${repository?.repoId} has refused the latest ${few(count, 'request', 'requests')} of its source system, the last one with ${error?.code}.`,
    closed: ({ repository }) => `Repository ${repository?.repoId} no longer refuses every request of its source system.`,
  },
  'certificate.expiring': {
    opened: (subject) => `${certificateName(subject)} expires on ${expiryOf(subject)}.`,
    closed: (subject) => `${certificateName(subject)} no longer needs to be renewed.`,
  },
  'repository.not_connected': {
    opened: ({ repository, count }) =>
      `Repository ${repository?.repoId} has no connection to a destination and has discarded ${few(count, 'document', 'documents')}.`,
    closed: ({ repository }) => `Repository ${repository?.repoId} no longer discards documents for lack of a connection.`,
  },
  'connection.holding': {
    opened: ({ connection, count }) =>
      `Connection ${connection?.name} is inactive and holds ${few(count, 'delivery', 'deliveries')}, the oldest for more than 24 hours.`,
    closed: ({ connection }) => `Connection ${connection?.name} no longer holds deliveries.`,
  },
  'enrichment.failing': {
    opened: ({ enrichment, count }) =>
      `Enrichment ${enrichment?.name} fails: its latest ${few(count, 'document lacks', 'documents lack')} business data.`,
    closed: ({ enrichment }) => `Enrichment ${enrichment?.name} no longer fails.`,
  },
  'upstream.failing': {
    opened: ({ repository }) =>
      `The upstream of repository ${repository?.repoId} fails: documents that only it has, and new ones, are answered with 503.`,
    closed: ({ repository }) => `The upstream of repository ${repository?.repoId} no longer fails.`,
  },
  'content.altered': {
    opened: (subject) =>
      `Destination ${destinationName(subject)} does not have the content of ${few(subject.count, 'document', 'documents')} as it was delivered, and nobody else has it.`,
    closed: (subject) => `Destination ${destinationName(subject)} has every content again as it was delivered.`,
  },
  'event_subscription.failing': {
    opened: ({ subscription, destination, count, error }) =>
      error?.code === goneReceiver
        ? `Event subscription ${subscription?.name} was stopped: ${destination?.name} answered 410 Gone.`
        : `Event subscription ${subscription?.name} is behind: ${destination?.name} has not accepted the next event in ${few(count, 'attempt', 'attempts')}.`,
    closed: ({ subscription }) => `Event subscription ${subscription?.name} no longer fails.`,
  },
}

/** Returns a sentence that says what has begun or ended. It is also true if the subject of the incident was deleted. */
export const summaryOf = (event: IncidentEvent, transition: Transition, subject: Subject): string => summaries[event][transition](subject)

/** Returns the page of the console on which an operator looks further. */
export const consolePathOf = (
  event: IncidentEvent,
  { destination, repository, connection, enrichment, subscription, document }: IncidentDetails,
): string => {
  const repoId = encodeURIComponent(repository?.repoId ?? '')
  const paths: Record<IncidentEvent, string> = {
    'destination.failing': `destinations/${destination?.id}`,
    'delivery.failed': 'attention',
    'source.silent': `requests?repo_id=${repoId}`,
    'source.refused': `repositories/${repository?.id}`,
    'certificate.expiring': destination ? `destinations/${destination.id}` : `repositories/${repository?.id}`,
    'repository.not_connected': 'attention',
    'connection.holding': `connections/${connection?.id}`,
    'enrichment.failing': `enrichments/${enrichment?.id}?document=${document?.id}`,
    'upstream.failing': `repositories/${repository?.id}`,
    'content.altered': `documents/${document?.id}`,
    'event_subscription.failing': `subscriptions/${subscription?.id}`,
  }
  return paths[event]
}

interface Rendered {
  transition: Transition
  data: NoticeData
  /** Name of the notification. */
  notification: string
}

export const subjectOf = ({ transition, data }: Pick<Rendered, 'transition' | 'data'>): string =>
  `${transition === 'opened' ? 'Incident' : 'Recovered'} in ${data.workspace}: ${data.summary}`

/** Returns the text of a mail. Each line is one line, whatever the texts of others in it contain. */
const mailOf = (lines: string[]): string => lines.map(visibleLine).join('\n')

const row = (label: string, value: string | undefined): string[] => (value === undefined ? [] : [`${`${label}:`.padEnd(13)}${value}`])

/** Returns the text of a mail, for people. */
export const textOf = ({ transition, data, notification }: Rendered): string => {
  const { destination, repository, connection, enrichment, subscription, error, document } = data
  const errorText = [error?.code, error?.message].filter((part) => part !== undefined).join(': ')
  return mailOf([
    data.summary,
    '',
    ...row('Workspace', data.workspace),
    ...row('Console', data.consoleUrl),
    ...row('Since', data.openedAt),
    ...row('Ended', data.closedAt),
    ...row('Destination', destination && `${destination.name}, ${destination.type}, ${destination.id}`),
    ...row('Repository', repository && `${repository.repoId}, ${repository.id}`),
    ...row('Connection', connection && `${connection.name}, ${connection.id}`),
    ...row('Enrichment', enrichment && `${enrichment.name}, ${enrichment.id}`),
    ...row('Subscription', subscription && `${subscription.name}, ${subscription.id}`),
    ...row('Last request', data.lastRequestAt),
    ...row('Last error', errorText || undefined),
    ...row('About', document?.businessObject),
    ...row('Document', document && `${document.repoId}/${document.docId}/${document.compId}, ${document.id}`),
    ...row('Its page', document?.consoleUrl),
    ...row('Workflow', document?.workflowUrl ?? document?.workflowId),
    ...(transition === 'closed' || data.remedy === undefined ? [] : ['', 'What to do:', `  ${data.remedy}`]),
    '',
    `Sent by the notification ${notification} of Document Relay.`,
    '',
  ])
}

/** Returns the sentence of a test. @param notification its name */
export const testSummaryOf = (notification: string): string =>
  `This is a test of the notification ${notification} of Document Relay. No incident has begun.`

/** Returns the text of the mail of a test, for people. */
export const testTextOf = ({ workspace, summary, consoleUrl }: NoticeData): string =>
  mailOf([summary, '', ...row('Workspace', workspace), ...row('Console', consoleUrl), ''])
