import { openEnrichmentTasks } from '../app/enrichment-tasks.ts'
import { openStores } from '../app/stores.ts'
import { createDocuments, type Document, type DueReason } from '../archive/document-list.ts'
import { consoleUrlOf } from '../base/console-url.ts'
import { countOf } from '../base/count-of.ts'
import { UserError } from '../base/errors.ts'
import { isId } from '../base/ids.ts'
import { createLog, type Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { systemActor, type AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { createInstallation } from '../db/installation.ts'
import type { OutboxMessage } from '../db/outbox.ts'
import type { Start } from '../db/starts.ts'
import { withDatabase } from '../db/with-database.ts'
import { createAttemptNow } from '../delivery/attempt-now.ts'
import { createRetry } from '../delivery/retry.ts'
import { businessObjectText } from '../domain/business-object.ts'
import { snakeCased } from '../domain/casing.ts'
import { endSentences, mostUrgentFirst, type DeliveryStatus } from '../domain/delivery-states.ts'
import { findEnrichmentsFor } from '../enrichment/enrichments.ts'
import { createRunAgain } from '../enrichment/run-again.ts'
import type { FilledCall } from '../enrichment/steps.ts'
import { createTry } from '../enrichment/try.ts'
import { openOutboundGuard } from '../security/outbound.ts'
import { openTemporal } from '../temporal/client.ts'
import { findWorkspace, workspaceNameOf } from '../workspace/administration.ts'
import { createWorkspaces, type Workspace } from '../workspace/workspaces.ts'
import { cellOf, tableOf } from './output.ts'
import { remedyOf } from './remedy.ts'
import { withLauncher } from './with-launcher.ts'

/** Documents of each workspace that `relay find` lists. */
export const foundMax = 50

interface Found {
  workspace: string
  workspaceId: string
  document: Document
}

const workspacesOf = async (db: Database, name: string | undefined): Promise<Workspace[]> =>
  name === undefined ? createWorkspaces(db).list() : [await findWorkspace(db, name)]

/** Asks Temporal if it answers, for a delivery whose attempt is due. */
export const askTemporal =
  (config: Config): DueReason =>
  async () => {
    const temporal = openTemporal(config)
    try {
      await temporal.ping()
      return 'worker'
    } catch {
      return 'temporal'
    } finally {
      await temporal.close()
    }
  }

const search = async (
  db: Database,
  workspace: string | undefined,
  conditions: { q: string } | { docId: string },
  dueReason?: DueReason,
): Promise<Found[]> => {
  const documents = createDocuments(db, dueReason)
  const found: Found[] = []
  for (const each of await workspacesOf(db, workspace)) {
    const { items } = await documents.search(each.id, { ...conditions, perPage: foundMax })
    found.push(...items.map((document) => ({ workspace: workspaceNameOf(each), workspaceId: each.id, document })))
  }
  return found
}

const findById = async (db: Database, workspace: string | undefined, id: string, dueReason?: DueReason): Promise<Found[]> => {
  const documents = createDocuments(db, dueReason)
  const workspaceId = await documents.findWorkspaceId(id)
  const owner = (await workspacesOf(db, workspace)).find((each) => each.id === workspaceId)
  return owner ? [{ workspace: workspaceNameOf(owner), workspaceId: owner.id, document: await documents.find(owner.id, id) }] : []
}

const present = ({ workspace, document }: Found) => {
  const { id, repoId, docId, compId, status, contentType, sizeBytes, receivedAt, supersededAt, legalHold } = document
  const { erpObjectType, erpObjectId, arObject, fileName, description } = document
  const deliveries = document.deliveries.map(({ destinationId, destinationName, status: state, attempts, path, ...delivery }) => {
    const { deliveredAt, receipt, nextAttemptAt, waitingFor, lastError, endedBy } = delivery
    const outcome = { deliveredAt, receipt, nextAttemptAt, waitingFor, lastError, endedBy }
    return { destinationId, destinationName, status: state, attempts, path, ...outcome }
  })
  const facts = { id, workspace, repoId, docId, compId, status, contentType, sizeBytes, receivedAt, supersededAt, legalHold }
  return snakeCased({ ...facts, erpObjectType, erpObjectId, arObject, fileName, description, deliveries })
}

export type FoundDocument = ReturnType<typeof present>

/**
 * `relay find`: the documents that people call by the text, newest first.
 * @throws `UserError` if the workspace does not exist
 */
export const findDocuments = async (db: Database, text: string, workspace?: string, dueReason?: DueReason): Promise<FoundDocument[]> =>
  (await search(db, workspace, { q: text }, dueReason)).map(present)

const findOne = async (db: Database, reference: string, workspace: string | undefined, dueReason?: DueReason): Promise<Found> => {
  const byId = isId(reference) ? await findById(db, workspace, reference, dueReason) : []
  const found = byId.length > 0 ? byId : await search(db, workspace, { docId: reference }, dueReason)
  if (found.length > 1) {
    const listed = found.map(({ workspace: name, document }) => `${document.id} (${name}, component ${document.compId})`).join(', ')
    throw new UserError(`There are several documents ${reference}. Give the id of one of them: ${listed}`)
  }
  if (found.length === 0) throw new UserError(`There is no document ${reference}. Search for it with: relay find`)
  return found[0]!
}

/** `relay show`. @param reference id or docId of a document. @throws `UserError` if there is none, or several */
export const showDocument = async (db: Database, reference: string, workspace?: string, dueReason?: DueReason) => {
  const found = await findOne(db, reference, workspace, dueReason)
  const { fields, enrichments } = await createDocuments(db).find(found.workspaceId, found.document.id)
  const shown = enrichments.map(({ enrichmentName: name, status, attempts, steps }) => ({ name, status, attempts, steps }))
  return { ...present(found), fields, enrichments: shown }
}

export type ShownDocument = Awaited<ReturnType<typeof showDocument>>

/** A complete enrichment is shown if optional fields are missing, or steps were skipped, with the reasons. */
const hasSomethingToSay = ({ status, steps }: ShownDocument['enrichments'][number]): boolean =>
  status !== 'complete' || steps.some(({ error }) => error !== null)

type Change = (
  db: Database,
  config: Config,
  request: { workspaceId: string; documentId: string; actor: AuditActor },
) => Promise<(OutboxMessage | Start)[]>

/** What the verbs change. `retry`: the failed and cancelled deliveries. `attempt`: those that wait. `enrich`: the business data. */
const changes = {
  retry: (db, config, request) => createRetry(db, config).retryDocument(request),
  attempt: (db, config, request) => createAttemptNow(db, config).attemptDocument(request),
  enrich: async (db, _, request) => {
    await createRunAgain(db)(request)
    return []
  },
} satisfies Record<string, Change>

/**
 * `relay retry`, `relay attempt` and `relay enrich`. Also sends the messages that follow.
 * @param reference id or docId of a document
 * @throws `UserError` or `AppError` if there is no such document, or nothing to change
 */
export const changeDocument = (
  config: Config,
  log: Log,
  verb: keyof typeof changes,
  reference: string,
  workspace?: string,
): Promise<ShownDocument> =>
  withLauncher(config, log, verb, async (db, launcher) => {
    const { workspaceId, document } = await findOne(db, reference, workspace)
    await launcher.sendAll(await changes[verb](db, config, { workspaceId, documentId: document.id, actor: systemActor }))
    return showDocument(db, document.id, workspace, askTemporal(config))
  })

/**
 * `relay enrich --try`: makes the calls for a document in this process, and stores nothing.
 * @throws `UserError` or `AppError` if there is no such document, or no enrichment
 */
export const tryDocument = (config: Config, reference: string, workspace?: string) =>
  withDatabase(config, 'enrich', async (db) => {
    const { workspaceId, document } = await findOne(db, reference, workspace)
    const enrichments = await findEnrichmentsFor(db, workspaceId, document.id)
    if (enrichments.length === 0) throw new UserError('No enrichment serves the repository of the document.')
    const outbound = openOutboundGuard(config)
    const closing: (() => Promise<unknown>)[] = [outbound.close]
    try {
      const { stores, keyRing } = await openStores(db, config, { outbound, log: createLog('silent') })
      const tryOn = createTry({
        db,
        config,
        contents: stores,
        outbound,
        keyRing,
        workspaces: createWorkspaces(db),
        installation: createInstallation(db),
        ...openEnrichmentTasks((close) => void closing.push(close)),
      })
      const tried = []
      for (const { id, name } of enrichments) {
        const request = { workspaceId, id, documentId: document.id, actor: systemActor }
        tried.push({ enrichment: name, steps: await tryOn(request, new AbortController().signal) })
      }
      return tried
    } finally {
      for (const close of closing) await close()
    }
  })

const callText = (call: FilledCall): string => {
  if (call.kind === 'e_invoice') return 'the document itself'
  return call.kind === 'http' ? `${call.method} ${call.url}` : call.function
}

/** Returns lines for people: each step with its request, and what it found. */
export const describeTry = (tried: Awaited<ReturnType<typeof tryDocument>>): string[] =>
  tried.flatMap(({ enrichment, steps }) => [
    `Enrichment ${enrichment}`,
    ...steps.flatMap(({ name, status, error, request, fields }) => [
      `Step       ${name}: ${status}${error === null ? '' : `. ${error}`}`,
      ...(request ? [`           ${callText(request)}`] : []),
      ...fields.map((field) => `           ${field.name} = ${field.value ?? `(${field.problem})`}`),
    ]),
  ])

const objectTextOf = ({ erp_object_type: type, erp_object_id: key }: FoundDocument): string | undefined =>
  businessObjectText({ type, key }, 'en')

const columnsOf = (document: FoundDocument): string[] => [
  cellOf(document.received_at),
  document.status,
  `${document.workspace} ${document.repo_id}`,
  document.doc_id,
  objectTextOf(document) ?? '-',
  document.deliveries.map(({ destination_name: name, status }) => `${name}: ${status}`).join(', ') || '-',
  document.id,
]

/** Returns a table for people. */
export const describeFound = (documents: FoundDocument[]): string[] => {
  if (documents.length === 0) return ['No document was found.']
  return tableOf(['RECEIVED (UTC)', 'STATUS', 'REPOSITORY', 'DOC ID', 'BUSINESS OBJECT', 'DELIVERIES', 'ID'], documents.map(columnsOf))
}

/** Says what an open delivery waits for. */
const waitText = ({ waiting_for: wait, next_attempt_at: next, destination_name: name }: FoundDocument['deliveries'][number]): string => {
  const texts = {
    attempt: `next attempt at ${next}`,
    slot: `waits for a slot of ${name} or a place in a worker`,
    circuit: `waits for the circuit of ${name}: its last attempts failed, next trial at ${next}`,
    connection: `held by connection ${wait!.connection_name ?? '(deleted)'}`,
    data: 'waits for business data, which the filter of its connection needs',
    paused: 'an operator has paused it in Temporal: unpause its workflow or activity there',
    worker: 'an attempt is due, and no worker has begun with it',
    temporal: 'an attempt is due, and Temporal does not answer',
  }
  return texts[wait!.reason]
}

/** Returns the digest of what was sent, and what the target calls it. */
const receiptText = ({ sha256, target }: NonNullable<FoundDocument['deliveries'][number]['receipt']>): string =>
  [`SHA-256 ${sha256}`, ...Object.entries(target).map(([name, value]) => `${name} ${String(value)}`)].join(', ')

/** Answers in one sentence if a document reached every destination: `3 of 4 destinations have it. Failed: Invoice bucket.` */
const verdictOf = ({ deliveries }: FoundDocument): string => {
  if (deliveries.length === 0) return 'No destination has it: when the document was received, no connection led to one.'
  const named = (label: string, statuses: DeliveryStatus[]) => {
    const names = deliveries.filter(({ status }) => statuses.includes(status)).map(({ destination_name: name }) => name)
    return names.length === 0 ? [] : [`${label}: ${names.join(', ')}.`]
  }
  const delivered = deliveries.filter(({ status }) => status === 'delivered').length
  return [
    deliveries.length === 1
      ? `${delivered === 1 ? 'Its destination has' : 'Its destination does not have'} it.`
      : `${delivered} of ${deliveries.length} destinations have it.`,
    ...named('Failed', ['failed']),
    ...named('Waiting', ['pending', 'held', 'retrying']),
    ...named('Cancelled', ['cancelled']),
  ].join(' ')
}

/** Returns the last error, what ended the delivery, and what to do about it. */
const errorLinesOf = (delivery: FoundDocument['deliveries'][number]): string[] => {
  const { last_error: error, ended_by: end } = delivery
  const remedy = remedyOf(delivery)
  return [
    ...(error ? [[error.code, error.message].filter(Boolean).join(': ')] : []),
    ...(end ? [endSentences[end]] : []),
    ...(remedy === undefined ? [] : [`What to do: ${remedy}`]),
  ].map((line) => `           ${line}`)
}

/** Adds the address in the console. */
export const withConsoleUrl = (baseUrl: string | undefined, document: ShownDocument) => ({
  ...document,
  console_url: consoleUrlOf(baseUrl, `documents/${document.id}`, document.workspace) ?? null,
})

/** Returns lines for people. */
export const describeDocument = (document: ReturnType<typeof withConsoleUrl>): string[] => {
  const key = [document.erp_object_type, document.erp_object_id, document.ar_object].filter(Boolean).join(' ')
  const object = objectTextOf(document)
  return [
    ...(key ? [`Object     ${object === undefined || key.startsWith(object) ? key : `${object} (${key})`}`] : []),
    `Document   ${document.doc_id}, component ${document.comp_id}, of repository ${document.repo_id} in ${document.workspace}`,
    ...(document.file_name === null ? [] : [`File       ${document.file_name}`]),
    ...(document.description === null ? [] : [`Description ${document.description}`]),
    `Id         ${document.id}`,
    `Status     ${document.status}. ${verdictOf(document)}`,
    `Received   ${document.received_at}, ${document.content_type}, ${document.size_bytes} bytes`,
    ...(document.legal_hold ? ['On hold    nothing removes it until its legal holds are lifted (relay hold list)'] : []),
    ...(document.superseded_at === null
      ? []
      : [`Replaced   or deleted at ${document.superseded_at}: the source system does not read it any more`]),
    ...Object.entries(document.fields).map(([name, value], index) => (index === 0 ? 'Fields' : '').padEnd(11) + `${name} = ${value}`),
    ...document.enrichments
      .filter(hasSomethingToSay)
      .flatMap(({ name, status, attempts, steps }) => [
        `Enrichment ${name ?? '(deleted)'}: ${status}, ${countOf(attempts, 'try', 'tries')}`,
        ...steps.flatMap((step) => (step.error === null ? [] : [`           ${step.name}: ${step.error}`])),
      ]),
    ...(document.console_url === null ? [] : [`Console    ${document.console_url}`]),
    ...mostUrgentFirst(document.deliveries).flatMap((delivery) => [
      `Delivery   to ${delivery.destination_name}: ${delivery.status}, ${countOf(delivery.attempts, 'attempt', 'attempts')}, path ${delivery.path}`,
      ...(delivery.delivered_at ? [`           delivered at ${delivery.delivered_at}`] : []),
      ...(delivery.receipt ? [`           receipt ${receiptText(delivery.receipt)}`] : []),
      ...(delivery.waiting_for ? [`           ${waitText(delivery)}`] : []),
      ...errorLinesOf(delivery),
    ]),
  ]
}
