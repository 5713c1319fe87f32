import { setMetadata } from '../archive/metadata.ts'
import { storableJson } from '../base/text.ts'
import type { FindConnector } from '../connectors/connector.ts'
import { systemActor } from '../db/audit.ts'
import { createStatement, type Database, type Transaction } from '../db/database.ts'
import type { OnItsOwn } from '../db/on-its-own.ts'
import { createClaimDue, createRunQueue, type ClaimDue, type RunQueue } from '../db/side-work.ts'
import { isTrial, workThrough, type RunLimits, type Worked } from '../db/work-through.ts'
import { beginWaitingForData, planAnew } from '../delivery/enriched.ts'
import { updateCopies } from '../delivery/late-data.ts'
import { isSettled } from '../domain/enrichment-states.ts'
import { isLinkField, linkFields, valueIn } from '../domain/field-template.ts'
import { createMakeCall, type CallDeps } from './calls.ts'
import { conditionOf, type CallStep, type StepSettings, type storedHttp } from './settings.ts'
import { runSteps, settledAs, type StepOutcome } from './steps.ts'
import { valuesOf, type KnownDocument } from './values.ts'

// The documents that wait for their business data are side work (src/db/side-work.ts), with one queue for each enrichment.

/** A document that is due for a try, and its enrichment, as they are now. */
interface Job extends KnownDocument {
  documentId: string
  workspaceId: string
  fields: Record<string, string>
  attempts: number
  /** How the steps have ended before, since the data were last requested. */
  outcomes: StepOutcome[]
  enrichmentId: string
  /** Null if the enrichment was deleted, or is inactive. */
  steps: StepSettings[] | null
  http: ReturnType<typeof storedHttp>
  credentialsSealed: Buffer | null
  /** Time until the deliveries start. Negative if it is over. */
  waitMs: number
  /** Time until the end of the enrichment. Negative if it is over. */
  endMs: number
}

export interface EnrichDeps extends CallDeps {
  findConnector: FindConnector
  onItsOwn: OnItsOwn
}

// Limit of one try, whatever its steps do.
const tryMaxMs = 120_000
// Documents whose enrichment is ended by one statement.
const pageDocuments = 200
// The relay itself has failed in a try.
const postponedMs = 60_000
const delaysMs = [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000]
const longestDelayMs = 3 * 3_600_000
// Margin so that the last try normally ends before the deliveries start.
const lastTryMs = 2_000

// Added to a delay, so that a batch which arrived together does not come back together.
const jitterShare = 0.25
// What waits for its turn only is not tried more rarely the longer it has waited.
const busyMaxMs = 30_000

/** Returns when the next try is due, or undefined if it would be too late. @param isBusy true if the last try has only waited for its turn */
const nextTryMs = (attempts: number, isBusy: boolean, { waitMs, endMs }: Pick<Job, 'waitMs' | 'endMs'>): number | undefined => {
  const longest = isBusy ? busyMaxMs : longestDelayMs
  const delay = Math.round(Math.min(delaysMs[attempts - 1] ?? longestDelayMs, longest) * (1 + jitterShare * Math.random()))
  const beforeDeliveries = waitMs - lastTryMs
  if (beforeDeliveries > 0 && delay > beforeDeliveries) return beforeDeliveries
  return endMs < delaysMs[0]! ? undefined : Math.min(delay, endMs)
}

const isActive = `exists (
    select
    from enrichments
    where id = :enrichmentId
      and is_active
  )`

const takeDue = createStatement<Job>(
  'take-documents-to-enrich',
  `
  with picked as materialized (
    select *
    from document_enrichments
    where enrichment_id = :enrichmentId
      and status = 'pending'
      and next_try_at <= case when ${isActive} then now() else 'infinity' end
      and document_id not in (select jsonb_array_elements_text(:except::jsonb))
    order by next_try_at, document_id
    limit :limit
  )
  select
    documents.id as "documentId", documents.workspace_id as "workspaceId", doc_id as "docId", repo_id as "repoId", comp_id as "compId",
    received_at as "receivedAt", erp_object_type as "erpObjectType", erp_object_id as "erpObjectId", ar_object as "arObject",
    fields, picked.steps as outcomes, attempts, enrichment_id as "enrichmentId", enrichments.steps, http, credentials_sealed as "credentialsSealed",
    (extract(epoch from waits_until - now()) * 1000)::float8 as "waitMs", (extract(epoch from ends_at - now()) * 1000)::float8 as "endMs"
  from picked
  join documents on documents.id = document_id
  left join enrichments on enrichments.id = enrichment_id and is_active
  order by next_try_at, document_id
  `,
)

/** Why the enrichments of documents end without a call, and which documents these are. */
const endings = {
  switchedOff: { condition: `not ${isActive}`, replacesSteps: true },
  // The system is away, so it is not asked for each of them once more.
  over: { condition: 'next_try_at <= now() and ends_at <= now()', replacesSteps: false },
}

/** Ends the enrichments of some documents without a call. @returns the number of documents */
const endWithoutCall = async (
  trx: Transaction,
  enrichmentId: string,
  { condition, replacesSteps }: (typeof endings)[keyof typeof endings],
  error: string,
): Promise<number> => {
  const outcome: StepOutcome = { name: 'enrichment', status: 'failed', error, at: new Date().toISOString() }
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `
    with picked as materialized (
      select document_id
      from document_enrichments
      where enrichment_id = :enrichmentId
        and status = 'pending'
        and ${condition}
      order by next_try_at, document_id
      limit :pageDocuments
    ), locked as materialized (
      select id
      from documents
      where id in (select document_id from picked)
      order by id
      for no key update
    )
    update document_enrichments
    set
      status = case when fields = '{}' then 'failed' else 'partial' end,
      steps = case when :replacesSteps::boolean or steps = '[]' then :steps::jsonb else steps end,
      attempts = attempts + 1,
      updated_at = now()
    from locked
    where document_id = locked.id
      and enrichment_id = :enrichmentId
      and status = 'pending'
    returning document_id as id
    `,
    { enrichmentId, pageDocuments, replacesSteps, steps: storableJson([outcome]) },
  )
  await beginWaitingForData(
    trx,
    rows.map(({ id }) => id),
    true,
  )
  return rows.length
}

const linkNames = { erp_object_type: 'erpObjectType', erp_object_id: 'erpObjectId', ar_object: 'arObject' } as const

/**
 * Returns the function that finds the outcome of a step that needs no call: its fields were found before, or the business object that it
 * looks for is known.
 */
const earlierOf =
  ({ outcomes, steps }: Pick<Job, 'outcomes' | 'steps'>) =>
  (call: CallStep, values: Readonly<Record<string, string>>): StepOutcome | undefined => {
    if (call.fields.some(({ name, optional }) => !optional && valueIn(values, name) === undefined)) return undefined
    const done = outcomes.find(({ name, status }) => name === call.name && status === 'done')
    const isLink = call.fields.every(({ name }) => isLinkField(name))
    if (done || !isLink) return done
    const missing = call.fields.filter(({ name }) => valueIn(values, name) === undefined).map(({ name }) => name)
    if (missing.includes('ar_object') && steps?.some((step) => conditionOf(step)?.ar_object)) return undefined
    const error = missing.length === 0 ? null : `${missing.join(', ')} was not asked for: the business object is known already`
    return { name: call.name, status: 'done', error, at: new Date().toISOString() }
  }

const storeTry = createStatement<{ id: string }>(
  'store-enrichment-try',
  `
  with locked as materialized (
    select id
    from documents
    where id = :documentId
    for no key update
  )
  update document_enrichments
  set
    status = :status,
    fields = :fields::jsonb,
    steps = :steps::jsonb,
    attempts = attempts + 1,
    next_try_at = now() + :delayMs::float8 * interval '1 millisecond',
    updated_at = now()
  from locked
  where document_id = locked.id
    and enrichment_id = :enrichmentId
    and attempts = :attempts
    and status = 'pending'
  returning document_id as id
  `,
)

/** Stores what a try has found: the business object, the fields, and paths that contain them. */
const save = (
  { db, findConnector }: Pick<EnrichDeps, 'db' | 'findConnector'>,
  job: Job,
  {
    found,
    steps,
    status,
    delayMs = 0,
  }: { found: Record<string, string>; steps: StepOutcome[]; status: string; delayMs: number | undefined },
): Promise<void> =>
  db.transaction(async (trx) => {
    const { documentId } = job
    const link = Object.fromEntries(
      linkFields
        .filter((name) => found[name] !== undefined && found[name] !== job[linkNames[name]])
        .map((name) => [linkNames[name], found[name]]),
    )
    // First, because it locks the documents of the docId in their order.
    if (Object.keys(link).length > 0) await setMetadata(trx, job.workspaceId, job, link, systemActor)
    const fields = { ...job.fields, ...Object.fromEntries(Object.entries(found).filter(([name]) => !isLinkField(name))) }
    const { enrichmentId, attempts } = job
    const stored = { documentId, enrichmentId, attempts, status, fields: storableJson(fields), steps: storableJson(steps), delayMs }
    if ((await storeTry(trx, stored)).length === 0) return
    const hasFound = Object.keys(found).length > 0
    if (hasFound || status !== 'pending') await beginWaitingForData(trx, [documentId], status !== 'pending')
    if (!hasFound) return
    await planAnew(trx, [documentId])
    await updateCopies(trx, [documentId], { findConnector })
  })

/**
 * Creates the activity that enriches the documents of an enrichment. Each document gets one try at a time: the calls whose fields are not known
 * yet are made, and what they find is stored. A system that knows nothing, or is away, is no failure of the activity: the row of the document
 * says when the next try is due.
 */
export const createEnrich = (deps: EnrichDeps, limits: Partial<RunLimits> = {}): RunQueue => {
  const { db, onItsOwn } = deps
  const makeCallOf = createMakeCall(deps)

  const tryOnce = async (job: Job, cancelled: AbortSignal): Promise<Worked> => {
    const beganAt = performance.now()
    const signal = AbortSignal.any([cancelled, AbortSignal.timeout(tryMaxMs)])
    const { found, outcomes, isBusy, ...said } = await runSteps(
      job.steps!,
      job.http?.url ?? '',
      valuesOf(job, job.fields),
      makeCallOf(job, signal),
      earlierOf(job),
    )
    cancelled.throwIfAborted()
    const problem = outcomes.find(({ status }) => !isSettled(status))
    const tookMs = performance.now() - beganAt
    const left = { waitMs: job.waitMs - tookMs, endMs: job.endMs - tookMs }
    const delayMs = problem && nextTryMs(job.attempts + 1, isBusy, left)
    const knowsSomething = Object.keys({ ...job.fields, ...found }).length > 0
    const status = settledAs(job.steps!, outcomes) ?? (delayMs !== undefined ? 'pending' : knowsSomething ? 'partial' : 'failed')
    await save(deps, job, { found, steps: outcomes, status, delayMs })
    return { signal: said.signal, ...(problem && { error: `${problem.name}: ${problem.error}` }) }
  }

  const endAll = async (enrichmentId: string, ending: keyof typeof endings, error: string, cancelled: AbortSignal): Promise<void> => {
    for (;;) {
      cancelled.throwIfAborted()
      const ended = await db.transaction((trx) => endWithoutCall(trx, enrichmentId, endings[ending], error))
      if (ended < pageDocuments) return
    }
  }

  return createRunQueue(db, 'enrichment', async (enrichmentId, { failures, lastError }, cancelled) => {
    if (isTrial(failures)) {
      await endAll(enrichmentId, 'over', `the system was not asked, because it fails: ${lastError}`, cancelled)
    }
    const take = async (limit: number, except: string[]): Promise<Job[]> => {
      const jobs = await takeDue(db, { enrichmentId, limit, except: JSON.stringify(except) })
      if (jobs.length === 0 || jobs[0]!.steps) return jobs
      await endAll(enrichmentId, 'switchedOff', 'the enrichment was deleted, or is inactive', cancelled)
      return []
    }
    const pieces = {
      idOf: ({ documentId }: Job) => documentId,
      take,
      work: (job: Job) => tryOnce(job, cancelled),
      postpone: async ({ documentId }: Job) =>
        void (await db('document_enrichments')
          .where({ document_id: documentId, enrichment_id: enrichmentId })
          .update({ next_try_at: db.raw(`now() + ? * interval '1 millisecond'`, [postponedMs]) })),
    }
    return workThrough(pieces, { failures, cancelled, onItsOwn, limits })
  })
}

// SQL: the enrichments with documents whose try is due. Each enrichment with pending documents costs a look-up in an index.
const due = `
    pending as (
      (
        select enrichment_id, workspace_id, next_try_at
        from document_enrichments
        where status = 'pending'
        order by enrichment_id, next_try_at
        limit 1
      )
      union all
      select next.enrichment_id, next.workspace_id, next.next_try_at
      from pending
      cross join lateral (
        select enrichment_id, workspace_id, next_try_at
        from document_enrichments
        where status = 'pending'
          and enrichment_id > pending.enrichment_id
        order by enrichment_id, next_try_at
        limit 1
      ) as next
    ), due as (
      select enrichment_id as id, pending.workspace_id, name, next_try_at as since
      from pending
      left join enrichments on enrichments.id = enrichment_id and is_active
      where next_try_at <= now()
        or enrichments.id is null
    )`

/** SQL: true if a try is due, also of an enrichment that is claimed. */
export const isEnrichmentDue = `exists (with recursive ${due} select from due)`

/** Claims the enrichments with documents whose try is due. */
export const createFindEnrichments = (db: Database): ClaimDue => createClaimDue(db, 'enrichment', due)
