import { types } from 'node:util'
import { messageOf } from '../errors.ts'
import { BlockedAddressError } from '../security/outbound.ts'
import { DeliveryError } from './connector.ts'

const codes: Record<string, { code: string; message: string }> = {
  ECONNREFUSED: { code: 'connection_refused', message: 'nothing listens at the host and port' },
  ENOTFOUND: { code: 'host_not_found', message: 'the host name is not known' },
  EAI_AGAIN: { code: 'host_not_found', message: 'the name server did not answer' },
  EHOSTUNREACH: { code: 'host_unreachable', message: 'no route leads to the host' },
  ENETUNREACH: { code: 'host_unreachable', message: 'no route leads to the host' },
  ETIMEDOUT: { code: 'timeout', message: 'the target did not answer in time' },
  UND_ERR_CONNECT_TIMEOUT: { code: 'timeout', message: 'the target did not answer in time' },
  UND_ERR_HEADERS_TIMEOUT: { code: 'timeout', message: 'the target sent no answer in time' },
  UND_ERR_BODY_TIMEOUT: { code: 'timeout', message: 'the target stopped in the middle of its answer' },
  ECONNRESET: { code: 'connection_lost', message: 'the target cut the connection' },
  EPIPE: { code: 'connection_lost', message: 'the target cut the connection' },
  UND_ERR_SOCKET: { code: 'connection_lost', message: 'the target cut the connection' },
}

const certificateCodes =
  /^(CERT_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/
const handshakeCodes = /^(ERR_SSL_|ERR_TLS_|EPROTO)/

/**
 * What went wrong on the way, in words for the operator. Anything unknown is worth another try: names come back, certificates are renewed.
 * @param fallbackCode where nothing of the network is to be found in it
 */
export const toDeliveryError = (thrown: unknown, fallbackCode: string): DeliveryError => {
  for (const cause of causesOf(thrown)) {
    if (cause instanceof DeliveryError) return cause
    if (cause instanceof BlockedAddressError) return new DeliveryError(cause.code, cause.message, { permanent: true, cause })
    const systemCode = (cause as { code?: unknown }).code
    if (typeof systemCode !== 'string') continue
    const known = codes[systemCode]
    if (known) return new DeliveryError(known.code, `${known.message} (${messageOf(cause)})`, { cause: thrown })
    if (certificateCodes.test(systemCode)) {
      return new DeliveryError('certificate_refused', `the target's TLS certificate is not to be trusted: ${messageOf(cause)}`, {
        cause: thrown,
      })
    }
    if (handshakeCodes.test(systemCode)) {
      return new DeliveryError('tls_failed', `no TLS connection came about: ${messageOf(cause)}`, { cause: thrown })
    }
  }
  return new DeliveryError(fallbackCode, messageOf(thrown), { cause: thrown })
}

const deepest = 5

const causesOf = (thrown: unknown): Error[] => {
  const causes: Error[] = []
  // not instanceof: Node's own errors come from another realm where a test runner sandboxes the code
  for (let cause = thrown; types.isNativeError(cause) && causes.length < deepest; cause = cause.cause) causes.push(cause)
  return causes
}
