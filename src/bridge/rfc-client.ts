import { request } from 'undici'
import type { Config } from '../config.ts'
import { readAnswer, withoutSecrets } from '../connectors/http-answer.ts'
import { toDeliveryError } from '../connectors/network-error.ts'
import { AppError } from '../errors.ts'
import type { OutboundGuard } from '../security/outbound.ts'
import { readRfcAnswer, rfcEnvelope, type RfcAnswer, type RfcCall } from './soap.ts'

/** The system whose functions are called, as a workspace's settings name it. */
export interface RfcTarget {
  /** Scheme, host and port. */
  url: string
  client: string
  language?: string | undefined
  /** PEM. Trusted in place of the public authorities. */
  caCertificate?: string | undefined
  credentials: { user: string; password: string }
}

export interface RfcClientDeps {
  outbound: OutboundGuard
  config: Pick<Config, 'RFC_TIMEOUT_MS' | 'RFC_ANSWER_MAX_BYTES' | 'DELIVERY_CONNECT_TIMEOUT_MS'>
}

/**
 * Calls a function once: whether it did anything is not known after a failure, so nobody tries again.
 * @returns what the function said, its exceptions included
 * @throws AppError `rfc_timeout`, or `rfc_failed` where no answer of the function came
 */
export const callFunction = async (
  target: RfcTarget,
  call: RfcCall,
  signal: AbortSignal,
  { outbound, config }: RfcClientDeps,
): Promise<Exclude<RfcAnswer, { kind: 'fault' }>> => {
  const timeUp = AbortSignal.timeout(config.RFC_TIMEOUT_MS)
  const { status, text } = await post(target, call, AbortSignal.any([signal, timeUp]), { outbound, config }).catch((thrown: unknown) => {
    if (thrown instanceof AppError) throw thrown
    if (timeUp.aborted) throw new AppError('rfc_timeout', `The system did not answer within ${config.RFC_TIMEOUT_MS} ms.`)
    if (signal.aborted) throw new AppError('rfc_failed', 'The caller hung up before the system had answered.')
    const { code, message } = toDeliveryError(thrown, 'unexpected')
    if (code === 'timeout') throw new AppError('rfc_timeout', `The system did not answer in time: ${message}.`, { cause: thrown })
    throw new AppError('rfc_failed', `The system cannot be reached: ${message}.`, { cause: thrown })
  })
  const refused = refusals[status]
  if (refused) throw new AppError('rfc_failed', refused)
  const answer = readRfcAnswer(text, call)
  if (answer.kind === 'fault')
    throw new AppError(
      'rfc_failed',
      `The system answered with status ${status}: ${withoutSecrets(clipped(answer.message), Object.values(target.credentials))}.`,
    )
  return answer
}

// by experience of what stands in the way
const refusals: Record<number, string> = {
  401: 'The system refuses user and password: change rfc.credentials in the settings.',
  403: 'The system does not let this user call functions: check its service /sap/bc/soap/rfc and the authorisation S_RFC.',
  404: 'The system has no service /sap/bc/soap/rfc: activate it there (SICF).',
}

const post = async (target: RfcTarget, call: RfcCall, signal: AbortSignal, { outbound, config }: RfcClientDeps) => {
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
    body: rfcEnvelope(call),
    signal,
    dispatcher: outbound.dispatcher({ connectTimeoutMs: config.DELIVERY_CONNECT_TIMEOUT_MS, caCertificate: target.caCertificate }),
    headersTimeout: config.RFC_TIMEOUT_MS,
    bodyTimeout: config.RFC_TIMEOUT_MS,
  })
  const limit = config.RFC_ANSWER_MAX_BYTES
  const text = await readAnswer(response.body, { maxBytes: limit + 1, timeoutMs: config.RFC_TIMEOUT_MS, secrets: [] })
  signal.throwIfAborted()
  if (Buffer.byteLength(text) > limit)
    throw new AppError('rfc_failed', `The answer has more than the ${limit} bytes of RFC_ANSWER_MAX_BYTES.`)
  return { status: response.statusCode, text }
}

const messageMaxCharacters = 500
const clipped = (text: string) => (text.length > messageMaxCharacters ? `${text.slice(0, messageMaxCharacters)}...` : text)
