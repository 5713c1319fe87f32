import { AppError } from '../base/errors.ts'
import { prepareCallTask, readAnswerTask } from '../bridge/call.ts'
import { callFunction } from '../bridge/rfc-client.ts'
import { findRfcTarget, type RfcTargetDeps } from '../bridge/rfc-target.ts'
import { withoutSecrets } from '../connectors/shared/errors.ts'
import { readFieldsTask } from './answer.ts'
import { createReadEInvoice, type ContentDeps } from './document-content.ts'
import { openEnrichmentCredentials } from './enrichments.ts'
import { createHttpCall, type HttpCallDeps } from './http-call.ts'
import { enrichmentCredentials, httpSettings, type storedHttp } from './settings.ts'
import type { FilledCall, MakeCall } from './steps.ts'

export interface CallDeps extends RfcTargetDeps, HttpCallDeps, ContentDeps {}

/** The enrichment whose calls are made. */
interface Caller {
  workspaceId: string
  documentId: string
  enrichmentId: string
  http: ReturnType<typeof storedHttp>
  credentialsSealed: Buffer | null
}

/** An answer, and how people see it. */
interface Answer {
  text: string
  shown: string
}

// To read an answer of the largest size takes a second. A path with a regular expression may take for ever.
const readMaxMs = 10_000

/** Creates the function that makes the calls of one document. */
export const createMakeCall = (deps: CallDeps) => {
  const sendHttpCall = createHttpCall(deps)
  const readEInvoice = createReadEInvoice(deps)
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
  ): Promise<Answer> => {
    const bytes = new Uint8Array(Buffer.from(JSON.stringify({ imports, tables })))
    const prepared = await readOnThread((limit) => deps.runOnThread(prepareCallTask, workspaceId, { functionName, bytes }, limit))
    if (prepared.kind === 'refused') throw new AppError(prepared.code, prepared.message)
    const target = await findRfcTarget(workspaceId, functionName, deps)
    const readAnswer = (input: { text: string; tables: string[] }) =>
      readOnThread((limit) => deps.runOnThread(readAnswerTask, workspaceId, input, limit))
    const answer = await callFunction(target, { ...prepared, readAnswer }, signal, deps)
    // A system may repeat what it was sent.
    if (answer.kind === 'result') return { text: answer.body, shown: withoutSecrets(answer.body, [target.credentials.password]) }
    throw new AppError('abap_exception', answer.message ? `${answer.name}: ${answer.message}` : answer.name)
  }
  const callHttp = async (job: Caller, call: Parameters<typeof sendHttpCall>[0], signal: AbortSignal): Promise<Answer> => {
    const http = httpSettings(job.http)
    if (!http) throw new AppError('conflict', 'the enrichment has no system http')
    const opened = openEnrichmentCredentials(deps.keyRing, job.workspaceId, {
      id: job.enrichmentId,
      http,
      credentialsSealed: job.credentialsSealed,
    })
    const credentials = enrichmentCredentials.safeParse(opened)
    if (!credentials.success) throw new AppError('conflict', 'the credentials of the enrichment cannot be opened; save them again')
    const text = await sendHttpCall(call, http, credentials.data, signal)
    return { text, shown: text }
  }
  const makeOne = async (job: Caller, call: FilledCall, signal: AbortSignal): Promise<Answer> => {
    if (call.kind === 'rfc') return callRfc(job.workspaceId, call, signal)
    if (call.kind === 'http') return callHttp(job, call, signal)
    const text = await readEInvoice(job.workspaceId, job.documentId, signal)
    return { text, shown: text }
  }
  return (job: Caller, signal: AbortSignal): MakeCall =>
    async (call, fields) => {
      const { text, shown } = await makeOne(job, call, signal).catch((thrown: unknown) => {
        // The time of one call, or of the try.
        if (!(thrown instanceof DOMException) || thrown.name !== 'TimeoutError') throw thrown
        throw new AppError('rfc_timeout', 'the system did not answer in time', { cause: thrown })
      })
      return { shown, ...(await readOnThread((limit) => deps.runOnThread(readFieldsTask, job.workspaceId, { text, fields }, limit))) }
    }
}
