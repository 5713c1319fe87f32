import { isRestError } from '@azure/storage-blob'
import type { BlobConfig, BlobCredentials } from './blob-target.ts'
import { DeliveryError, type Target } from './connector.ts'
import { isPermanentStatus, retryAfterMs, withoutSecrets } from './http-answer.ts'
import { toDeliveryError } from './network-error.ts'

// the service's own names: https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
const refusedCredentials = new Set([
  'AuthenticationFailed',
  'InvalidAuthenticationInfo',
  'NoAuthenticationInformation',
  'KeyBasedAuthenticationNotPermitted',
])
const refusedAccess: Record<string, string> = {
  AuthorizationFailure: 'the credentials are not good for this, or the firewall of the account keeps the relay out',
  AuthorizationPermissionMismatch: 'the credentials lack the right to write',
  InsufficientAccountPermissions: 'the credentials lack the right to write',
  AuthorizationProtocolMismatch: 'the SAS token is for https only',
  AuthorizationResourceTypeMismatch: 'the SAS token does not cover the blobs of the container',
  AuthorizationServiceMismatch: 'the SAS token is for another service',
  AuthorizationSourceIPMismatch: 'the SAS token is for other source addresses',
  AccountIsDisabled: 'the account is disabled',
  BlobImmutableDueToPolicy: 'a blob of this name is there and an immutability policy protects it',
}
// a blob that is leased, a container that is being deleted, blocks that another attempt has committed meanwhile
const passing = new Set(['LeaseIdMissing', 'ContainerBeingDeleted', 'InvalidBlockList', 'OperationTimedOut'])

// what is no answer of the service may be a whole page
const saidMaxCharacters = 1_000

/** A failure of the Blob service as an operator understands it. Anything that is not surely final is worth another try. */
export const blobError = (
  thrown: unknown,
  { config, credentials }: Target<BlobConfig, BlobCredentials>,
  secrets: string[],
): DeliveryError => {
  const status = isRestError(thrown) ? thrown.statusCode : undefined
  if (!isRestError(thrown) || status === undefined) return toDeliveryError(thrown, 'store_failure')

  const headers = thrown.response?.headers
  const name = headers?.get('x-ms-error-code') ?? thrown.code ?? 'unknown'
  const [firstLine = ''] = thrown.message.split('\n', 1)
  // in this order: a secret cut in two would not be found any more
  const said = withoutSecrets(firstLine, secrets).slice(0, saidMaxCharacters)
  const answer = { status, body: `${name}: ${said}`, request_id: headers?.get('x-ms-request-id') }
  const permanently = (code: string, message: string) => new DeliveryError(code, message, { permanent: true, answer })

  if (headers?.get('x-ms-request-id') === undefined && status < 500) {
    return permanently(
      'not_a_blob_service',
      `what answers at ${config.account_url} (with ${status}) is no Blob storage: correct account_url`,
    )
  }
  // azurite says so by the name of AuthorizationFailure
  if (refusedCredentials.has(name) || said.startsWith('Server failed to authenticate'))
    return permanently('credentials_refused', `the account refused ${refusedOf(credentials)} (${name})`)
  if (name === 'ContainerNotFound' || name === 'ContainerDisabled') {
    return permanently('container_missing', `there is no container ${config.container} in this account, or it is disabled`)
  }
  if (name === 'OutOfRangeInput' || name === 'InvalidUri' || name === 'InvalidResourceName') {
    return permanently('path_refused', `the account does not take the name of the blob (${name})`)
  }
  const reason = refusedAccess[name]
  if (reason !== undefined || (status === 403 && !passing.has(name))) {
    return permanently('access_denied', `the account does not let us write: ${reason ?? said} (${name})`)
  }
  return new DeliveryError(`http_${status}`, `the account answered ${status} ${name}: ${said}`, {
    permanent: isPermanentStatus(status) && !passing.has(name),
    retryAfterMs: retryAfterMs(headers?.get('retry-after'), new Date()),
    answer,
  })
}

const refusedOf = ({ account_key: key, sas_token: sas }: BlobCredentials) => {
  if (key !== undefined) return 'account_key: is it the key of the account that account_url names?'
  if (sas === undefined) return 'the application: does tenant_id own it, and does the account know it?'
  const ends = new URLSearchParams(sas).get('se')
  return ends !== null && Date.parse(ends) < Date.now() ? `sas_token, which ran out at ${ends}` : 'sas_token'
}
