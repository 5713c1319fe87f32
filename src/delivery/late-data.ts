import { createHash } from 'node:crypto'
import type { Metric } from 'prom-client'
import { enrichedData } from '../archive/enriched-data.ts'
import { metadataSelection } from '../archive/metadata.ts'
import type { Log } from '../base/log.ts'
import { counterOf } from '../base/metrics.ts'
import { callTarget, type CallTargetDeps } from '../connectors/call-target.ts'
import { DeliveryError, type Connector, type DeliveredCopy, type FindConnector } from '../connectors/connector.ts'
import { connectorTypes } from '../connectors/index.ts'
import { propertiesOf } from '../connectors/target.ts'
import { record, systemActor } from '../db/audit.ts'
import { anyOf, createStatement, type Database, type Transaction } from '../db/database.ts'
import type { OnItsOwn } from '../db/on-its-own.ts'
import { createClaimDue, createRunQueue, type ClaimDue, type RunQueue } from '../db/side-work.ts'
import { workThrough, type RunLimits, type Worked } from '../db/work-through.ts'
import type { DocumentMetadata, TemplateDocument } from '../domain/template.ts'
import { circuitOpenMs } from './circuit.ts'
import type { DeliveryJob } from './delivery-job.ts'
import { hasNewerCopy } from './newer-copy.ts'
import { saveFirst } from './save-first.ts'
import type { DeliveryRef } from './transition.ts'

// Data of a document that is found after a delivery has succeeded is brought to the copy without the bytes. The copies that lack data are side
// work (src/db/side-work.ts), with one queue for each destination.

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
  /** Digest of the data that the copy contains. Null if they are not known. */
  digest: string | null
  foundAt: Date | null
  /** The same with microseconds: data that is found during the update has another time. */
  foundAtText: string | null
  /** Failed tries since then. */
  tries: number
  /** Time since then. */
  ageMs: number
}

/** Creates a statement that finds the delivered copies of documents, unless a newer document has replaced them. */
const createFindCopies = (name: string, condition: string) =>
  createStatement<Copy>(
    name,
    `
    select
      deliveries.document_id as "documentId", destinations.id as "destinationId", destinations.name as "destinationName",
      connector_type as connector, config, credentials_sealed as "credentialsSealed", deliveries.workspace_id as "workspaceId",
      user_slug || '/' || workspace_slug as workspace, deliveries.connection_id as "connectionId", deliveries.path, location,
      repo_id as "repoId", doc_id as "docId", comp_id as "compId", content_type as "contentType", received_at as "receivedAt",
      ${metadataSelection}, fields,
      coalesce((select settings -> 'properties' from connections where connections.id = deliveries.connection_id), '{}') as properties,
      late_data.digest, found_at as "foundAt", found_at::text as "foundAtText", coalesce(late_data.attempts, 0) as tries,
      coalesce(extract(epoch from now() - found_at) * 1000, 0)::float8 as "ageMs"
    from deliveries
    join documents on documents.id = deliveries.document_id
    join destinations on destinations.id = deliveries.destination_id
    join workspaces on workspaces.id = deliveries.workspace_id
    ${enrichedData}
    left join late_data
      on late_data.document_id = deliveries.document_id
      and late_data.destination_id = deliveries.destination_id
    where ${condition}
      and deliveries.status = 'delivered'
      and destinations.deleted_at is null
      and (superseded_at is null or not ${hasNewerCopy()})
    order by deliveries.document_id, destinations.id
    `,
  )

const findCopiesOf = createFindCopies('delivered-copies', `deliveries.document_id = ${anyOf('documentIds')}`)

const findCopy = createFindCopies('delivered-copy', 'deliveries.document_id = :documentId and deliveries.destination_id = :destinationId')

/** The data of a document that its copy contains. */
type KnownData = Pick<DeliveredCopy, keyof DocumentMetadata | 'fields' | 'properties'>

const inOrder = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).toSorted(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))

const isKnown = (value: unknown): boolean => value !== null && !(Array.isArray(value) && value.length === 0)

/**
 * Returns the digest of the data that a copy gets: its properties, or everything in a message. Null if it gets none, because its connection has
 * no properties, or nothing is known.
 */
const digestOf = (
  { properties: hasProperties }: Pick<Connector, 'properties'>,
  { erpObjectType, erpObjectId, arObject, fileName, description, fields, properties }: KnownData,
): string | null => {
  const data = hasProperties ? inOrder(properties) : [erpObjectType, erpObjectId, arObject, fileName, description, inOrder(fields)]
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
  trx('late_data')
    .insert({
      document_id: documentId,
      destination_id: destinationId,
      status,
      found_at: trx.fn.now(),
      attempts: 0,
      next_try_at: trx.fn.now(),
    })
    .onConflict(['document_id', 'destination_id'])
    .merge(['status', 'found_at', 'attempts', 'next_try_at'])

/** Queues an update for each delivered copy of documents that lacks data. The documents must be locked. */
export const updateCopies = async (trx: Transaction, documentIds: string[], { findConnector }: StaleDeps): Promise<void> => {
  for (const copy of await findCopiesOf(trx, { documentIds })) {
    const connector = findConnector(copy.connector)
    const digest = connector ? digestOf(connector, knownOf(connector, copy)) : null
    if (!connector || digest === null || digest === copy.digest) continue
    await writeState(trx, copy, connector.updateMetadata ? 'pending' : 'not_possible')
  }
}

const writeDelivered = createStatement<TemplateDocument>(
  'note-delivered-data',
  `
  with noted as (
    insert into late_data (document_id, destination_id, digest, status)
    select document_id, destination_id, :digest, 'current'
    from deliveries
    where document_id = :documentId
      and destination_id = :destinationId
      and status = 'delivered'
    -- Data found since then are on their way.
    on conflict (document_id, destination_id) do update
    set
      digest = excluded.digest,
      status = case when late_data.status = 'pending' then 'pending' else 'current' end
    returning document_id
  )
  select
    repo_id as "repoId", doc_id as "docId", comp_id as "compId", content_type as "contentType", received_at as "receivedAt",
    ${metadataSelection}, fields
  from noted
  join documents on documents.id = noted.document_id
  ${enrichedData}
  `,
)

export interface LateDataNotes extends StaleDeps {
  db: Database
}

/**
 * Notes what a copy was delivered with. If more was found while it was sent, that is brought to it.
 * @param hasData false if the copy may lack its properties
 */
export const noteDelivered = async (
  deps: LateDataNotes,
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
  await db.transaction(async (trx) => {
    await trx('documents').select('id').where({ id: documentId }).forNoKeyUpdate()
    await updateCopies(trx, [documentId], deps)
  })
}

// Limit of one try.
const tryMaxMs = 120_000
const delaysMs = [5_000, 30_000, 120_000, 600_000, 1_800_000]
const longestDelayMs = 3_600_000
// A destination that is away for longer has more to be repaired than a tag.
const giveUpAfterMs = 24 * 3_600_000
// The relay itself has failed in a try.
const postponedMs = 60_000

interface LateDataDeps extends CallTargetDeps {
  db: Database
  log: Log
  onItsOwn: OnItsOwn
  /** Brings back a document that only the destination has. @returns why that failed */
  saveUpdated(copy: DeliveryRef, signal: AbortSignal): Promise<DeliveryError | undefined>
}

/** Returns what a copy gets, with its digest. Undefined if it needs nothing. */
const missingIn = (connector: Connector, copy: Copy): { known: KnownData; digest: string } | undefined => {
  const known = knownOf(connector, copy)
  const digest = digestOf(connector, known)
  return digest === null || digest === copy.digest || !connector.updateMetadata ? undefined : { known, digest }
}

/** Creates the activity that brings late data to the copies at a destination. */
export const createLateData = (deps: LateDataDeps, limits: Partial<RunLimits> = {}) => {
  const { db, log, onItsOwn } = deps
  const updates = counterOf(
    'relay_late_data_total',
    'Tries to bring data to a delivered copy, by connector and outcome: `updated`, `retrying` or `failed`',
    ['connector', 'outcome'],
    connectorTypes.flatMap((connector) => ['updated', 'failed'].map((outcome) => ({ connector, outcome }))),
  )

  /**
   * Brings data to a copy. A failure of the target is returned.
   * @returns the digest of the data; undefined if the copy needs none
   * @throws as `callTarget`
   */
  const bring = async (copy: Copy, cancelled: AbortSignal): Promise<string | DeliveryError | undefined> => {
    const { workspaceId, workspace, documentId, destinationId: id, config, credentialsSealed, path, location, foundAt } = copy
    const stored = { workspaceId, workspace, destination: { id, connector: copy.connector, config }, credentialsSealed }
    const within = { timeoutMs: tryMaxMs, cancelled }
    const kind = deps.findConnector(copy.connector)
    if (kind?.updateRewrites && missingIn(kind, copy)) {
      const obstacle = await saveFirst((signal) => deps.saveUpdated(copy, signal), within)
      if (obstacle) return obstacle
    }
    return callTarget(deps, stored, within, async (connector, target, context) => {
      const missing = missingIn(connector, copy)
      if (!missing) return undefined
      const { known, digest } = missing
      const deliveryId = `${documentId}_${id}`
      const messageId = `${deliveryId}.metadata.${digest.slice(0, 16)}`
      const delivered = { ...copy, ...known, deliveryId, messageId, location: location ?? path, foundAt: foundAt ?? new Date() }
      await connector.updateMetadata!(delivered satisfies DeliveredCopy, target, context)
      return digest
    })
  }

  const recordUpdate = (copy: Copy, digest: string): Promise<void> =>
    db.transaction(async (trx) => {
      const { documentId, destinationId, destinationName, workspaceId, repoId, docId, compId } = copy
      const updated = await trx('late_data')
        .where({ document_id: documentId, destination_id: destinationId })
        .update({
          digest,
          // More may have been found during the update.
          status: trx.raw(`case when found_at is not distinct from ?::timestamptz then 'updated' else status end`, [copy.foundAtText]),
          updated_at: trx.fn.now(),
          error: null,
        })
      if (updated === 0) return
      await record(trx, {
        workspaceId,
        event: 'document.copy_updated',
        subjectId: documentId,
        description: `Business data of document ${repoId}/${docId}/${compId} was brought to destination ${destinationName}.`,
        metadata: { repo_id: repoId, doc_id: docId, comp_id: compId, destination_id: destinationId, destination: destinationName },
        actor: systemActor,
      })
    })

  /**
   * Records that the copy needs nothing: it was updated, was delivered with everything, or is gone. Data found since the attempt began stay
   * queued.
   */
  const recordNothing = async ({ documentId, destinationId }: DeliveryRef, foundAt: string | null): Promise<void> => {
    await db('late_data')
      .where({ document_id: documentId, destination_id: destinationId, status: 'pending' })
      .whereRaw('found_at = coalesce(?::timestamptz, found_at)', [foundAt])
      .update({ status: db.raw(`case when updated_at is null then 'current' else 'updated' end`), error: null })
  }

  const recordFailure = async (copy: Copy, failure: DeliveryError): Promise<Worked> => {
    const { documentId, destinationId, connector, tries, ageMs } = copy
    const error = `${failure.code}: ${failure.message}`
    const delayMs = Math.max(delaysMs[tries] ?? longestDelayMs, failure.retryAfterMs ?? 0)
    const isFinal = failure.permanent || ageMs + delayMs > giveUpAfterMs
    await db('late_data')
      .where({ document_id: documentId, destination_id: destinationId, status: 'pending' })
      // Data found during the update are sent at once.
      .whereRaw('found_at is not distinct from ?::timestamptz', [copy.foundAtText])
      .update({
        error,
        status: isFinal ? 'failed' : 'pending',
        attempts: tries + 1,
        next_try_at: db.raw(`now() + ? * interval '1 millisecond'`, [delayMs]),
      })
    const outcome = isFinal ? 'failed' : 'retrying'
    updates.inc({ connector, outcome })
    log.info({ document_id: documentId, destination_id: destinationId, outcome, reason: error }, 'late data was not brought')
    return { signal: failure.permanent ? 'answered' : 'failed', error }
  }

  /** Makes one try. Safe to run twice. @throws the reason of `cancelled`, and failures of the relay itself */
  const tryOnce = async (delivery: DeliveryRef, cancelled: AbortSignal): Promise<Worked> => {
    const { documentId, destinationId } = delivery
    const [copy] = await findCopy(db, { documentId, destinationId })
    if (!copy) {
      // It was deleted or replaced, or is being sent again, with everything that is known.
      await recordNothing(delivery, null)
      return { signal: 'unknown' }
    }
    const brought = await bring(copy, cancelled)
    if (brought instanceof DeliveryError) return recordFailure(copy, brought)
    if (brought === undefined) {
      await recordNothing(delivery, copy.foundAtText)
      return { signal: 'unknown' }
    }
    await recordUpdate(copy, brought)
    updates.inc({ connector: copy.connector, outcome: 'updated' })
    return { signal: 'answered' }
  }

  const bringLateData: RunQueue = createRunQueue(db, 'late_data', async (destinationId, { failures }, cancelled) => {
    const openMs = await circuitOpenMs(db, destinationId)
    if (openMs !== null) return { status: 'retrying', failures, delayMs: openMs, error: 'circuit_open: deliveries to the destination fail' }
    const pieces = {
      idOf: ({ documentId }: DeliveryRef) => documentId,
      take: (limit: number, except: string[]) => takeDue(db, { destinationId, limit, except: JSON.stringify(except) }),
      work: (copy: DeliveryRef) => tryOnce(copy, cancelled),
      postpone: async ({ documentId }: DeliveryRef) =>
        void (await db('late_data')
          .where({ document_id: documentId, destination_id: destinationId })
          .update({ next_try_at: db.raw(`now() + ? * interval '1 millisecond'`, [postponedMs]) })),
    }
    return workThrough(pieces, { failures, cancelled, onItsOwn, limits })
  })

  return { bringLateData, metrics: [updates] as Metric[] }
}

const takeDue = createStatement<DeliveryRef>(
  'take-late-data',
  `
  select document_id as "documentId", destination_id as "destinationId"
  from late_data
  where destination_id = :destinationId
    and status = 'pending'
    and next_try_at <= now()
    and document_id not in (select jsonb_array_elements_text(:except::jsonb))
  order by next_try_at, document_id
  limit :limit
  `,
)

/** Claims the destinations with copies that are due for a try. Each destination with pending copies costs a look-up in an index. */
export const createFindLateData = (db: Database): ClaimDue =>
  createClaimDue(
    db,
    'late_data',
    `
    pending as (
      (
        select destination_id, next_try_at
        from late_data
        where status = 'pending'
        order by destination_id, next_try_at
        limit 1
      )
      union all
      select next.destination_id, next.next_try_at
      from pending
      cross join lateral (
        select destination_id, next_try_at
        from late_data
        where status = 'pending'
          and destination_id > pending.destination_id
        order by destination_id, next_try_at
        limit 1
      ) as next
    ), due as (
      select destinations.id, workspace_id, name, next_try_at as since
      from pending
      join destinations on destinations.id = destination_id
      where next_try_at <= now()
    )`,
  )
