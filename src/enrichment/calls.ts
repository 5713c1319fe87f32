import { AppError } from '../base/errors.ts'
import { secretMinCharacters, withoutSecrets } from '../base/secrets.ts'
import { cutText } from '../base/text.ts'
import type { ThreadTask } from '../base/thread-task.ts'
import { NotBegunError, type RunTask } from '../http/task-limits.ts'
import { prepareCallTask, readAnswerTask } from '../rfc/call.ts'
import { callFunction } from '../rfc/rfc-client.ts'
import { findRfcTarget, type RfcTargetDeps } from '../rfc/rfc-target.ts'
import { readFields, readFieldsTask, type FoundFields } from './answer.ts'
import { createReadEInvoice, tooLong, type ContentDeps } from './document-content.ts'
import type { EInvoice } from './e-invoice-xml.ts'
import { openEnrichmentCredentials } from './enrichments.ts'
import { createHttpCall, type HttpCallDeps } from './http-call.ts'
import { enrichmentCredentials, httpSettings, type ReadField, type storedHttp } from './settings.ts'
import type { FilledCall, MakeCall, StepOutcome } from './steps.ts'

export interface CallDeps extends RfcTargetDeps, HttpCallDeps, ContentDeps {
  runOnThread: RunTask
  /** How long an answer may be read on its thread, in milliseconds. */
  answerMaxMs?: number
}

/** The enrichment whose calls are made. */
interface Caller {
  workspaceId: string
  documentId: string
  enrichmentId: string
  http: ReturnType<typeof storedHttp>
  credentialsSealed: Buffer | null
  /** Tries before this one, and how the steps have ended at the last of them. */
  attempts: number
  outcomes: readonly StepOutcome[]
}

/** An answer, and the secrets that the system may repeat in it. */
interface Answer {
  text: string
  secrets: readonly string[]
}

// Reading an answer of the largest size takes a second. A path may visit all of it many times.
const defaultAnswerMaxMs = 10_000
// Longest wait for a thread: the time in which a few earlier documents are read. A try holds one of the places of a worker while it waits.
const defaultWaitMaxMs = 30_000
// A document whose reading takes too long is tried so often before that is a verdict: for three minutes, in which a machine may become idle.
const readingsMax = 4

/** An invoice by its format, without any of the values. */
const noValues = 'the invoice has no number, seller, total, currency and profile'

/** Reads the fields of what was found in an invoice: few short texts, with paths of the relay itself. Needs no thread. */
const readInvoiceFields = (text: string, fields: ReadField[]): FoundFields => {
  const { problem: reason, lost = {}, ...invoice } = JSON.parse(text) as EInvoice
  const all = reason ?? (Object.keys({ ...invoice, ...lost }).length === 0 ? noValues : undefined)
  if (all !== undefined) {
    return { values: {}, problems: fields.map(({ name, optional }) => ({ name, problem: all, optional })), reason: all }
  }
  const { values, problems } = readFields({ text, fields })
  return { values, problems: problems.map((each) => ({ ...each, problem: lost[each.name as keyof typeof lost] ?? each.problem })) }
}

/** Returns values without what a system has repeated. A short secret may also be a number or a key of the business, and is no reason to lose it. */
const withoutSecretsIn = (values: Record<string, string>, secrets: readonly string[]): Record<string, string> => {
  const long = secrets.filter((secret) => secret.length >= secretMinCharacters)
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, withoutSecrets(value, long)]))
}

/** Creates the function that makes the calls of one document. */
export const createMakeCall = (deps: CallDeps) => {
  const { waitMaxMs = defaultWaitMaxMs, answerMaxMs = defaultAnswerMaxMs } = deps
  const sendHttpCall = createHttpCall(deps)
  const readEInvoice = createReadEInvoice({ ...deps, waitMaxMs })
  const readOnThread = async <Input, Result>(task: ThreadTask<Input, Result>, workspaceId: string, input: Input): Promise<Result> => {
    try {
      return await deps.runOnThread(task, workspaceId, input, undefined, { waitMaxMs, workMaxMs: answerMaxMs })
    } catch (thrown) {
      if (thrown instanceof NotBegunError) throw thrown
      throw new AppError('rfc_failed', 'the answer cannot be read: it is too large or nested too deeply, or a path takes too long', {
        cause: thrown,
      })
    }
  }
  const callRfc = async (
    workspaceId: string,
    { function: functionName, imports, tables }: { function: string; imports: unknown; tables: unknown },
    signal: AbortSignal,
  ): Promise<Answer> => {
    const bytes = new Uint8Array(Buffer.from(JSON.stringify({ imports, tables })))
    const prepared = await readOnThread(prepareCallTask, workspaceId, { functionName, bytes })
    if (prepared.kind === 'refused') throw new AppError(prepared.code, prepared.message)
    const target = await findRfcTarget(workspaceId, functionName, deps)
    const readAnswer = (input: { text: string; tables: string[] }) => readOnThread(readAnswerTask, workspaceId, input)
    const answer = await callFunction(target, { ...prepared, readAnswer }, signal, deps)
    if (answer.kind === 'result') return { text: answer.body, secrets: [target.credentials.password] }
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
    return sendHttpCall(call, http, credentials.data, signal)
  }
  const makeOne = (job: Caller, call: FilledCall, signal: AbortSignal): Promise<Answer> => {
    if (call.kind === 'rfc') return callRfc(job.workspaceId, call, signal)
    if (call.kind === 'http') return callHttp(job, call, signal)
    const isFinal = job.attempts + 1 >= readingsMax && job.outcomes.some(({ error }) => error === tooLong)
    return readEInvoice(job.workspaceId, job.documentId, signal, isFinal).then((text) => ({ text, secrets: [] }))
  }
  return (job: Caller, signal: AbortSignal): MakeCall =>
    async (call, fields) => {
      if (signal.aborted) throw new NotBegunError('the steps before have used up the time of a try')
      const { text, secrets } = await makeOne(job, call, signal).catch((thrown: unknown) => {
        // The time of one call, or of the try.
        if (!(thrown instanceof DOMException) || thrown.name !== 'TimeoutError') throw thrown
        const what = call.kind === 'e_invoice' ? 'the document was not read' : 'the system did not answer'
        throw new AppError('rfc_timeout', `${what} in time`, { cause: thrown })
      })
      const shown = (maxCharacters: number) => withoutSecrets(cutText(text, maxCharacters), secrets, { isCut: text.length > maxCharacters })
      if (call.kind === 'e_invoice') return { shown, ...readInvoiceFields(text, fields) }
      const found = await readOnThread(readFieldsTask, job.workspaceId, { text, fields })
      return { shown, ...found, values: withoutSecretsIn(found.values, secrets) }
    }
}
