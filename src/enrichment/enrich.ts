import type { EnrichmentOutcome } from '../../workflows/messages.ts'
import { businessObjectOf } from '../archive/delivery-input.ts'
import { createDocuments } from '../archive/document-list.ts'
import { createConcurrencyLimit } from '../base/concurrency-limit.ts'
import { storableJson } from '../base/text.ts'
import type { Config } from '../config/config.ts'
import type { FindConnector } from '../connectors/connector.ts'
import { systemActor } from '../db/audit.ts'
import { createStatement } from '../db/database.ts'
import type { OutboxMessage } from '../db/outbox.ts'
import { beginWaitingForData, planAnew, postponeBegin } from '../delivery/enriched.ts'
import { updateCopies } from '../delivery/late-data.ts'
import { isLinkField, linkFields } from '../domain/field-template.ts'
import { createMakeCall, type CallDeps } from './calls.ts'
import type { CallStep, StepSettings, storedHttp } from './settings.ts'
import { runSteps, type StepOutcome } from './steps.ts'
import { valuesOf, type KnownDocument } from './values.ts'

/** The document and its enrichment, as they are now. */
interface Job extends KnownDocument {
  workspaceId: string
  status: EnrichmentOutcome['status'] | 'pending'
  fields: Record<string, string>
  attempts: number
  /** How the steps have ended before, since somebody asked for the data. */
  outcomes: StepOutcome[]
  enrichmentId: string
  /** Null if the enrichment was deleted, or is inactive. */
  steps: StepSettings[] | null
  http: ReturnType<typeof storedHttp>
  credentialsSealed: Buffer | null
}

/** A try that has not found everything, while time is left. */
export interface PendingEnrichment {
  status: 'pending'
  delayMs: number
  error: string
}

export interface EnrichTiming {
  waitMs: number
  lateMs: number
  /** Time since the first try was due. */
  elapsedMs: number
}

export interface EnrichDeps extends CallDeps {
  findConnector: FindConnector
  /** Sends messages and waits for them. Messages that cannot be sent are left to the sweep. */
  sendAll(messages: OutboxMessage[]): Promise<void>
  config: CallDeps['config'] & Pick<Config, 'TEMPORAL_MAX_CONCURRENT_ATTEMPTS'>
}

// Of one try, whatever its steps do. The workflow waits a minute longer.
const tryMaxMs = 120_000
const busyMs = 2_000
const delaysMs = [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000]
const longestDelayMs = 3 * 3_600_000
// The last try before the deliveries start ends before them, as a rule.
const lastTryMs = 2_000

// Added to a delay, so that a batch which arrived together does not come back together.
const jitterShare = 0.25
// What waits for its turn only is not tried more rarely the longer it has waited.
const busyMaxMs = 30_000

/** Returns when the next try is due, or undefined if it would be too late. @param isBusy true if the last try has only waited for its turn */
const nextTryMs = (attempts: number, isBusy: boolean, { waitMs, lateMs, elapsedMs }: EnrichTiming): number | undefined => {
  const longest = isBusy ? busyMaxMs : longestDelayMs
  const delay = Math.round(Math.min(delaysMs[attempts - 1] ?? longestDelayMs, longest) * (1 + jitterShare * Math.random()))
  const beforeDeliveries = waitMs - lastTryMs - elapsedMs
  if (beforeDeliveries > 0 && delay > beforeDeliveries) return beforeDeliveries
  const left = waitMs + lateMs - elapsedMs
  return left < delaysMs[0]! ? undefined : Math.min(delay, left)
}

const load = createStatement<Job>(
  'load-enrichment',
  `
  select
    documents.workspace_id as "workspaceId", doc_id as "docId", repo_id as "repoId", comp_id as "compId", received_at as "receivedAt",
    erp_object_type as "erpObjectType", erp_object_id as "erpObjectId", ar_object as "arObject",
    document_enrichments.status, fields, document_enrichments.steps as outcomes, attempts, enrichment_id as "enrichmentId", enrichments.steps, http,
    credentials_sealed as "credentialsSealed"
  from document_enrichments
  join documents on documents.id = document_id
  left join enrichments on enrichments.id = enrichment_id and is_active
  where document_id = :documentId
  `,
)

const deleted = (): StepOutcome => ({
  name: 'enrichment',
  status: 'failed',
  error: 'the enrichment was deleted, or is inactive',
  at: new Date().toISOString(),
})

const linkNames = { erp_object_type: 'erpObjectType', erp_object_id: 'erpObjectId', ar_object: 'arObject' } as const

/**
 * Returns the function that finds the outcome of a step that needs no call: its fields were found before, or the business object that it
 * looks for is known.
 */
const earlierOf =
  ({ outcomes }: Pick<Job, 'outcomes'>) =>
  (call: CallStep, values: Readonly<Record<string, string>>): StepOutcome | undefined => {
    if (call.fields.some(({ name, optional }) => !optional && values[name] === undefined)) return undefined
    const done = outcomes.find(({ name, status }) => name === call.name && status === 'done')
    const isLink = call.fields.every(({ name }) => isLinkField(name))
    if (done || !isLink) return done
    const missing = call.fields.filter(({ name }) => values[name] === undefined).map(({ name }) => name)
    const error = missing.length === 0 ? null : `${missing.join(', ')} was not asked for: the business object is known already`
    return { name: call.name, status: 'done', error, at: new Date().toISOString() }
  }

/**
 * Stores what a try has found: the business object, the fields, and paths that contain them.
 * @returns messages that bring it to copies that were delivered before; undefined if the document is gone
 */
const save = (
  deps: Pick<EnrichDeps, 'db' | 'findConnector'>,
  documentId: string,
  job: Job,
  { found, steps, status }: { found: Record<string, string>; steps: StepOutcome[]; status: Job['status'] },
): Promise<OutboxMessage[] | undefined> =>
  deps.db.transaction(async (trx) => {
    const link = Object.fromEntries(
      linkFields
        .filter((name) => found[name] !== undefined && found[name] !== job[linkNames[name]])
        .map((name) => [linkNames[name], found[name]]),
    )
    // First, because it locks the documents of the docId in their order.
    if (Object.keys(link).length > 0) await createDocuments(trx).setMetadata(job.workspaceId, job, link, systemActor)
    const [locked] = await trx('documents').select('id').where({ id: documentId }).forNoKeyUpdate()
    if (!locked) return undefined
    const fields = { ...job.fields, ...Object.fromEntries(Object.entries(found).filter(([name]) => !isLinkField(name))) }
    const updated = await trx('document_enrichments')
      .where({ document_id: documentId, attempts: job.attempts, status: 'pending' })
      .update({
        status,
        fields: storableJson(fields),
        steps: storableJson(steps),
        attempts: job.attempts + 1,
        updated_at: trx.fn.now(),
      })
    if (updated === 0) return undefined
    if (Object.keys(found).length > 0 || status !== 'pending') await beginWaitingForData(trx, documentId)
    if (Object.keys(found).length === 0) return []
    await planAnew(trx, documentId)
    return updateCopies(trx, documentId, deps)
  })

/**
 * Creates the activity that enriches a document. Each run is one try: it makes the calls whose fields are not known yet, and stores what
 * they find. A system that is away or knows nothing is no failure of the activity: the result says when to try again.
 */
export const createEnrich = (deps: EnrichDeps) => {
  const { db, config } = deps
  const makeCallOf = createMakeCall(deps)
  // Enrichments share the places of a worker with deliveries. A system that hangs must leave most of them.
  const total = Math.max(1, Math.floor(config.TEMPORAL_MAX_CONCURRENT_ATTEMPTS / 5))
  const places = createConcurrencyLimit(() => ({ total, perWorkspace: Math.ceil(total / 2) }))

  const tryOnce = async (
    documentId: string,
    job: Job,
    timing: EnrichTiming,
    aborted: AbortSignal,
  ): Promise<EnrichmentOutcome | PendingEnrichment> => {
    const signal = AbortSignal.any([aborted, AbortSignal.timeout(tryMaxMs)])
    const steps = job.steps
    const { found, outcomes, isBusy } = steps
      ? await runSteps(steps, job.http?.url ?? '', valuesOf(job, job.fields), makeCallOf({ ...job, documentId }, signal), earlierOf(job))
      : { found: {}, outcomes: [deleted()], isBusy: false }
    aborted.throwIfAborted()
    const problem = outcomes.find(({ status }) => status !== 'done')
    const delayMs = problem && steps ? nextTryMs(job.attempts + 1, isBusy, timing) : undefined
    const knowsSomething = Object.keys({ ...job.fields, ...found }).length > 0
    const status = !problem ? 'complete' : delayMs !== undefined ? 'pending' : knowsSomething ? 'partial' : 'failed'
    const messages = await save(deps, documentId, job, { found, steps: outcomes, status })
    if (!messages) return { status: 'gone' as const }
    await deps.sendAll(messages)
    if (status === 'pending') return { status, delayMs: delayMs!, error: `${problem!.name}: ${problem!.error}` }
    const object = { erpObjectType: job.erpObjectType, erpObjectId: job.erpObjectId }
    for (const name of ['erp_object_type', 'erp_object_id'] as const) object[linkNames[name]] = found[name] ?? object[linkNames[name]]
    return { status, ...businessObjectOf(object) }
  }

  /** @throws the reason of `aborted`, and failures of the relay itself */
  return async (documentId: string, timing: EnrichTiming, aborted: AbortSignal): Promise<EnrichmentOutcome | PendingEnrichment> => {
    const [job] = await load(db, { documentId })
    if (!job) return { status: 'gone' }
    if (job.status !== 'pending') return { status: job.status, ...businessObjectOf(job) }
    if (job.attempts === 0) await postponeBegin(db, documentId)
    const leave = places.begin(job.workspaceId)
    if (!leave) return { status: 'pending', delayMs: busyMs, error: 'too many enrichments are running' }
    try {
      return await tryOnce(documentId, job, timing, aborted)
    } finally {
      leave()
    }
  }
}

export type Enrich = ReturnType<typeof createEnrich>
