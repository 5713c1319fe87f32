import { enrichedData } from '../archive/enriched-data.ts'
import { validationFailed } from '../base/refusals.ts'
import { cutText, plainLines } from '../base/text.ts'
import { record, type AuditActor } from '../db/audit.ts'
import { valueIn } from '../domain/field-template.ts'
import { createMakeCall, type CallDeps } from './calls.ts'
import { enrichmentKind } from './enrichments.ts'
import { storedHttp } from './settings.ts'
import { runSteps, type FilledCall, type StepOutcome } from './steps.ts'
import { valuesOf, type KnownDocument } from './values.ts'

/** What a step has done in a try that stores nothing. */
export interface TriedStep extends StepOutcome {
  /** Null if the step made no call. */
  request: FilledCall | null
  /** The answer without secrets, up to a limit. Null if there was none. */
  answer: string | null
  answerTruncated: boolean
  fields: { name: string; value: string | null; problem: string | null }[]
}

// A person looks at the answers. Fields are read in the whole of them.
const shownMaxCharacters = 20_000
// Limit of all calls of a try, while a person waits.
const tryMaxMs = 60_000
// Limit of reading one answer. Others also wait for the thread.
const answerMaxMs = 2_000

/** Creates the function that makes the calls of an enrichment for one document, and shows them. */
export const createTry = (deps: CallDeps) => {
  const { db } = deps
  const makeCallOf = createMakeCall({ ...deps, answerMaxMs })

  const findDocument = async (workspaceId: string, id: string): Promise<KnownDocument & { fields: Record<string, string> }> => {
    const { rows } = await db.raw<{ rows: (KnownDocument & { fields: Record<string, string> })[] }>(
      `
      select
        doc_id as "docId", repo_id as "repoId", comp_id as "compId", received_at as "receivedAt", erp_object_type as "erpObjectType",
        erp_object_id as "erpObjectId", ar_object as "arObject", fields
      from documents
      ${enrichedData}
      where documents.workspace_id = :workspaceId
        and documents.id = :id
      `,
      { workspaceId, id },
    )
    if (!rows[0]) throw validationFailed([{ path: 'document_id', message: 'there is no such document in this workspace' }])
    return rows[0]
  }

  /** @throws AppError 404 or 422 */
  return async (
    { workspaceId, id, documentId, actor }: { workspaceId: string; id: string; documentId: string; actor: AuditActor },
    gone: AbortSignal,
  ): Promise<TriedStep[]> => {
    const enrichment = await enrichmentKind.find(db, workspaceId, id)
    const document = await findDocument(workspaceId, documentId)
    // Before the calls, because they may have an effect.
    await db.transaction((trx) =>
      record(trx, {
        workspaceId,
        event: 'enrichment.tried',
        subjectId: id,
        description: `Enrichment ${enrichment.name} was tried on document ${document.repoId}/${document.docId}/${document.compId}.`,
        metadata: { name: enrichment.name, document_id: documentId },
        actor,
      }),
    )
    const seen = new Map<string, Omit<TriedStep, keyof StepOutcome>>()
    const { credentialsSealed } = enrichment
    const http = storedHttp(enrichment.http)
    const caller = { workspaceId, documentId, enrichmentId: id, http, credentialsSealed, attempts: 0, outcomes: [] }
    const makeCall = makeCallOf(caller, AbortSignal.any([gone, AbortSignal.timeout(tryMaxMs)]))
    const { outcomes } = await runSteps(
      enrichment.steps,
      enrichment.http?.url ?? '',
      valuesOf(document, document.fields),
      async (call, fields, name) => {
        seen.set(name, { request: call, answer: null, answerTruncated: false, fields: [] })
        const found = await makeCall(call, fields, name)
        const answer = found.shown(2 * shownMaxCharacters)
        const problems = new Map(found.problems.map((each) => [each.name, each.problem]))
        seen.set(name, {
          request: call,
          answer: cutText(plainLines(answer), shownMaxCharacters),
          answerTruncated: answer.length > shownMaxCharacters,
          fields: fields.map((field) => ({
            name: field.name,
            value: valueIn(found.values, field.name) ?? null,
            problem: problems.get(field.name) ?? null,
          })),
        })
        return found
      },
      () => undefined,
    )
    return outcomes.map((outcome) => ({
      ...outcome,
      ...(seen.get(outcome.name) ?? { request: null, answer: null, answerTruncated: false, fields: [] }),
    }))
  }
}

export type TryEnrichment = ReturnType<typeof createTry>
