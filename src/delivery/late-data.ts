import { createHash } from 'node:crypto'
import { Counter, type Metric } from 'prom-client'
import type { LateDataInput, LateDataOutcome } from '../../workflows/messages.ts'
import { createConcurrencyLimit } from '../base/concurrency-limit.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { callTarget, type CallTargetDeps } from '../connectors/call-target.ts'
import { DeliveryError, type Connector, type DeliveredCopy, type FindConnector } from '../connectors/connector.ts'
import { connectorTypes } from '../connectors/index.ts'
import { propertiesOf } from '../connectors/target.ts'
import { record, systemActor } from '../db/audit.ts'
import { createStatement, type Database, type Transaction } from '../db/database.ts'
import { dueInMs } from '../db/due.ts'
import { addMessages, type OutboxMessage } from '../db/outbox.ts'
import type { TemplateDocument } from '../domain/template.ts'
import type { DeliveryJob } from './delivery-job.ts'
import { hasNewerCopy } from './newer-copy.ts'
import type { DeliveryRef } from './transition.ts'

// Data of a document that is found after a delivery has succeeded is brought to the copy without the bytes: a workflow for each copy.

/** A delivered copy, with what is known of the document now. */
interface Copy extends TemplateDocument {
  documentId: string
  destinationId: string
  destinationName: string
  connector: string
  config: Record<string, unknown>
  credentialsSealed: Buffer
  workspaceId: string
  workspace: string
  connectionId: string
  path: string
  location: string | null
  /** Templates by name. */
  properties: Record<string, string>
  /** Of what the copy has. Null if that is not known. */
  digest: string | null
  foundAt: Date | null
  /** What the last try has left. Null if the copy was delivered without data. */
  state: 'current' | 'pending' | 'updated' | 'failed' | 'not_possible' | null
  error: string | null
  /** Time until the next try. Null if it is due. */
  dueInMs: number | null
}

/** SQL: the delivered copies of a document, unless a newer document has replaced them. */
const copiesOf = (condition: string) => `
  select
    deliveries.document_id as "documentId", destinations.id as "destinationId", destinations.name as "destinationName",
    connector_type as connector, config, credentials_sealed as "credentialsSealed", deliveries.workspace_id as "workspaceId",
    user_slug || '/' || workspace_slug as workspace, deliveries.connection_id as "connectionId", deliveries.path, location,
    repo_id as "repoId", doc_id as "docId", comp_id as "compId", content_type as "contentType", received_at as "receivedAt",
    erp_object_type as "erpObjectType", erp_object_id as "erpObjectId", ar_object as "arObject", coalesce(fields, '{}') as fields,
    coalesce((select settings -> 'properties' from connections where connections.id = deliveries.connection_id), '{}') as properties,
    delivery_metadata.digest, found_at as "foundAt", delivery_metadata.status as state, error, ${dueInMs('next_try_at')} as "dueInMs"
  from deliveries
  join documents on documents.id = deliveries.document_id
  join destinations on destinations.id = deliveries.destination_id
  join workspaces on workspaces.id = deliveries.workspace_id
  left join document_enrichments on document_enrichments.document_id = documents.id
  left join delivery_metadata
    on delivery_metadata.document_id = deliveries.document_id
    and delivery_metadata.destination_id = deliveries.destination_id
  where deliveries.document_id = :documentId
    ${condition}
    and deliveries.status = 'delivered'
    and destinations.deleted_at is null
    and (superseded_at is null or not ${hasNewerCopy()})
  order by destinations.id`

/** What of a document its copy has. */
type KnownData = Pick<DeliveredCopy, 'erpObjectType' | 'erpObjectId' | 'arObject' | 'fields' | 'properties'>

const inOrder = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).toSorted(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))

const isKnown = (value: unknown): boolean => value !== null && !(Array.isArray(value) && value.length === 0)

/**
 * Returns the digest of the data that a copy gets: its properties, or everything in a message. Null if it gets none, because its connection has
 * no properties, or nothing is known.
 */
const digestOf = (
  { properties: hasProperties }: Pick<Connector, 'properties'>,
  { erpObjectType, erpObjectId, arObject, fields, properties }: KnownData,
): string | null => {
  const data = hasProperties ? inOrder(properties) : [erpObjectType, erpObjectId, arObject, inOrder(fields)]
  if (!data.some(isKnown)) return null
  return createHash('sha256').update(JSON.stringify(data)).digest('hex')
}

const knownOf = (connector: Connector, copy: Pick<Copy, 'properties'> & TemplateDocument): KnownData => ({
  ...copy,
  properties: propertiesOf(connector.properties, copy.properties, copy),
})

interface StaleDeps {
  findConnector: FindConnector
}

const writeState = (trx: Transaction, { documentId, destinationId }: DeliveryRef, status: 'pending' | 'not_possible'): Promise<unknown> =>
  trx('delivery_metadata')
    .insert({ document_id: documentId, destination_id: destinationId, status, found_at: trx.fn.now(), next_try_at: null })
    .onConflict(['document_id', 'destination_id'])
    .merge(['status', 'found_at', 'next_try_at'])

/**
 * Finds the delivered copies of a document that lack data, and has it brought to them. The document must be locked.
 * @returns the committed messages
 */
export const updateCopies = async (trx: Transaction, documentId: string, { findConnector }: StaleDeps): Promise<OutboxMessage[]> => {
  const { rows } = await trx.raw<{ rows: Copy[] }>(copiesOf(''), { documentId, dueBy: null })
  const messages: OutboxMessage[] = []
  for (const copy of rows) {
    const connector = findConnector(copy.connector)
    const digest = connector ? digestOf(connector, knownOf(connector, copy)) : null
    if (!connector || digest === null || digest === copy.digest) continue
    if (!connector.updateMetadata) {
      await writeState(trx, copy, 'not_possible')
      continue
    }
    await writeState(trx, copy, 'pending')
    const { repoId, docId, compId, workspace, destinationId, destinationName, connector: kind } = copy
    const destination = { id: destinationId, name: destinationName, connector: kind }
    messages.push({ kind: 'startLateData', requestId: newId(), input: { documentId, repoId, docId, compId, workspace, destination } })
  }
  await addMessages(trx, messages)
  return messages
}

const writeDelivered = createStatement<TemplateDocument>(
  'note-delivered-data',
  `
  with noted as (
    insert into delivery_metadata (document_id, destination_id, digest, status)
    select document_id, destination_id, :digest, 'current'
    from deliveries
    where document_id = :documentId
      and destination_id = :destinationId
      and status = 'delivered'
    -- What was found meanwhile is on its way.
    on conflict (document_id, destination_id) do update
    set
      digest = excluded.digest,
      status = case when delivery_metadata.status = 'pending' then 'pending' else 'current' end
    returning document_id
  )
  select
    repo_id as "repoId", doc_id as "docId", comp_id as "compId", content_type as "contentType", received_at as "receivedAt",
    erp_object_type as "erpObjectType", erp_object_id as "erpObjectId", ar_object as "arObject", coalesce(fields, '{}') as fields
  from noted
  join documents on documents.id = noted.document_id
  left join document_enrichments on document_enrichments.document_id = documents.id
  `,
)

export interface LateDataSender extends StaleDeps {
  db: Database
  /** Sends messages and waits for them. Messages that cannot be sent are left to the sweep. */
  sendAll(messages: OutboxMessage[]): Promise<void>
}

/**
 * Notes what a copy was delivered with. If more was found while it was sent, that is brought to it.
 * @param hasData false if the copy may lack its properties
 */
export const bringLateData = async (
  deps: LateDataSender,
  { documentId, destinationId }: DeliveryRef,
  job: Pick<DeliveryJob, 'properties' | 'destination'> & TemplateDocument,
  hasData: boolean,
): Promise<void> => {
  const { db } = deps
  const connector = deps.findConnector(job.destination.connector)
  if (!connector) return
  const digest = hasData ? digestOf(connector, knownOf(connector, job)) : null
  const [now] = await writeDelivered(db, { documentId, destinationId, digest })
  if (!now || digestOf(connector, knownOf(connector, { ...now, properties: job.properties })) === digest) return
  const messages = await db.transaction(async (trx) => {
    await trx('documents').select('id').where({ id: documentId }).forNoKeyUpdate()
    return updateCopies(trx, documentId, deps)
  })
  await deps.sendAll(messages)
}

// Of one try. The workflow waits a minute longer.
const tryMaxMs = 120_000
const busyMs = 2_000
const delaysMs = [5_000, 30_000, 120_000, 600_000, 1_800_000]
const longestDelayMs = 3_600_000
// A destination that is away for longer has more to be repaired than a tag.
const giveUpAfterMs = 24 * 3_600_000

interface TryTiming {
  /** 1 for the first try. */
  attempt: number
  /** Time since the first try was due. */
  elapsedMs: number
  /** A try that was planned for this time or earlier is due: a timestamp, or `infinity`. By default, the clock of the database decides. */
  dueBy?: string
}

interface LateDataDeps extends CallTargetDeps {
  db: Database
  log: Log
  config: CallTargetDeps['config'] & Pick<Config, 'TEMPORAL_MAX_CONCURRENT_ATTEMPTS'>
}

/** Creates the activity that brings late data to a copy. Each run is one try. */
export const createLateData = (deps: LateDataDeps) => {
  const { db, log } = deps
  // The copies share the places of a worker with deliveries, as enrichments do.
  const total = Math.max(1, Math.floor(deps.config.TEMPORAL_MAX_CONCURRENT_ATTEMPTS / 5))
  const places = createConcurrencyLimit(() => ({ total, perWorkspace: Math.ceil(total / 2) }))
  const updates = new Counter({
    name: 'relay_late_data_total',
    help: 'Tries to bring data to a delivered copy, by connector and outcome: `updated`, `retrying` or `failed`',
    labelNames: ['connector', 'outcome'],
    registers: [],
  })
  for (const connector of connectorTypes) for (const outcome of ['updated', 'failed']) updates.inc({ connector, outcome }, 0)

  /**
   * Brings data to a copy. A failure of the target is returned.
   * @returns the digest of the data; undefined if the copy needs none
   * @throws as `callTarget`
   */
  const bring = (copy: Copy, cancelled: AbortSignal): Promise<string | DeliveryError | undefined> => {
    const { workspaceId, documentId, destinationId: id, config, credentialsSealed, path, location, foundAt } = copy
    const stored = { workspaceId, destination: { id, connector: copy.connector, config }, credentialsSealed }
    return callTarget(deps, stored, { timeoutMs: tryMaxMs, cancelled }, async (connector, target, context) => {
      const known = knownOf(connector, copy)
      const digest = digestOf(connector, known)
      if (digest === null || digest === copy.digest || !connector.updateMetadata) return undefined
      const deliveryId = `${documentId}_${id}`
      const messageId = `${deliveryId}.metadata.${digest.slice(0, 16)}`
      const delivered = { ...copy, ...known, deliveryId, messageId, location: location ?? path, foundAt: foundAt ?? new Date() }
      await connector.updateMetadata(delivered satisfies DeliveredCopy, target, context)
      return digest
    })
  }

  const recordUpdate = (copy: Copy, digest: string): Promise<void> =>
    db.transaction(async (trx) => {
      const { documentId, destinationId, destinationName, workspaceId, repoId, docId, compId } = copy
      const updated = await trx('delivery_metadata')
        .where({ document_id: documentId, destination_id: destinationId })
        .update({ digest, status: 'updated', updated_at: trx.fn.now(), error: null, next_try_at: null })
      if (updated === 0) return
      await record(trx, {
        workspaceId,
        event: 'document.metadata_updated',
        subjectId: documentId,
        description: `Business data of document ${repoId}/${docId}/${compId} was brought to destination ${destinationName}.`,
        metadata: { repo_id: repoId, doc_id: docId, comp_id: compId, destination_id: destinationId, destination: destinationName },
        actor: systemActor,
      })
    })

  /** The copy needs nothing: it has been updated, was delivered with everything, or is gone. */
  const recordNothing = async ({ documentId, destinationId }: DeliveryRef): Promise<void> => {
    await db('delivery_metadata')
      .where({ document_id: documentId, destination_id: destinationId, status: 'pending' })
      .update({ status: db.raw(`case when updated_at is null then 'current' else 'updated' end`), error: null, next_try_at: null })
  }

  const recordFailure = async (copy: Copy, failure: DeliveryError, { attempt, elapsedMs }: TryTiming): Promise<LateDataOutcome> => {
    const { documentId, destinationId, connector } = copy
    const error = `${failure.code}: ${failure.message}`
    const delayMs = Math.max(delaysMs[attempt - 1] ?? longestDelayMs, failure.retryAfterMs ?? 0)
    const isFinal = failure.permanent || elapsedMs + delayMs > giveUpAfterMs
    await db('delivery_metadata')
      .where({ document_id: documentId, destination_id: destinationId })
      .update({
        error,
        status: isFinal ? 'failed' : 'pending',
        next_try_at: isFinal ? null : db.raw(`now() + ? * interval '1 millisecond'`, [delayMs]),
      })
    const outcome = isFinal ? 'failed' : 'retrying'
    updates.inc({ connector, outcome })
    log.info({ document_id: documentId, destination_id: destinationId, outcome, reason: error }, 'late data was not brought')
    return isFinal ? { status: 'failed', error } : { status: 'retrying', delayMs, error }
  }

  /**
   * Safe to run twice: if a previous try is recorded and Temporal has not heard of it, this one returns what is recorded.
   * @throws the reason of `aborted`, and failures of the relay itself
   */
  const update = async (
    { documentId, destination }: Pick<LateDataInput, 'documentId' | 'destination'>,
    timing: TryTiming,
    aborted: AbortSignal,
  ): Promise<LateDataOutcome> => {
    const delivery = { documentId, destinationId: destination.id }
    const { rows } = await db.raw<{ rows: Copy[] }>(copiesOf('and deliveries.destination_id = :destinationId'), {
      ...delivery,
      dueBy: timing.dueBy ?? null,
    })
    const [copy] = rows
    if (!copy) {
      // It was deleted or replaced, or is being sent again, with everything that is known.
      await recordNothing(delivery)
      return { status: 'gone' }
    }
    if (copy.state === 'failed') return { status: 'failed', error: copy.error ?? '' }
    if (copy.dueInMs !== null) return { status: 'retrying', delayMs: copy.dueInMs, error: copy.error ?? '' }
    const leave = places.begin(copy.workspaceId)
    if (!leave) return { status: 'retrying', delayMs: busyMs, error: 'too many copies are being updated' }
    try {
      const brought = await bring(copy, aborted)
      if (brought instanceof DeliveryError) return await recordFailure(copy, brought, timing)
      if (brought === undefined) await recordNothing(delivery)
      else {
        await recordUpdate(copy, brought)
        updates.inc({ connector: copy.connector, outcome: 'updated' })
      }
      return { status: 'updated' }
    } finally {
      leave()
    }
  }

  return { update, metrics: [updates] as Metric[] }
}

export type LateData = ReturnType<typeof createLateData>
