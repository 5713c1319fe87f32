import { isRestError, type RestError } from '@azure/storage-blob'
import { withoutSecrets } from '../../base/secrets.ts'
import { plainText } from '../../base/text.ts'
import { DeliveryError, type Target, type TargetAnswer } from '../connector.ts'
import type { FixedErrorCode } from '../error-codes.ts'
import type { Refusal } from '../shared/earlier-copy.ts'
import { toDeliveryError } from '../shared/errors.ts'
import { codeRows, gatewayRow, gatewayStatuses, type FinalAnswer } from '../shared/final-answers.ts'
import { waitOf } from '../shared/retry-after.ts'
import type { BlobConfig, BlobCredentials } from './schema.ts'

// What the service says that no time changes, by its codes: https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes. Every other
// code is retried, known or not: leases, conditions, blocks that another program has left, damage on the way.
const credentialErrors: Record<string, string> = {
  AuthenticationFailed: 'account_key or sas_token is wrong, or has expired',
  InvalidAuthenticationInfo: 'the token of Entra, or the form of the key, is not accepted',
  NoAuthenticationInformation: 'the account wants other credentials',
  KeyBasedAuthenticationNotPermitted: 'account_key and sas_token are disabled for the account',
}
const accessErrors: Record<string, string> = {
  AuthorizationFailure: 'the credentials do not permit it, or the firewall of the account blocks the relay',
  AuthorizationPermissionMismatch: 'the credentials do not permit writing',
  InsufficientAccountPermissions: 'the credentials do not permit writing',
  AuthorizationProtocolMismatch: 'the SAS token is valid for https only',
  AuthorizationResourceTypeMismatch: 'the SAS token does not cover the blobs of the container',
  AuthorizationServiceMismatch: 'the SAS token is for another service',
  AuthorizationSourceIPMismatch: 'the SAS token is for other source addresses',
  AccountIsDisabled: 'the account is disabled',
  AccountRequiresHttps: 'the account requires https',
  PublicAccessNotPermitted: 'the account wants credentials',
  BlobImmutableDueToPolicy: 'a blob of this name exists and an immutability policy protects it',
  BlobImmutableDueToLegalHold: 'a blob of this name exists and a legal hold protects it',
  UnauthorizedBlobOverwrite: 'a blob of this name exists and the credentials do not permit to replace it',
}
const containerErrors: Record<string, string> = {
  ContainerNotFound: 'the container does not exist',
  ContainerDisabled: 'the container is disabled',
}
const pathErrors: Record<string, string> = {
  OutOfRangeInput: 'the name of the blob is not accepted',
  InvalidUri: 'the name of the blob is not accepted',
  InvalidResourceName: 'the name of the blob is not accepted',
}
const requestErrors: Record<string, string> = {
  BlockCountExceedsLimit: 'the document has too many blocks',
  BlockListTooLong: 'the document has too many blocks',
  EmptyMetadataKey: 'the metadata are not accepted',
  FeatureNotYetSupportedForHierarchicalNamespaceAccounts: 'an account with a hierarchical namespace has no index tags',
  FeatureVersionMismatch: 'the account cannot do this',
  InvalidHeaderValue: 'the value of a header is not accepted',
  InvalidMetadata: 'the metadata are not accepted',
  InvalidQueryParameterValue: 'the value of a parameter is not accepted',
  InvalidTag: 'an index tag is not accepted',
  MetadataTooLarge: 'the metadata are too large',
  MissingRequiredHeader: 'a header is missing',
  OutOfRangeQueryParameterValue: 'the value of a parameter is not accepted',
  RequestBodyTooLarge: 'the document is larger than the account accepts',
  RequestUrlFailedToParse: 'the address is not accepted',
  UnsupportedHeader: 'a header is not supported',
  UnsupportedHttpVerb: 'the operation is not supported',
  UnsupportedQueryParameter: 'a parameter is not supported',
}

/** The answers after which nothing is sent again. */
export const blobFinalAnswers: readonly FinalAnswer[] = [
  ...[credentialErrors, accessErrors, containerErrors, pathErrors, requestErrors].flatMap((meanings) => codeRows(meanings)),
  gatewayRow,
]

// A blob of the name exists, and it is not the content of the request that is refused.
const existsErrors = new Set(['BlobImmutableDueToPolicy', 'BlobImmutableDueToLegalHold', 'UnauthorizedBlobOverwrite', 'BlobAlreadyExists'])
// Conflicts that have nothing to do with the blob.
const otherConflicts = new Set(['ContainerBeingDeleted', 'ContainerDisabled', 'AccountBeingCreated', 'AccountIsDisabled'])
const saysFull = /quota|capacity|insufficientstorage|diskfull/i

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
  const wait = waitOf(headers?.toJSON() ?? {}, new Date())
  const answer = { status, body: `${name}: ${message}`, request_id: headers?.get('x-ms-request-id') }
  const details = { answer, retryAfterMs: wait }
  const refusal = (code: FixedErrorCode, text: string) => new DeliveryError(code, text, details)
  const isFinalBy = (meanings: Record<string, string>) => wait === undefined && Object.hasOwn(meanings, name)

  // The SDK could not read what was answered.
  if (status < 300) return withoutEvidence(config, answer)
  if (headers?.get('x-ms-request-id') === undefined && status < 500 && !isStatusOfItself(status)) {
    return refusal(
      'not_a_blob_service',
      `${config.account_url} answered ${status} without the headers of Blob storage; correct account_url, or check the proxies before it`,
    )
  }
  const isRefusedSignIn = isFinalBy(credentialErrors) || (wait === undefined && message.startsWith('Server failed to authenticate'))
  const clock = isRefusedSignIn ? clockOf(thrown.response?.bodyAsText ?? '', credentials) : undefined
  if (clock !== undefined) {
    const text = `${clock} (${name}): compare the clock of the relay`
    return new DeliveryError(`http_${status}`, text, { permanent: false, ...details })
  }
  // Azurite reports wrong credentials as AuthorizationFailure.
  if (isRefusedSignIn) {
    const text = `the account refused ${describe(credentials)} (${name})`
    return new DeliveryError('credentials_refused', text, { permanent: true, ...details })
  }
  if (Object.hasOwn(containerErrors, name)) {
    return refusal('container_missing', `the container ${config.container} does not exist in this account, or is disabled`)
  }
  if (Object.hasOwn(pathErrors, name)) return refusal('path_refused', `the account does not accept the name of the blob (${name})`)
  if (isFinalBy(accessErrors)) {
    const text = `the account does not permit the relay to write: ${accessErrors[name]} (${name})`
    return new DeliveryError('access_denied', text, { permanent: true, ...details })
  }
  if (status === 507 || (status < 500 && saysFull.test(name))) {
    return refusal('quota_exceeded', `the account has no room: ${status} ${name}: ${message}`)
  }
  return new DeliveryError(`http_${status}`, `the account answered ${status} ${name}: ${message}`, {
    permanent: Object.hasOwn(gatewayStatuses, status) || isFinalBy(requestErrors),
    ...details,
  })
}

/** Returns true if a status says the same without the headers of the service: redirects, limits, locks and what `gatewayStatuses` has. */
const isStatusOfItself = (status: number) =>
  status < 400 || Object.hasOwn(gatewayStatuses, status) || [408, 409, 423, 425, 429].includes(status)

/** Returns what a refusal says about the time, or undefined if its reason is not that the clocks differ. */
const clockOf = (page: string, { sas_token: sas = '' }: BlobCredentials): string | undefined => {
  // The clocks differ by more than 15 minutes: the signature of the next attempt is valid once they agree again.
  if (/Request date header too (?:old|new)/i.test(page)) return 'the account takes the request for an old one'
  if (/not.?(?:yet|before).?valid|IDX10222|token.{0,20}expired|IDX10223|lifetime validation/i.test(page))
    return 'the token is not valid at the time of the account'
  const [, start = '', current = ''] = /Start \[([^\]]+)\].*Current \[([^\]]+)\]/s.exec(page) ?? []
  if (Date.parse(current) < Date.parse(start)) return `sas_token is not valid before ${start}, and at the account it is ${current}`
  const from = new URLSearchParams(sas).get('st')
  return from !== null && Date.parse(from) > Date.now() ? `sas_token is not valid before ${from}` : undefined
}

const describe = ({ account_key: key, sas_token: sas }: BlobCredentials) => {
  if (key !== undefined) return 'account_key; check that it is a key of the account in account_url'
  if (sas === undefined) return 'the application; check that tenant_id is its tenant and that it has a role on the account'
  const expiry = new URLSearchParams(sas).get('se')
  return expiry !== null && Date.parse(expiry) < Date.now() ? `sas_token, which expired at ${expiry}` : 'sas_token'
}
