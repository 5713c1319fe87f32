// Start options of the workflows. The client and the parent workflow use the same options, so all runs look alike to operators.
import { defineSearchAttributeKey, SearchAttributeType, type SearchAttributePair } from '@temporalio/common'
import { markdownText } from '../src/base/text.ts'
import {
  batchWorkflowId,
  bulkRetryWorkflowId,
  deliveryWorkflowId,
  documentMigrationWorkflowId,
  documentWorkflowId,
  noticeWorkflowId,
  sideWorkflowId,
  type DocumentKey,
} from './ids.ts'
import type {
  BatchInput,
  BatchSubject,
  BulkRetryInput,
  DeliveryInput,
  DocumentMigrationInput,
  DocumentInput,
  NoticeInput,
  SideWorkInput,
} from './messages.ts'

const keyword = (name: string) => defineSearchAttributeKey(name, SearchAttributeType.KEYWORD)

/** Search attributes of the relay. A SQL visibility store holds at most ten of type Keyword per namespace. */
export const searchAttributes = {
  workspace: keyword('RelayWorkspace'),
  repository: keyword('RelayRepository'),
  docId: keyword('RelayDocId'),
  /** `{type}/{id}`. Set at the start if the business object is known by then, else when the delivery first fails. */
  businessObject: keyword('RelayBusinessObject'),
  document: keyword('RelayDocument'),
  destination: keyword('RelayDestination'),
  destinationName: keyword('RelayDestinationName'),
  /** Set when a delivery leaves the straight path: `retrying` or `failed`, later `delivered` or `cancelled`. */
  status: keyword('RelayStatus'),
  /** Code of the last error, while a delivery is `retrying` or `failed`. */
  errorCode: keyword('RelayErrorCode'),
}

type Terms = Omit<DocumentInput, 'destinations'>

/** Returns `{repoId}/{docId}/{compId}` for a summary or details, as Markdown. */
export const documentName = ({ repoId, docId, compId }: DocumentKey): string => markdownText(`${repoId}/${docId}/${compId}`)

// A SQL visibility store refuses a longer value, and with it the whole record: the workflow would be in no list.
const attributeMaxCharacters = 255

/** The business object of a workflow, if it is known. Its type and id may be longer together than a search attribute. */
export const businessObjectAttribute = (value: string | undefined): SearchAttributePair[] =>
  value === undefined ? [] : [{ key: searchAttributes.businessObject, value: value.slice(0, attributeMaxCharacters).toWellFormed() }]

const documentAttributes = (terms: DocumentKey & Pick<Terms, 'businessObject'>): SearchAttributePair[] => [
  { key: searchAttributes.workspace, value: terms.workspace },
  { key: searchAttributes.repository, value: terms.repoId },
  { key: searchAttributes.docId, value: terms.docId },
  { key: searchAttributes.document, value: terms.documentId },
  ...businessObjectAttribute(terms.businessObject),
]

const deliveryAttributes = (input: DeliveryInput): SearchAttributePair[] => [
  ...documentAttributes(input),
  { key: searchAttributes.destination, value: input.destination.id },
  { key: searchAttributes.destinationName, value: input.destination.name },
]

/** Search attributes to start with, unless they are not registered: the server would refuse the workflow. */
interface Registration {
  registered: boolean
}

const withAttributes = (attributes: SearchAttributePair[], { registered }: Registration) =>
  registered ? { typedSearchAttributes: attributes } : {}

// 1 is the first, 5 the last. Tasks of a queue are handed out by priority if they have to wait. Without a key, a task has priority 3.
const priorities = { control: 1, quiet: 2, busy: 3, bulk: 4, migration: 5 } as const

/** How urgent work is: a document of a workspace that has nothing else under way, of one that has, part of a bulk operation, or of a migration. */
interface Urgent {
  urgency?: Exclude<keyof typeof priorities, 'control'> | undefined
}

// With fairness enabled, the server hands out the tasks of workspaces in turn, so a workspace with thousands of documents in line
// does not delay the others. Child workflows and activities inherit both keys. The server accepts 64 bytes.
const fairness = ({ workspace }: Pick<Terms, 'workspace'>, { urgency = 'quiet' }: Urgent) => ({
  priority: { fairnessKey: workspace.slice(0, 64), priorityKey: priorities[urgency] },
})

const control = { priority: { priorityKey: priorities.control } }

export const documentOptions = (input: DocumentInput, registration: Registration & Urgent) => ({
  workflowId: documentWorkflowId(input, input.revision),
  args: [input] as [DocumentInput],
  staticSummary: `${documentName(input)} to ${input.destinations.map((destination) => markdownText(destination.name)).join(', ')}`,
  ...fairness(input, registration),
  ...withAttributes(documentAttributes(input), registration),
})

export const deliveryOptions = (input: DeliveryInput, registration: Registration & Urgent) => ({
  workflowId: deliveryWorkflowId(input, input.destination.id),
  args: [input] as [DeliveryInput],
  staticSummary: `${documentName(input)} to ${markdownText(input.destination.name)} (${input.destination.connector})`,
  ...fairness(input, registration),
  ...withAttributes(deliveryAttributes(input), registration),
})

const batchSummary = ({ action, by, name: given }: BatchSubject) => {
  const name = markdownText(given)
  if (action === 'attempt') return `Attempt the waiting deliveries to ${name}`
  if (action === 'release') return `Release deliveries held by connection ${name}`
  return by === 'connection' ? `Cancel deliveries held by connection ${name}` : `Cancel deliveries to deleted destination ${name}`
}

export const batchOptions = (subject: BatchSubject) => ({
  workflowId: batchWorkflowId(subject),
  args: [{ subject, processed: 0 }] as [BatchInput],
  staticSummary: batchSummary(subject),
  ...control,
})

export const bulkRetryOptions = (input: BulkRetryInput, registration: Registration) => ({
  workflowId: bulkRetryWorkflowId(input),
  args: [input] as [BulkRetryInput],
  staticSummary: `Retry failed deliveries of ${input.workspace}`,
  ...control,
  ...withAttributes([{ key: searchAttributes.workspace, value: input.workspace }], registration),
})

export const noticeOptions = (input: NoticeInput, registration: Registration) => ({
  workflowId: noticeWorkflowId(input),
  args: [input] as [NoticeInput],
  staticSummary: `Send a notice of ${input.workspace}`,
  ...withAttributes([{ key: searchAttributes.workspace, value: input.workspace }], registration),
})

/** The kinds of side work: the type of the workflow, what its ids begin with, and what it does. */
export const sideWorkKinds = {
  events: { type: 'eventSubscription', idPrefix: 'event-subscription', summary: 'Send events' },
  enrichment: { type: 'enrichment', idPrefix: 'enrichment', summary: 'Fetch business data' },
  late_data: { type: 'lateData', idPrefix: 'late-data', summary: 'Bring late data' },
} as const

export type SideWorkKind = keyof typeof sideWorkKinds

export const sideWorkOptions = (kind: SideWorkKind, input: SideWorkInput, registration: Registration) => ({
  workflowId: sideWorkflowId(sideWorkKinds[kind].idPrefix, input),
  args: [input] as [SideWorkInput],
  staticSummary: `${sideWorkKinds[kind].summary} of ${input.workspace}: ${markdownText(input.name)}`,
  ...fairness(input, { urgency: 'bulk' }),
  ...withAttributes([{ key: searchAttributes.workspace, value: input.workspace }], registration),
})

export const documentMigrationOptions = (input: DocumentMigrationInput, registration: Registration) => ({
  workflowId: documentMigrationWorkflowId(input),
  args: [input] as [DocumentMigrationInput],
  staticSummary: `Copy documents of an old content server to ${input.workspace}`,
  ...fairness(input, { urgency: 'migration' }),
  ...withAttributes([{ key: searchAttributes.workspace, value: input.workspace }], registration),
})
