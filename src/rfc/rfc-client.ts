import { request } from 'undici'
import { AppError } from '../base/errors.ts'
import { withoutSecrets } from '../base/secrets.ts'
import { plainText } from '../base/text.ts'
import type { Config } from '../config/config.ts'
import { toDeliveryError } from '../connectors/shared/errors.ts'
import { readResponse } from '../connectors/shared/http.ts'
import type { OutboundGuard } from '../security/outbound.ts'
import type { PreparedCall, ReadAnswer } from './call.ts'

/** System whose functions are called, as configured in the workspace settings. */
export interface RfcTarget {
  /** Scheme, host and port. */
  url: string
  client: string
  language?: string | undefined
  /** PEM. The only trusted authority: it replaces the public ones. */
  caCertificate?: string | undefined
  credentials: { user: string; password: string }
}

/** Maximum size of an answer of another system. Reading it as XML takes a thread 0.3 seconds and 60 MB per MiB. */
export const systemAnswerMaxBytes = 2 * 1024 * 1024

export interface RfcClientDeps {
  outbound: OutboundGuard
  config: Pick<Config, 'RFC_TIMEOUT_MS' | 'DELIVERY_CONNECT_TIMEOUT_MS'>
}

interface Call extends Pick<PreparedCall, 'envelope' | 'tables'> {
  /** Reads the answer, as a rule on a thread of its own. */
  readAnswer(input: { text: string; tables: string[] }): Promise<ReadAnswer>
}

/**
 * Calls a function once. A failed call is not repeated, because it may have had an effect.
 * @returns the result or the exception of the function
 * @throws `AppError` `rfc_timeout`, or `rfc_failed` if there is no answer from the function
 */
export const callFunction = async (
  target: RfcTarget,
  call: Call,
  signal: AbortSignal,
  { outbound, config }: RfcClientDeps,
): Promise<Exclude<ReadAnswer, { kind: 'fault' | 'unauthorized' }>> => {
  const timeout = AbortSignal.timeout(config.RFC_TIMEOUT_MS)
  const { status, text } = await post(target, call, AbortSignal.any([signal, timeout]), { outbound, config }).catch((thrown: unknown) => {
    if (thrown instanceof AppError) throw thrown
    if (timeout.aborted) throw new AppError('rfc_timeout', `The system did not answer within ${config.RFC_TIMEOUT_MS} ms.`)
    if (signal.aborted) throw new AppError('rfc_failed', 'The client disconnected before the system answered.')
    const { code, message } = toDeliveryError(thrown, 'unexpected')
    if (code === 'timeout') throw new AppError('rfc_timeout', `The system did not answer in time: ${message}.`, { cause: thrown })
    throw new AppError('rfc_failed', `The system cannot be reached: ${message}.`, { cause: thrown })
  })
  const problem = problemByStatus[status]
  if (problem) throw new AppError('rfc_failed', problem)
  const answer = await call.readAnswer({ text, tables: call.tables })
  if (answer.kind === 'fault') {
    throw new AppError('rfc_failed', `The system answered with status ${status}: ${said(answer.message, target)}.`)
  }
  if (answer.kind === 'unauthorized') {
    const advice = `The user of rfc.credentials may not call this function. ${notAuthorized}`
    throw new AppError('rfc_failed', `${advice} The system says: ${said(answer.message, target)}.`)
  }
  // A gateway may repeat what it was sent.
  return answer.kind === 'exception' ? { ...answer, message: withoutSecrets(answer.message, [target.credentials.password]) } : answer
}

const notAuthorized = 'Give it the authorization S_RFC for the function or its function group (transactions PFCG and SU53).'

/** Returns a text of the system as it may be shown. */
const said = (message: string, { credentials }: RfcTarget): string =>
  plainText(withoutSecrets(message, [credentials.password]), messageMaxCharacters).replace(/[. ]+$/, '')

// Usual causes of a status that the system answers before the function is called.
const problemByStatus: Record<number, string> = {
  401: 'The system rejected the user name or password. Correct rfc.credentials in the workspace settings.',
  403: 'The system does not allow this user to call functions. Check the service /sap/bc/soap/rfc and the authorization S_RFC there.',
  404: 'The service /sap/bc/soap/rfc is not active in the system. Activate it there (transaction SICF).',
}

const post = async (target: RfcTarget, { envelope }: Call, signal: AbortSignal, { outbound, config }: RfcClientDeps) => {
  const url = new URL('/sap/bc/soap/rfc', target.url)
  url.searchParams.set('sap-client', target.client)
  if (target.language !== undefined) url.searchParams.set('sap-language', target.language)
  const { user, password } = target.credentials
  const basic = Buffer.from(`${user}:${password}`).toString('base64')
  const response = await request(url, {
    method: 'POST',
    headers: {
      'user-agent': 'document-relay',
      'content-type': 'text/xml; charset=utf-8',
      soapaction: '"urn:sap-com:document:sap:rfc:functions"',
      authorization: `Basic ${basic}`,
    },
    body: envelope,
    signal,
    dispatcher: (url.protocol === 'http:' ? outbound.unencryptedPrivate : outbound).dispatcher({
      connectTimeoutMs: config.DELIVERY_CONNECT_TIMEOUT_MS,
      caCertificate: target.caCertificate,
    }),
    headersTimeout: config.RFC_TIMEOUT_MS,
    bodyTimeout: config.RFC_TIMEOUT_MS,
  })
  const text = await readResponse(response.body, {
    maxBytes: systemAnswerMaxBytes + 1,
    timeoutMs: config.RFC_TIMEOUT_MS,
    secrets: [],
    encoding: response.headers['content-encoding'],
    contentType: [response.headers['content-type'] ?? ''].flat()[0]!,
  })
  signal.throwIfAborted()
  if (Buffer.byteLength(text) > systemAnswerMaxBytes) throw new AppError('rfc_failed', `The answer exceeds ${systemAnswerMaxBytes} bytes.`)
  return { status: response.statusCode, text }
}

const messageMaxCharacters = 500
