import { X509Certificate } from 'node:crypto'
import type { Certificates } from '../access/certificates.ts'
import type { ArchiveDocuments } from '../archive/documents.ts'
import type { ReceivingRepository } from '../archive/receiving-repository.ts'
import type { Config } from '../config/config.ts'
import { isAuthId } from '../security/certificate.ts'
import { readSignature, verifies } from '../security/cms.ts'
import { otherSpellings } from './auth-id.ts'
import type { Command } from './command.ts'
import { Refusal } from './refusal.ts'
import {
  checkSignedParameters,
  continuesGeneratedId,
  couldBeItsCreate,
  isAccessMode,
  otherDocIds,
  repositoryOf,
  rewrittenMessages,
  signedMessages,
  signedValues,
} from './signed-message.ts'

export interface SignatureDeps {
  listKeys: Certificates['listKeys']
  listAuthIds: Certificates['listAuthIds']
  findDocProts: ArchiveDocuments['findDocProts']
  config: Pick<Config, 'RELAY_SIGNATURE_SKEW_MS'>
}

/** @throws `Refusal` unless an active certificate has signed the request for this access, and the signature was valid at this time */
export const checkSignature = async (
  { id: repositoryId, signedParameterOrder }: Pick<ReceivingRepository, 'id' | 'signedParameterOrder'>,
  command: Command,
  access: string,
  at: Date,
  deps: SignatureDeps,
): Promise<void> => {
  const { findDocProts, config } = deps
  const secKey = command.find('secKey')
  if (!secKey) throw new Refusal('signature_missing', 'the repository requires signed requests')
  const [accessMode, authId, expiration] = (['accessMode', 'authId', 'expiration'] as const).map((name) => required(command, name))
  checkSignedParameters(command.query, command.rule, signedParameterOrder)
  checkExpiration(expiration!, at, config.RELAY_SIGNATURE_SKEW_MS)
  checkAccessMode(accessMode!, access)

  const { authIds, certificates, rivals } = await findSigners(repositoryId, authId!, deps)
  if (certificates.length === 0) {
    throw new Refusal('certificate_unknown', 'no certificate has been received for this authId and repository')
  }
  const keys = certificates.flatMap(({ der }) => (der ? [publicKeyOf(der)] : []))
  if (keys.length === 0) throw new Refusal('certificate_inactive', 'the certificate has not been activated')

  const encoded = decodeSecKey(secKey)
  const signature = encoded && readSignature(encoded)
  if (!signature) throw new Refusal('signature_invalid', 'the secKey is not a readable signature in base64')
  const messages = signedMessages(command.query, command.rule)
  const signer = certificates.find(({ signerId }) => signerId === signature.signerId)
  const isSigned = () => keys.some((key) => messages.some((message) => verifies(signature, message, key)))
  // There are dozens of these messages, so they are tried with the key of the signer only.
  const isRewritten = () => {
    if (!signer?.der) return false
    const key = publicKeyOf(signer.der)
    return rewrittenMessages(command.query, command.rule, authIds).some((message) => verifies(signature, message, key))
  }
  if (isSigned() || isRewritten()) return checkReading(repositoryId, command, access, rivals, findDocProts)
  if (signer && !signer.der) throw new Refusal('certificate_inactive', 'the certificate of this signature has not been activated')
  throw new Refusal(
    'signature_invalid',
    signer ? 'the signature does not match this URL' : 'the signature was not made with an active certificate',
  )
}

const publicKeyOf = (der: Buffer) => new X509Certificate(der).publicKey

// Spellings of one name. Each costs a query.
const spellingsMax = 3

/** Finds the certificates of an authId. If none of them is active, finds those of its other spellings too. */
const findSigners = async (repositoryId: string, authId: string, { listKeys, listAuthIds }: SignatureDeps) => {
  if (!isAuthId(authId)) return { authIds: [], certificates: [], rivals: [] }
  const literal = await listKeys(repositoryId, authId)
  if (literal.certificates.some(({ der }) => der)) return { authIds: [authId], ...literal }
  const others = otherSpellings(authId, await listAuthIds(repositoryId)).slice(0, spellingsMax)
  const found = [literal, ...(await Promise.all(others.map((name) => listKeys(repositoryId, name))))]
  return {
    authIds: [authId, ...others],
    certificates: found.flatMap(({ certificates }) => certificates),
    rivals: [...new Set(found.flatMap(({ rivals }) => rivals))],
  }
}

const required = (command: Command, name: 'accessMode' | 'authId' | 'expiration'): string => {
  const value = command.find(name)
  if (value === undefined) throw new Refusal('invalid_parameter', `${name} is missing; a secKey requires it`)
  return value
}

const expirationFormat = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/

const checkExpiration = (expiration: string, at: Date, skewMs: number): void => {
  const [, year, month, day, hour, minute, second] = expirationFormat.exec(expiration) ?? []
  const expiresAt = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  if (Number.isNaN(expiresAt.getTime())) throw new Refusal('url_expired', 'expiration must be a time in UTC in the format YYYYMMDDHHMMSS')
  if (at.getTime() > expiresAt.getTime() + skewMs) {
    throw new Refusal('url_expired', `the URL expired at ${expiresAt.toISOString()}; the time here is ${at.toISOString()}`)
  }
}

const checkAccessMode = (accessMode: string, access: string): void => {
  if (!isAccessMode(accessMode)) {
    throw new Refusal('access_mode_denied', 'accessMode must be crud, or letters of r, c, u and d in this order, each at most once')
  }
  if (!accessMode.includes(access)) throw new Refusal('access_mode_denied', `accessMode must contain ${access} for this command`)
}

/**
 * Refuses a URL with a valid signature that the signer probably made for something else, because the signed text can be read as another
 * repository, document or command. Asks the database only if the accessMode has several letters or scanPerformed is signed.
 */
const checkReading = async (
  repositoryId: string,
  command: Command,
  access: string,
  rivals: string[],
  findDocProts: ArchiveDocuments['findDocProts'],
): Promise<void> => {
  const values = signedValues(command.query, command.rule)
  const contRep = command.get('contRep')
  if (repositoryOf(contRep, values, rivals) !== contRep) {
    throw new Refusal('signature_invalid', 'the same text could be signed for another repository whose name begins alike')
  }
  // One URL would be the authority to create any number of documents.
  if (command.rule.command === 'mCreate' && continuesGeneratedId(values.docId)) {
    throw new Refusal('signature_invalid', 'the same text could be signed to create a component of another document')
  }
  const others = otherDocIds(values)
  const mayBeCreate = access !== 'c' && values.accessMode.includes('c')
  if (others.length === 0 && !mayBeCreate) return
  const docProts = await findDocProts(repositoryId, [values.docId, ...others])
  if (others.some((docId) => docProts.has(docId))) {
    throw new Refusal('signature_invalid', 'the same text could be signed for another document whose docId begins alike')
  }
  if (mayBeCreate && couldBeItsCreate(values, docProts.get(values.docId) ?? '')) {
    throw new Refusal('signature_invalid', 'the same text could be signed to create this document with its docProt')
  }
}

// Ten times the size of a signature that contains its certificate. Reading a hostile one takes 1 ms per KiB.
const secKeyMaxCharacters = 20_000
const base64 = /^[A-Za-z0-9+/]+={0,2}$/

/** Decodes a secKey whose percent-encoding has been removed. @returns undefined if it is too long or not base64 */
export const decodeSecKey = (secKey: string): Buffer | undefined => {
  if (secKey.length > secKeyMaxCharacters) return undefined
  // A proxy that decodes the query as a form turns a plus into a space. Some clients break lines.
  const text = secKey.replaceAll(/[\r\n\t]/g, '').replaceAll(' ', '+')
  return base64.test(text) ? Buffer.from(text, 'base64') : undefined
}
