import { types } from 'node:util'
import { ForeignAnswerError } from '../../base/s3-answers.ts'
import { DeliveryError } from '../connector.ts'
import type { FixedErrorCode } from '../error-codes.ts'
import type { Refusal } from '../shared/earlier-copy.ts'
import { toDeliveryError } from '../shared/errors.ts'
import { codeRows, gatewayRow, gatewayStatuses, type FinalAnswer } from '../shared/final-answers.ts'
import { deniesPlainly, saysBusy, saysClock, saysDamaged, saysFull } from '../shared/passing-words.ts'
import { waitOf } from '../shared/retry-after.ts'
import type { ObjstoreConfig } from './schema.ts'
import { sessionFinalAnswers } from './session-errors.ts'

/** The SDK's error for a response that is a refusal. */
interface ServiceError extends Error {
  $metadata?: { httpStatusCode?: number; requestId?: string }
  $response?: { headers?: Record<string, string>; body?: unknown }
  /** Absent if the answer is no error of a store. */
  Code?: unknown
  Region?: string
}

/** Returns an error with texts only. To the SDK, a code or a message with elements inside it is an object, which may have no text at all. */
const withTexts = (thrown: ServiceError) => ({
  $metadata: thrown.$metadata,
  $response: thrown.$response,
  isOfStore: thrown.Code !== undefined,
  name: textOr('Unknown', thrown.name),
  message: textOr('unreadable', thrown.message),
  region: textOr(undefined, thrown.Region),
})

const textOr = <Other>(other: Other, said: unknown): string | Other => (typeof said === 'string' ? said : other)

// What stores say that no time changes, by their codes: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html and the error lists of
// Ceph, MinIO, Google Cloud Storage, Alibaba Cloud OSS and versitygw. Every other code is retried, known or not.
const credentialErrors: Record<string, string> = {
  InvalidAccessKeyId: 'the store does not know access_key_id',
  InvalidClientTokenId: 'the same',
  UnrecognizedClientException: 'the same',
  XAdminUserNotFound: 'the same, as versitygw says it',
  SignatureDoesNotMatch: 'secret_access_key is wrong',
  InvalidSecurity: 'the credentials are not valid',
  CredentialsNotSupported: 'the same',
  InvalidToken: 'session_token is not valid',
  ExpiredToken: 'session_token has expired',
  TokenRefreshRequired: 'the same',
  NotSignedUp: 'the account may not use the store',
  UserSuspended: 'the user is suspended',
}
const permissionErrors: Record<string, string> = {
  AccessDenied: 'the account has no permission to write, or a policy forbids it',
  AccessForbidden: 'the same',
  Forbidden: 'the same',
  UnauthorizedAccess: 'the same',
  UnauthorizedAccessError: 'the same',
  AllAccessDisabled: 'access is disabled',
  AccountProblem: 'the account has a problem that its owner must solve',
  InvalidPayer: 'access is disabled',
  ObjectUnderRetention: 'a retention protects the object',
  FileImmutable: 'the same',
  ObjectLocked: 'the same',
  'KMS.AccessDeniedException': 'the account may not use the key of kms_key_id',
  'KMS.DisabledException': 'the key of kms_key_id is disabled',
  'KMS.InvalidKeyUsageException': 'the key of kms_key_id is for another use',
  'KMS.KMSInvalidStateException': 'the key of kms_key_id is disabled or will be deleted',
  'KMS.NotFoundException': 'the key of kms_key_id does not exist',
}
const pathErrors: Record<string, string> = {
  InvalidObjectName: 'the store does not accept the key',
  InvalidKey: 'the same',
  InvalidURI: 'the same',
  KeyTooLongError: 'the key is too long',
  KeyTooLong: 'the same',
  XMinioInvalidObjectName: 'the same, as MinIO says it',
  XMinioInvalidResourceName: 'the same, as MinIO says it',
}
const requestErrors: Record<string, string> = {
  BadRequest: 'the request is wrong, for example because of more than 10 tags',
  EntityTooLarge: 'the document is larger than the store accepts',
  InvalidArgument: 'a value is not valid',
  InvalidBucketName: 'bucket is no name of a bucket',
  InvalidBucketState: 'the bucket is in a state that forbids the request',
  InvalidEncryptionAlgorithmError: 'the store does not know the encryption',
  InvalidEncryptionMethod: 'the same',
  InvalidRequest: 'the store does not accept such a request',
  InvalidStorageClass: 'the store does not know storage_class',
  InvalidTag: 'a tag is not valid',
  MetadataTooLarge: 'the metadata are too large',
  MethodNotAllowed: 'the store does not allow the operation for this object',
  MissingSecurityHeader: 'the store needs another header',
  NotImplemented: 'the store cannot do what the destination asks for',
  PreconditionFailed: 'a condition of the bucket is not met',
}

/** The answers after which nothing is sent again. */
export const objstoreFinalAnswers: readonly FinalAnswer[] = [
  ...sessionFinalAnswers,
  ...codeRows(credentialErrors),
  ...codeRows(permissionErrors),
  { answer: '`NoSuchBucket`', meaning: 'the bucket does not exist' },
  { answer: '`AuthorizationHeaderMalformed`, `PermanentRedirect`', meaning: 'the bucket is in another region' },
  ...codeRows(pathErrors),
  ...codeRows(requestErrors),
  gatewayRow,
]

// Codes that say several things: the message of the store tells which.
const isVague = new Set(['AccessDenied', 'AccessForbidden', 'Forbidden', 'AccountProblem', 'AllAccessDisabled', 'InvalidPayer'])
const isVagueRequest = new Set(['BadRequest', 'InvalidArgument', 'InvalidRequest', 'InvalidBucketState', 'MethodNotAllowed'])

/** Returns true for an answer whose code is final and whose message says that it passes. */
const passesByMessage = (name: string, message: string): boolean => {
  if (saysClock.test(message) && (Object.hasOwn(credentialErrors, name) || isVague.has(name))) return true
  if (deniesPlainly.test(message)) return false
  const says = isVague.has(name) || isVagueRequest.has(name) ? message : ''
  return saysFull.test(says) || saysBusy.test(says) || (isVagueRequest.has(name) && saysDamaged.test(says))
}

// In what stores say about an object that a retention, a legal hold, a policy or a condition protects: `ObjectUnderRetention` (Dell ECS),
// `FileImmutable` and `FileAlreadyExists` (Alibaba), `InvalidRequest` "Object is WORM protected and cannot be overwritten" (MinIO).
const saysProtected = /worm|immutab|retention|legal.?hold|object.?lock|already.?exist|overwr/i
// AWS, MinIO and versitygw, of a bucket without Object Lock.
const saysLockless = /missing object ?lock/i
// Codes of refusals that pass by themselves and have nothing to do with the object.
const otherConflicts =
  /^(?:OperationAborted|ConditionalRequestConflict|BucketAlreadyExists|NoSuchBucket|BadDigest|Incomplete\w*|InvalidDigest|InvalidPart\w*|XAmz\w*Mismatch|Request\w*)$/

/** Returns whether a refusal can mean that an object is stored under the key, or may not be replaced. */
export const refusalOf = (thrown: unknown): Refusal => {
  const { $metadata, name, message, isOfStore } = withTexts(thrown as ServiceError)
  const status = $metadata?.httpStatusCode ?? 0
  // An upload ends when it is completed: a gateway that sends the completion twice gets this.
  if (name === 'NoSuchUpload') return 'perhaps'
  if (!isOfStore || status < 400 || status >= 500 || Object.hasOwn(credentialErrors, name) || otherConflicts.test(name)) return undefined
  if (saysLockless.test(message)) return undefined
  if (status === 412 || saysProtected.test(`${name} ${message}`)) return 'exists'
  if (passesByMessage(name, message) || saysFull.test(name) || saysBusy.test(name)) return undefined
  return [403, 405, 409, 423, 451].includes(status) ? 'perhaps' : undefined
}

/** Returns true for the refusal of a request without a checksum: AWS names the headers that are missing. */
export const demandsChecksum = (thrown: unknown): boolean => {
  const { $metadata, name, message } = withTexts(thrown as ServiceError)
  if ($metadata?.httpStatusCode !== 400) return false
  return (
    /^Missing(?:ContentMD5|Checksum|Digest)/i.test(name) ||
    (/(?:content-md5|checksum)/i.test(message) && /required|missing|must/i.test(message))
  )
}

/**
 * Maps an error of the S3 SDK. Retries everything that is not certainly permanent.
 * @param purpose what the account needs a permission for
 * @param role the role whose session has signed the request. The next attempt may have another session
 */
export const objstoreError = (thrown: unknown, config: ObjstoreConfig, purpose: string, role?: string): DeliveryError =>
  thrown instanceof DeliveryError ? thrown : errorOf(thrown, config, purpose, role)

const errorOf = (thrown: unknown, config: ObjstoreConfig, purpose: string, role: string | undefined): DeliveryError => {
  const status = (thrown as ServiceError).$metadata?.httpStatusCode
  if (thrown instanceof ForeignAnswerError) return foreignAnswer(thrown.status, thrown.message, thrown.body)
  if (!types.isNativeError(thrown) || status === undefined) return networkError(thrown)
  // The SDK could not read what was answered.
  if (status < 300) return foreignAnswer(status, `${status} with a body that no store sends`)

  const error = withTexts(thrown)
  const { name, message } = error
  const headers = error.$response?.headers ?? {}
  const wait = waitOf(headers, new Date())
  const answer = { status, body: `${name}: ${message}`, request_id: error.$metadata?.requestId }
  const details = { answer, cause: thrown, retryAfterMs: wait }
  const refusal = (code: FixedErrorCode, text: string) => new DeliveryError(code, text, details)
  const isFinalBy = (meanings: Record<string, string>) =>
    wait === undefined && Object.hasOwn(meanings, name) && error.isOfStore && !passesByMessage(name, message)

  if (isFinalBy(credentialErrors)) {
    const what = role === undefined ? 'access_key_id and secret_access_key' : `the session of ${role}`
    const text = `the store refused ${what}: ${meaningOf(credentialErrors, name)} (${name})`
    return new DeliveryError('credentials_refused', text, { permanent: role === undefined, ...details })
  }
  const actual = error.region ?? headers['x-amz-bucket-region'] ?? /expecting '([\w-]+)'/.exec(message)?.[1]
  if (name === 'AuthorizationHeaderMalformed' || name === 'PermanentRedirect' || (status === 301 && actual !== undefined)) {
    const region = actual === undefined ? '' : ` but in ${actual}`
    return refusal('wrong_region', `the bucket is not in ${config.region}${region} (${message}); correct region`)
  }
  if (saysLockless.test(message)) return refusal('lock_missing', `the bucket ${config.bucket} has no Object Lock (${message})`)
  if (name === 'NoSuchBucket') return refusal('bucket_missing', `the bucket ${config.bucket} does not exist`)
  if (isFinalBy(permissionErrors)) {
    const text = `the account has no permission to ${purpose} (${name}: ${message})`
    return new DeliveryError('access_denied', text, { permanent: true, ...details })
  }
  if (isFinalBy(pathErrors)) return refusal('path_refused', `the store does not accept the key of the document (${name}: ${message})`)
  const isFull = saysFull.test(name) || (saysFull.test(message) && !deniesPlainly.test(message))
  if (status === 507 || (status < 500 && error.isOfStore && isFull)) {
    return refusal('quota_exceeded', `the store has no room: ${status} ${name}: ${message}`)
  }
  if (status >= 300 && status < 500 && !error.isOfStore && !isStatusOfItself(status)) {
    const text = `something between the relay and the store answered ${status}, because the answer is no error of a store; check endpoint, and the proxies before it`
    return refusal('answer_unreadable', text)
  }
  return new DeliveryError(`http_${status}`, `the store answered ${status} ${name}: ${message}`, {
    permanent: Object.hasOwn(gatewayStatuses, status) || isFinalBy(requestErrors),
    ...details,
  })
}

/** Returns the meaning of a code in a table whose rows refer to the row above. */
const meaningOf = (meanings: Record<string, string>, code: string): string => {
  const rows = Object.entries(meanings)
  const at = rows.findIndex(([each]) => each === code)
  return rows.slice(0, at + 1).findLast(([, meaning]) => !meaning.startsWith('the same'))?.[1] ?? code
}

/** Returns true if a status says the same without a body: redirects, limits, locks and what `gatewayStatuses` has. */
const isStatusOfItself = (status: number) =>
  status < 400 || Object.hasOwn(gatewayStatuses, status) || [404, 408, 409, 423, 425, 429].includes(status)

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
