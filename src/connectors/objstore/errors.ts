import { types } from 'node:util'
import { ForeignAnswerError } from '../../base/s3-answers.ts'
import { DeliveryError } from '../connector.ts'
import type { FixedErrorCode } from '../error-codes.ts'
import type { Refusal } from '../shared/earlier-copy.ts'
import { toDeliveryError } from '../shared/errors.ts'
import { isPermanentStatus } from '../shared/final-answers.ts'
import { retryAfterMs } from '../shared/retry-after.ts'
import type { ObjstoreConfig } from './schema.ts'

/** The SDK's error for a response that is a refusal. */
interface ServiceError extends Error {
  $metadata?: { httpStatusCode?: number; requestId?: string }
  $response?: { headers?: Record<string, string> }
  Region?: string
}

/** Returns an error with texts only. To the SDK, a code or a message with elements inside it is an object, which may have no text at all. */
const withTexts = (thrown: ServiceError) => ({
  $metadata: thrown.$metadata,
  $response: thrown.$response,
  name: textOr('Unknown', thrown.name),
  message: textOr('unreadable', thrown.message),
  region: textOr(undefined, thrown.Region),
})

const textOr = <Other>(other: Other, said: unknown): string | Other => (typeof said === 'string' ? said : other)

const credentialErrors = new Set([
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'InvalidToken',
  'ExpiredToken',
  'TokenRefreshRequired',
  'InvalidClientTokenId',
  // versitygw
  'XAdminUserNotFound',
])
// RequestTimeTooSkewed passes once the clocks agree again. Bytes that were damaged or cut on the way are sent again.
const temporaryErrors = new Set([
  'BadDigest',
  'IncompleteBody',
  'InvalidPart',
  'XAmzContentChecksumMismatch',
  'RequestTimeout',
  'RequestTimeTooSkewed',
  'SlowDown',
  'ThrottlingException',
  'OperationAborted',
  'NoSuchUpload',
])

// In what stores say about an object that a retention, a legal hold, a policy or a condition protects: `ObjectUnderRetention` (Dell ECS),
// `FileImmutable` and `FileAlreadyExists` (Alibaba), `InvalidRequest` "Object is WORM protected and cannot be overwritten" (MinIO).
const saysProtected = /worm|immutab|retention|legal.?hold|object.?lock|already.?exist|overwr/i
// Codes of refusals that pass by themselves, or have nothing to do with the object.
const otherConflicts = new Set(['OperationAborted', 'ConditionalRequestConflict', 'BucketAlreadyExists', 'NoSuchBucket'])

/** Returns whether a refusal can mean that an object is stored under the key, or may not be replaced. */
export const refusalOf = (thrown: unknown): Refusal => {
  const { $metadata, name, message } = withTexts(thrown as ServiceError)
  const status = $metadata?.httpStatusCode ?? 0
  // An upload ends when it is completed: a gateway that sends the completion twice gets this.
  if (name === 'NoSuchUpload') return 'perhaps'
  if (status < 400 || status >= 500 || credentialErrors.has(name) || temporaryErrors.has(name) || otherConflicts.has(name)) return undefined
  if (status === 412 || saysProtected.test(`${name} ${message}`)) return 'exists'
  return [403, 405, 409, 423, 451].includes(status) ? 'perhaps' : undefined
}

/**
 * Maps an error of the S3 SDK. Retries everything that is not certainly permanent.
 * @param purpose what the account needs a permission for
 */
export const objstoreError = (thrown: unknown, config: ObjstoreConfig, purpose: string): DeliveryError => {
  const status = (thrown as ServiceError).$metadata?.httpStatusCode
  if (thrown instanceof ForeignAnswerError) return foreignAnswer(thrown.status, thrown.message, thrown.body)
  if (!types.isNativeError(thrown) || thrown instanceof DeliveryError || status === undefined) return networkError(thrown)
  // The SDK could not read what was answered.
  if (status < 300) return foreignAnswer(status, `${status} with a body that no store sends`)

  const error = withTexts(thrown)
  const headers = error.$response?.headers ?? {}
  const answer = { status, body: `${error.name}: ${error.message}`, request_id: error.$metadata?.requestId }
  const details = { answer, cause: thrown }
  const refusal = (code: FixedErrorCode, message: string) => new DeliveryError(code, message, details)

  if (credentialErrors.has(error.name)) {
    return new DeliveryError('credentials_refused', `the store refused access_key_id and secret_access_key (${error.name})`, {
      permanent: true,
      ...details,
    })
  }
  if (error.name === 'AuthorizationHeaderMalformed' || error.name === 'PermanentRedirect' || status === 301) {
    const actual = error.region ?? headers['x-amz-bucket-region'] ?? /expecting '([\w-]+)'/.exec(error.message)?.[1]
    return refusal(
      'wrong_region',
      `the bucket is not in ${config.region}${actual ? ` but in ${actual}` : ''} (${error.message}); correct region`,
    )
  }
  if (error.name === 'NoSuchBucket') return refusal('bucket_missing', `the bucket ${config.bucket} does not exist`)
  if (status === 403 && !temporaryErrors.has(error.name)) {
    return new DeliveryError('access_denied', `the account has no permission to ${purpose} (${error.name})`, {
      permanent: true,
      ...details,
    })
  }
  return new DeliveryError(`http_${status}`, `the store answered ${status} ${error.name}: ${error.message}`, {
    permanent: isPermanentStatus(status) && !temporaryErrors.has(error.name),
    retryAfterMs: retryAfterMs(headers['retry-after'], new Date()),
    ...details,
  })
}

const foreignAnswer = (status: number, what: string, body?: string) =>
  new DeliveryError(
    'answer_unreadable',
    `the store answered ${what}, so nothing shows that it has got the document; check endpoint, and the proxies before it`,
    { answer: { status, ...(body !== undefined && { body }) } },
  )

const networkError = (thrown: unknown): DeliveryError => {
  const error = toDeliveryError(thrown, 'store_failure')
  // The SDK names lost connections TimeoutError too, so the code of the network failure takes precedence.
  return error.code === 'store_failure' && types.isNativeError(thrown) && thrown.name === 'TimeoutError'
    ? new DeliveryError('timeout', `the store did not answer in time (${thrown.message})`, { cause: thrown })
    : error
}
