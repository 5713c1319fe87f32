import type { EnrichmentOutcome } from '../../workflows/messages.ts'
import { createDocuments } from '../archive/document-list.ts'
import { createConcurrencyLimit } from '../base/concurrency-limit.ts'
import { AppError } from '../base/errors.ts'
import { prepareCallTask, readAnswerTask } from '../bridge/call.ts'
import { callFunction } from '../bridge/rfc-client.ts'
import { findRfcTarget, type RfcTargetDeps } from '../bridge/rfc-target.ts'
import type { Config } from '../config/config.ts'
import { systemActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { createStatement } from '../db/statement.ts'
import { planAnew, postponeBegin } from '../delivery/enriched.ts'
import { businessObjectOf, type BusinessMetadata } from '../domain/business-object.ts'
import { isLinkField, linkFields } from '../domain/field-template.ts'
import type { RunOnThread } from '../http/threads.ts'
import { readFieldsTask } from './answer.ts'
import { openEnrichmentCredentials } from './enrichments.ts'
import { createHttpCall, type HttpCallDeps } from './http-call.ts'
import { enrichmentCredentials, httpSettings, type StepSettings, type storedHttp } from './settings.ts'
import { runSteps, type MakeCall, type StepOutcome } from './steps.ts'

/** The document and its enrichment, as they are now. */
interface Job extends BusinessMetadata {
  workspaceId: string
  docId: string
  repoId: string
  compId: string
  receivedAt: Date
  status: EnrichmentOutcome['status'] | 'pending'
  fields: Record<string, string>
  attempts: number
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

export interface EnrichDeps extends RfcTargetDeps, HttpCallDeps {
  db: Database
  runOnThread: RunOnThread
  config: HttpCallDeps['config'] & Pick<Config, 'TEMPORAL_MAX_CONCURRENT_ATTEMPTS'>
}

// Of one try, whatever its steps do. The workflow waits a minute longer.
const tryMaxMs = 120_000
// To read an answer of the largest size takes a second. A path with a regular expression may take for ever.
const readMaxMs = 10_000
const busyMs = 2_000
const delaysMs = [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000]
const longestDelayMs = 3 * 3_600_000
// The last try before the deliveries start ends before them, as a rule.
const lastTryMs = 2_000

/** Returns when the next try is due, or undefined if it would be too late. */
const nextTryMs = (attempts: number, { waitMs, lateMs, elapsedMs }: EnrichTiming): number | undefined => {
  const delay = delaysMs[attempts - 1] ?? longestDelayMs
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
    document_enrichments.status, fields, attempts, enrichment_id as "enrichmentId", enrichments.steps, http,
    credentials_sealed as "credentialsSealed"
  from document_enrichments
  join documents on documents.id = document_id
  left join enrichments on enrichments.id = enrichment_id and is_active
  where document_id = :documentId
  `,
)

/** Returns the values of the placeholders of a document. */
const valuesOf = ({ docId, repoId, compId, receivedAt, erpObjectType, erpObjectId, arObject, fields }: Job): Record<string, string> => ({
  ...fields,
  doc_id: docId,
  repo_id: repoId,
  comp_id: compId,
  received_date: receivedAt.toISOString().slice(0, 10),
  ...(erpObjectType !== null && { erp_object_type: erpObjectType }),
  ...(erpObjectId !== null && { erp_object_id: erpObjectId }),
  ...(arObject !== null && { ar_object: arObject }),
})

const linkNames = { erp_object_type: 'erpObjectType', erp_object_id: 'erpObjectId', ar_object: 'arObject' } as const

/** Creates the function that makes the calls of one document. */
const createMakeCall = (deps: EnrichDeps) => {
  const sendHttpCall = createHttpCall(deps)
  const readOnThread = <Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> => {
    const signal = AbortSignal.timeout(readMaxMs)
    return work(signal).catch((thrown: unknown) => {
      throw new AppError('rfc_failed', 'the answer cannot be read: it is too large or nested too deeply, or a path takes too long', {
        cause: thrown,
      })
    })
  }
  const callRfc = async (
    workspaceId: string,
    { function: functionName, imports, tables }: { function: string; imports: unknown; tables: unknown },
    signal: AbortSignal,
  ): Promise<string> => {
    const bytes = new Uint8Array(Buffer.from(JSON.stringify({ imports, tables })))
    const prepared = await readOnThread((limit) => deps.runOnThread(prepareCallTask, workspaceId, { functionName, bytes }, limit))
    if (prepared.kind === 'refused') throw new AppError(prepared.code, prepared.message)
    const target = await findRfcTarget(workspaceId, functionName, deps)
    const readAnswer = (input: { text: string; tables: string[] }) =>
      readOnThread((limit) => deps.runOnThread(readAnswerTask, workspaceId, input, limit))
    const answer = await callFunction(target, { ...prepared, readAnswer }, signal, deps)
    if (answer.kind === 'result') return answer.body
    throw new AppError('abap_exception', answer.message ? `${answer.name}: ${answer.message}` : answer.name)
  }
  const callHttp = async (job: Job, call: Parameters<typeof sendHttpCall>[0], signal: AbortSignal): Promise<string> => {
    const http = httpSettings(job.http)
    if (!http) throw new AppError('conflict', 'the enrichment has no system http')
    const opened = openEnrichmentCredentials(deps.keyRing, job.workspaceId, {
      id: job.enrichmentId,
      http,
      credentialsSealed: job.credentialsSealed,
    })
    const credentials = enrichmentCredentials.safeParse(opened)
    if (!credentials.success) throw new AppError('conflict', 'the credentials of the enrichment cannot be opened; save them again')
    return sendHttpCall(call, http, credentials.data, signal)
  }
  return (job: Job, signal: AbortSignal): MakeCall =>
    async (call, fields) => {
      const text = await (call.kind === 'rfc' ? callRfc(job.workspaceId, call, signal) : callHttp(job, call, signal)).catch(
        (thrown: unknown) => {
          // The time of one call, or of the try.
          if (!(thrown instanceof DOMException) || thrown.name !== 'TimeoutError') throw thrown
          throw new AppError('rfc_timeout', 'the system did not answer in time', { cause: thrown })
        },
      )
      return readOnThread((limit) => deps.runOnThread(readFieldsTask, job.workspaceId, { text, fields }, limit))
    }
}

/** Stores what a try has found: the business object, the fields, and paths that contain them. @returns false if the document is gone */
const save = (
  db: Database,
  documentId: string,
  job: Job,
  { found, steps, status }: { found: Record<string, string>; steps: StepOutcome[]; status: Job['status'] },
): Promise<boolean> =>
  db.transaction(async (trx) => {
    const link = Object.fromEntries(
      linkFields
        .filter((name) => found[name] !== undefined && found[name] !== job[linkNames[name]])
        .map((name) => [linkNames[name], found[name]]),
    )
    // First, because it locks the documents of the docId in their order.
    if (Object.keys(link).length > 0) await createDocuments(trx).setMetadata(job.workspaceId, job, link, systemActor)
    const [locked] = await trx('documents').select('id').where({ id: documentId }).forNoKeyUpdate()
    if (!locked) return false
    const fields = { ...job.fields, ...Object.fromEntries(Object.entries(found).filter(([name]) => !isLinkField(name))) }
    const updated = await trx('document_enrichments')
      .where({ document_id: documentId, attempts: job.attempts, status: 'pending' })
      .update({
        status,
        fields: JSON.stringify(fields),
        steps: JSON.stringify(steps),
        attempts: job.attempts + 1,
        updated_at: trx.fn.now(),
      })
    if (updated > 0 && Object.keys(found).length > 0) await planAnew(trx, documentId)
    return updated > 0
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
    const { found, outcomes } = steps
      ? await runSteps(steps, job.http?.url ?? '', valuesOf(job), makeCallOf(job, signal))
      : { found: {}, outcomes: [{ name: 'enrichment', status: 'failed' as const, error: 'the enrichment was deleted, or is inactive' }] }
    aborted.throwIfAborted()
    const problem = outcomes.find(({ status }) => status !== 'done')
    const delayMs = problem && steps ? nextTryMs(job.attempts + 1, timing) : undefined
    const knowsSomething = Object.keys({ ...job.fields, ...found }).length > 0
    const status = !problem ? 'complete' : delayMs !== undefined ? 'pending' : knowsSomething ? 'partial' : 'failed'
    if (!(await save(db, documentId, job, { found, steps: outcomes, status }))) return { status: 'gone' as const }
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
