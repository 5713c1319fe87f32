import { z } from 'zod'
import { isUntrustedCertificate, messageOf } from '../../base/errors.ts'
import { redactAndCut } from '../../base/secrets.ts'
import { BlockedAddressError, UnencryptedError } from '../../security/dial.ts'
import { ForwardProxyError } from '../../security/forward-proxy.ts'
import { DeliveryError, type AttemptContext } from '../connector.ts'
import type { FixedErrorCode } from '../error-codes.ts'
import { causesOf, withOperation } from './operation.ts'

const networkErrors: Record<string, { code: FixedErrorCode; message: string }> = {
  ECONNREFUSED: { code: 'connection_refused', message: 'nothing listens at the host and port' },
  ENOTFOUND: { code: 'host_not_found', message: 'the host name does not exist' },
  EAI_AGAIN: { code: 'host_not_found', message: 'the name server did not answer' },
  EHOSTUNREACH: { code: 'host_unreachable', message: 'there is no route to the host' },
  ENETUNREACH: { code: 'host_unreachable', message: 'there is no route to the host' },
  ETIMEDOUT: { code: 'timeout', message: 'the target did not answer in time' },
  UND_ERR_HEADERS_TIMEOUT: { code: 'timeout', message: 'the target did not answer in time' },
  UND_ERR_BODY_TIMEOUT: { code: 'timeout', message: 'the target stopped in the middle of its answer' },
  ECONNRESET: { code: 'connection_lost', message: 'the target closed the connection' },
  EPIPE: { code: 'connection_lost', message: 'the target closed the connection' },
}

// Their messages repeat their names.
const saysNoMore = /_(HEADERS|BODY)_TIMEOUT$/
// TLS alerts with which a server rejects a missing or unacceptable client certificate.
const clientCertificateAlerts = /^ERR_SSL_.*ALERT_(UNKNOWN_CA|ACCESS_DENIED|NO_CERTIFICATE|.*CERTIFICATE)/
const handshakeCodes = /^(ERR_SSL_|ERR_TLS_|EPROTO)/

/**
 * Turns a network failure into a delivery error. Unknown failures are retried: names are registered, certificates are
 * renewed.
 * @param fallbackCode is used if no cause of the error is a known network failure
 */
export const toDeliveryError = (thrown: unknown, fallbackCode: FixedErrorCode): DeliveryError => {
  for (const cause of causesOf(thrown)) {
    if (cause instanceof DeliveryError) return cause
    if (cause instanceof BlockedAddressError || cause instanceof UnencryptedError || cause instanceof ForwardProxyError)
      return new DeliveryError(cause.code, cause.message, { cause })
    const systemCode = (cause as { code?: unknown }).code
    if (typeof systemCode !== 'string') continue
    const known = networkErrors[systemCode]
    if (known) {
      const detail = saysNoMore.test(systemCode) ? '' : ` (${messageOf(cause)})`
      return new DeliveryError(known.code, `${known.message}${detail}`, { cause: thrown })
    }
    if (isUntrustedCertificate(systemCode)) {
      return new DeliveryError('certificate_refused', `the target's TLS certificate is not trusted: ${messageOf(cause)}`, { cause: thrown })
    }
    if (clientCertificateAlerts.test(systemCode)) {
      const message = `the target refuses the client certificate of the destination, or demands one: ${messageOf(cause)}`
      return new DeliveryError('credentials_refused', message, { permanent: true, cause: thrown })
    }
    if (handshakeCodes.test(systemCode)) {
      return new DeliveryError('tls_failed', `the TLS handshake failed: ${messageOf(cause)}`, { cause: thrown })
    }
  }
  return new DeliveryError(fallbackCode, messageOf(thrown), { cause: thrown })
}

// A message is plain and has 1,000 characters in the end.
const messageMaxBytes = 16 * 1_024

/**
 * Runs an attempt and turns every failure into a delivery error without secrets, which begins with the operation that has failed, if one was
 * noted. Its answer is cut to the size that is kept.
 * @param secrets is read after a failure, so the attempt may add tokens and upload addresses while it runs
 * @param toError maps errors of targets that report more than network failures
 * @throws DeliveryError, or the signal's reason if the attempt was aborted
 */
export const withDeliveryErrors = async <Result>(
  { signal, answerMaxBytes }: Pick<AttemptContext, 'signal' | 'answerMaxBytes'>,
  secrets: string[],
  attempt: () => Promise<Result>,
  toError = (thrown: unknown) => toDeliveryError(thrown, 'request_failed'),
): Promise<Result> => {
  signal.throwIfAborted()
  try {
    return await attempt()
  } catch (thrown) {
    signal.throwIfAborted()
    throw withOperation(toError(thrown), thrown).reworded(
      thrown,
      (message) => redactAndCut(message, secrets, messageMaxBytes),
      (answer) => ({ ...answer, ...(answer.body !== undefined && { body: redactAndCut(answer.body, secrets, answerMaxBytes) }) }),
    )
  }
}

interface SchemaNode {
  secret?: boolean
  properties?: Record<string, SchemaNode>
}

/** Returns every string in the credentials that their schema marks as secret, at any depth. */
export const secretsIn = (credentials: z.ZodType, value: unknown): string[] =>
  markedStrings(z.toJSONSchema(credentials, { io: 'output', unrepresentable: 'any' }) as SchemaNode, value)

const markedStrings = ({ secret, properties = {} }: SchemaNode, value: unknown): string[] => {
  if (typeof value === 'string') return secret ? [value] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, child]) => markedStrings(properties[key] ?? {}, child))
}
