import { types } from 'node:util'
import { DeliveryError } from './connector.ts'
import { isPermanentStatus, retryAfterMs } from './http-answer.ts'
import { toDeliveryError } from './network-error.ts'
import type { ObjstoreConfig } from './objstore-target.ts'

/** What the SDK tells of an answer that was a refusal. */
interface ServiceError extends Error {
  $metadata?: { httpStatusCode?: number; requestId?: string }
  $response?: { headers?: Record<string, string> }
  Region?: string
}

const refusedCredentials = new Set([
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'InvalidToken',
  'ExpiredToken',
  'TokenRefreshRequired',
  'InvalidClientTokenId',
  // versitygw
  'XAdminUserNotFound',
])
// RequestTimeTooSkewed is a matter of clocks: it passes once they agree again
const passing = new Set(['RequestTimeout', 'RequestTimeTooSkewed', 'SlowDown', 'ThrottlingException', 'OperationAborted', 'NoSuchUpload'])

/** An S3 failure as an operator understands it. Anything that is not surely final is worth another try. */
export const objectStoreError = (thrown: unknown, config: ObjstoreConfig): DeliveryError => {
  const error = thrown as ServiceError
  const status = error.$metadata?.httpStatusCode
  if (!types.isNativeError(thrown) || thrown instanceof DeliveryError || status === undefined) return networkError(thrown)

  const headers = error.$response?.headers ?? {}
  const answer = { status, body: `${error.name}: ${error.message}`, request_id: error.$metadata?.requestId }
  const permanently = (code: string, message: string) => new DeliveryError(code, message, { permanent: true, answer, cause: thrown })

  if (refusedCredentials.has(error.name)) {
    return permanently('credentials_refused', `the store refused access_key_id and secret_access_key (${error.name})`)
  }
  if (error.name === 'AuthorizationHeaderMalformed' || error.name === 'PermanentRedirect' || status === 301) {
    const right = error.Region ?? headers['x-amz-bucket-region'] ?? /expecting '([\w-]+)'/.exec(error.message)?.[1]
    return permanently(
      'wrong_region',
      `the bucket is not in ${config.region}${right ? ` but in ${right}` : ''} (${error.message}): change region`,
    )
  }
  if (error.name === 'NoSuchBucket') return permanently('bucket_missing', `there is no bucket ${config.bucket}`)
  if (status === 403 && !passing.has(error.name)) {
    return permanently(
      'access_denied',
      `the account may not write there (${error.name}): it needs s3:PutObject and s3:AbortMultipartUpload`,
    )
  }
  return new DeliveryError(`http_${status}`, `the store answered ${status} ${error.name}: ${error.message}`, {
    permanent: isPermanentStatus(status) && !passing.has(error.name),
    retryAfterMs: retryAfterMs(headers['retry-after'], new Date()),
    answer,
    cause: thrown,
  })
}

const networkError = (thrown: unknown): DeliveryError => {
  const error = toDeliveryError(thrown, 'store_failure')
  // the SDK gives this name to lost connections too, which is why their own code goes first
  return error.code === 'store_failure' && types.isNativeError(thrown) && thrown.name === 'TimeoutError'
    ? new DeliveryError('timeout', `the store did not answer in time (${thrown.message})`, { cause: thrown })
    : error
}
