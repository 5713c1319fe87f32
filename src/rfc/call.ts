import { z } from 'zod'
import { AppError, type ErrorCode, type ErrorDetail } from '../base/errors.ts'
import { plainMessages } from '../base/issue-messages.ts'
import { bodyRefusal } from '../base/refusals.ts'
import { threadTask } from '../base/thread-task.ts'
import { parseJson } from '../http/input.ts'
import { readLink, type ObjectLink } from './object-link.ts'
import { readRfcAnswer, rfcEnvelope, type RfcAnswer, type RfcValue } from './soap.ts'

// Both functions run on a thread (src/http/threads.ts): a body of 1 MiB can contain half a million values, and an answer even more. What
// they return is small, or a text that the main thread only passes on.

// In upper or lower case, because ABAP names are not case-sensitive.
const parameterName = z.string().regex(/^(\/\w{1,10}\/)?[A-Za-z]\w{0,29}$/, 'must be a parameter or field name')
// Text without the control characters that XML 1.0 does not allow.
const text = z.string().regex(/^[^\p{Cc}]*(?:[\t\n\r][^\p{Cc}]*)*$/u, 'contains control characters')
const value: z.ZodType<RfcValue> = z.lazy(() =>
  z.union([text, z.number(), z.boolean(), z.null(), z.array(value), z.record(parameterName, value)]),
)
const callBody = z.strictObject({
  imports: z.record(parameterName, value).default({}),
  tables: z.record(parameterName, z.array(value)).default({}),
})

/** A call that is ready to be sent. */
export interface PreparedCall {
  kind: 'call'
  /** XML. */
  envelope: string
  /** Names of the tables that the system returns. */
  tables: string[]
  /** The link to a business object that the call makes if it succeeds. */
  link: ObjectLink | undefined
}

/** An `AppError` as data, because errors lose their class between threads. */
interface RefusedCall {
  kind: 'refused'
  code: ErrorCode
  message: string
  details: ErrorDetail[] | undefined
}

const refused = ({ code, message, details }: AppError): RefusedCall => ({ kind: 'refused', code, message, details })

/** Reads the body of a request and prepares its call. */
export const prepareCall = ({ functionName, bytes }: { functionName: string; bytes: Uint8Array }): PreparedCall | RefusedCall => {
  try {
    const body = callBody.safeParse(parseJson(bytes), plainMessages)
    if (!body.success) return refused(bodyRefusal(body.error))
    const call = { functionName, ...body.data }
    return { kind: 'call', envelope: rfcEnvelope(call), tables: Object.keys(call.tables), link: readLink(call) }
  } catch (thrown) {
    if (thrown instanceof AppError) return refused(thrown)
    // The stack is too small for values that are nested thousands of times.
    if (thrown instanceof RangeError) return refused(new AppError('invalid_request', 'The values of the body are nested too deeply.'))
    throw thrown
  }
}

/** The answer of the system. The body of the response to a result is JSON. */
export type ReadAnswer = { kind: 'result'; body: string } | Exclude<RfcAnswer, { kind: 'result' }>

/** Reads an answer of the system. @param input.tables names of the tables that the call named */
export const readAnswer = (input: { text: string; tables: string[] }): ReadAnswer => {
  const answer = readRfcAnswer(input.text, input.tables)
  if (answer.kind !== 'result') return answer
  const { exports, tables } = answer
  return { kind: 'result', body: JSON.stringify({ exports, tables }) }
}

export const prepareCallTask = threadTask(import.meta.url, prepareCall)
export const readAnswerTask = threadTask(import.meta.url, readAnswer)
