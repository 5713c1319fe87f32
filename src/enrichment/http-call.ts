import { STATUS_CODES } from 'node:http'
import { request } from 'undici'
import type { Config } from '../config/config.ts'
import { DeliveryError } from '../connectors/connector.ts'
import { createTokenCache } from '../connectors/shared/access-tokens.ts'
import { createClientTokens } from '../connectors/shared/client-credentials.ts'
import { withDeliveryErrors } from '../connectors/shared/errors.ts'
import { clientCertificateOf, signInSecretsOf, signsIn, withSignIn, type HttpSignIn } from '../connectors/shared/http-sign-in.ts'
import { readResponse } from '../connectors/shared/http.ts'
import { hopsHeader } from '../domain/headers.ts'
import { systemAnswerMaxBytes } from '../rfc/rfc-client.ts'
import type { OutboundGuard } from '../security/outbound.ts'
import type { HttpSettings } from './settings.ts'

export interface HttpCallDeps {
  outbound: OutboundGuard
  installation: { id(): Promise<string> }
  config: Pick<Config, 'RFC_TIMEOUT_MS' | 'DELIVERY_CONNECT_TIMEOUT_MS'>
}

export interface HttpCall {
  method: 'GET' | 'POST'
  url: string
  /** JSON. */
  body: string | undefined
}

// A segment of a path that a URL drops, with the one before it. A value may be such a segment.
const dotSegment = /^(\.|%2e){1,2}$/i

/** Returns true if no part of the path leads out of the path before it. */
const isStraight = (url: string): boolean =>
  !url
    .split(/[?#]/, 1)[0]!
    .split(/[/\\]/)
    .some((segment) => dotSegment.test(segment))

/**
 * Creates the function that sends a request of an enrichment once. Its answer is text, in which the system may repeat the secrets that come with
 * it. It throws a `DeliveryError` if there is none.
 */
export const createHttpCall = ({ outbound, installation, config }: HttpCallDeps) => {
  const tokens = createClientTokens(createTokenCache())
  const { RFC_TIMEOUT_MS: timeoutMs, DELIVERY_CONNECT_TIMEOUT_MS: connectTimeoutMs } = config

  const sendOnce = async (
    { method, url, body }: HttpCall,
    http: HttpSettings,
    { authorized, credentials, signal }: { authorized: Record<string, string>; credentials: HttpSignIn; signal: AbortSignal },
  ): Promise<string> => {
    const isUnencrypted = new URL(url).protocol === 'http:' && signsIn(credentials)
    const response = await request(url, {
      method,
      headers: {
        'user-agent': 'document-relay',
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        [hopsHeader]: await installation.id(),
        ...http.headers,
        ...authorized,
      },
      body: body ?? null,
      signal,
      dispatcher: (isUnencrypted ? outbound.unencryptedPrivate : outbound).dispatcher({
        connectTimeoutMs,
        caCertificate: http.caCertificate,
        clientCertificate: clientCertificateOf(credentials),
      }),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    })
    const text = await readResponse(response.body, { maxBytes: systemAnswerMaxBytes + 1, timeoutMs, secrets: [] })
    signal.throwIfAborted()
    const { statusCode: status } = response
    if (status < 200 || status > 299) {
      const message = `the system answered ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd()
      throw new DeliveryError(`http_${status}`, message, { permanent: false, answer: { status } })
    }
    if (Buffer.byteLength(text) > systemAnswerMaxBytes) {
      throw new DeliveryError('request_failed', `the answer exceeds ${systemAnswerMaxBytes} bytes`)
    }
    return text
  }

  return async (
    call: HttpCall,
    http: HttpSettings,
    credentials: HttpSignIn,
    aborted: AbortSignal,
  ): Promise<{ text: string; secrets: string[] }> => {
    if (!isStraight(call.url)) throw new DeliveryError('request_failed', 'a value would lead the request to another path')
    const signal = AbortSignal.any([aborted, AbortSignal.timeout(timeoutMs)])
    const secrets = signInSecretsOf(credentials)
    const context = { signal, outbound, connectTimeoutMs, idleTimeoutMs: timeoutMs }
    const text = await withDeliveryErrors({ signal, answerMaxBytes: 0 }, secrets, () =>
      withSignIn(tokens, credentials, { context, secrets }, (authorized) => sendOnce(call, http, { authorized, credentials, signal })),
    )
    return { text, secrets }
  }
}
