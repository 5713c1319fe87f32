import { isRestError, type RestError } from '@azure/storage-blob'
import { plainText } from '../../base/text.ts'
import { DeliveryError, type Target, type TargetAnswer } from '../connector.ts'
import type { FixedErrorCode } from '../error-codes.ts'
import type { Refusal } from '../shared/earlier-copy.ts'
import { toDeliveryError, withoutSecrets } from '../shared/errors.ts'
import { isPermanentStatus } from '../shared/final-answers.ts'
import { retryAfterMs } from '../shared/retry-after.ts'
import type { BlobConfig, BlobCredentials } from './schema.ts'

// Names by the service: https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
const credentialErrors = new Set([
  'AuthenticationFailed',
  'InvalidAuthenticationInfo',
  'NoAuthenticationInformation',
  'KeyBasedAuthenticationNotPermitted',
])
const accessErrors = new Map([
  ['AuthorizationFailure', 'the credentials do not permit it, or the firewall of the account blocks the relay'],
  ['AuthorizationPermissionMismatch', 'the credentials do not permit writing'],
  ['InsufficientAccountPermissions', 'the credentials do not permit writing'],
  ['AuthorizationProtocolMismatch', 'the SAS token is valid for https only'],
  ['AuthorizationResourceTypeMismatch', 'the SAS token does not cover the blobs of the container'],
  ['AuthorizationServiceMismatch', 'the SAS token is for another service'],
  ['AuthorizationSourceIPMismatch', 'the SAS token is for other source addresses'],
  ['AccountIsDisabled', 'the account is disabled'],
  ['BlobImmutableDueToPolicy', 'a blob of this name exists and an immutability policy protects it'],
  ['BlobImmutableDueToLegalHold', 'a blob of this name exists and a legal hold protects it'],
  ['UnauthorizedBlobOverwrite', 'a blob of this name exists and the credentials do not permit to replace it'],
])
// A blob of the name exists, and it is not the content of the request that is refused.
const existsErrors = new Set(['BlobImmutableDueToPolicy', 'BlobImmutableDueToLegalHold', 'UnauthorizedBlobOverwrite', 'BlobAlreadyExists'])
// Conflicts that have nothing to do with the blob.
const otherConflicts = new Set(['ContainerBeingDeleted', 'ContainerDisabled', 'AccountBeingCreated', 'AccountIsDisabled'])
// A leased blob, a container that is being deleted, blocks that another attempt has committed.
const temporaryErrors = new Set(['LeaseIdMissing', 'ContainerBeingDeleted', 'InvalidBlockList', 'OperationTimedOut'])

/** Returns the error for a status of success without what identifies the service, or what it has stored. */
export const withoutEvidence = ({ account_url: accountUrl }: BlobConfig, answer: TargetAnswer): DeliveryError =>
  new DeliveryError(
    'answer_unreadable',
    `${accountUrl} answered ${answer.status} without the headers of Blob storage, so nothing shows that it has got the document; check account_url, and the proxies before it`,
    { answer },
  )

const nameOf = (thrown: RestError) => thrown.response?.headers.get('x-ms-error-code') ?? thrown.code ?? 'unknown'

/** Returns whether a refusal can mean that a blob of the name is stored and may not be replaced. */
export const refusalOf = (thrown: unknown): Refusal => {
  if (!isRestError(thrown) || thrown.response?.headers.get('x-ms-request-id') === undefined) return undefined
  const name = nameOf(thrown)
  if (existsErrors.has(name)) return 'exists'
  // A lease, a tier, another type of blob. A token that may only create is refused so by older versions.
  const isConflict = (thrown.statusCode === 409 || thrown.statusCode === 412) && !otherConflicts.has(name)
  return isConflict || name === 'AuthorizationPermissionMismatch' ? 'perhaps' : undefined
}

/** Maps an error of the Blob SDK. Retries everything that is not certainly permanent. */
export const blobError = (
  thrown: unknown,
  { config, credentials }: Target<BlobConfig, BlobCredentials>,
  secrets: string[],
): DeliveryError => {
  const status = isRestError(thrown) ? thrown.statusCode : undefined
  if (!isRestError(thrown) || status === undefined) return toDeliveryError(thrown, 'store_failure')

  const headers = thrown.response?.headers
  const name = nameOf(thrown)
  const [firstLine = ''] = thrown.message.split('\n', 1)
  // Redact before cutting: a secret that is cut in two would not be found. A response of another server may be a whole web page.
  const message = plainText(withoutSecrets(firstLine, secrets))
  const answer = { status, body: `${name}: ${message}`, request_id: headers?.get('x-ms-request-id') }
  const refusal = (code: FixedErrorCode, text: string) => new DeliveryError(code, text, { answer })

  // The SDK could not read what was answered.
  if (status < 300) return withoutEvidence(config, answer)
  if (headers?.get('x-ms-request-id') === undefined && status < 500) {
    return refusal('not_a_blob_service', `${config.account_url} answered ${status} but is no Blob storage; correct account_url`)
  }
  // The clocks differ by more than 15 minutes: the signature of the next attempt is valid once they agree again.
  if (name === 'AuthenticationFailed' && /Request date header too old/i.test(thrown.response?.bodyAsText ?? '')) {
    return new DeliveryError(`http_${status}`, `the account takes the request for an old one: compare the clock of the relay (${name})`, {
      permanent: false,
      answer,
    })
  }
  // Azurite reports wrong credentials as AuthorizationFailure.
  if (credentialErrors.has(name) || message.startsWith('Server failed to authenticate')) {
    return new DeliveryError('credentials_refused', `the account refused ${describe(credentials)} (${name})`, { permanent: true, answer })
  }
  if (name === 'ContainerNotFound' || name === 'ContainerDisabled') {
    return refusal('container_missing', `the container ${config.container} does not exist in this account, or is disabled`)
  }
  if (name === 'OutOfRangeInput' || name === 'InvalidUri' || name === 'InvalidResourceName') {
    return refusal('path_refused', `the account does not accept the name of the blob (${name})`)
  }
  const reason = accessErrors.get(name)
  if (reason !== undefined || (status === 403 && !temporaryErrors.has(name))) {
    return new DeliveryError('access_denied', `the account does not permit the relay to write: ${reason ?? message} (${name})`, {
      permanent: true,
      answer,
    })
  }
  return new DeliveryError(`http_${status}`, `the account answered ${status} ${name}: ${message}`, {
    permanent: isPermanentStatus(status) && !temporaryErrors.has(name),
    retryAfterMs: retryAfterMs(headers?.get('retry-after'), new Date()),
    answer,
  })
}

const describe = ({ account_key: key, sas_token: sas }: BlobCredentials) => {
  if (key !== undefined) return 'account_key; check that it is a key of the account in account_url'
  if (sas === undefined) return 'the application; check that tenant_id is its tenant and that it has a role on the account'
  const expiry = new URLSearchParams(sas).get('se')
  return expiry !== null && Date.parse(expiry) < Date.now() ? `sas_token, which expired at ${expiry}` : 'sas_token'
}
