import { X509Certificate } from 'node:crypto'
import type { Config } from '../config.ts'
import type { Certificates } from '../db/certificates.ts'
import { isAuthId } from '../security/certificate.ts'
import { readSignature, verifies } from '../security/cms.ts'
import type { Command } from './command.ts'
import { Refusal } from './refusal.ts'
import { decodeSecKey, signedMessages } from './signed-message.ts'

export interface SignatureDeps {
  listKeys: Certificates['listKeys']
  config: Pick<Config, 'RELAY_SIGNATURE_SKEW_MS'>
}

/** @throws Refusal unless the request carries a signature that allows this access, at that moment, by an active certificate */
export const checkSignature = async (
  repositoryId: string,
  command: Command,
  access: string,
  at: Date,
  { listKeys, config }: SignatureDeps,
): Promise<void> => {
  const secKey = command.find('secKey')
  if (!secKey) throw new Refusal('signature_missing', 'the repository takes signed requests only')
  const [accessMode, authId, expiration] = (['accessMode', 'authId', 'expiration'] as const).map((name) => needed(command, name))
  checkExpiration(expiration!, at, config.RELAY_SIGNATURE_SKEW_MS)
  checkAccessMode(accessMode!, access)

  const certificates = isAuthId(authId!) ? await listKeys(repositoryId, authId!) : []
  if (certificates.length === 0) throw new Refusal('certificate_unknown', 'no certificate has been sent for this authId and repository')
  const keys = certificates.flatMap(({ der }) => (der ? [new X509Certificate(der).publicKey] : []))
  if (keys.length === 0) throw new Refusal('certificate_inactive', 'the certificate awaits its activation')

  const encoded = decodeSecKey(secKey)
  const signature = encoded && readSignature(encoded)
  if (!signature) throw new Refusal('signature_invalid', 'the secKey is not a signature in base64 that can be read')
  const messages = signedMessages(command.query, command.rule)
  if (keys.some((key) => messages.some((message) => verifies(signature, message, key)))) return

  const signer = certificates.find(({ signerId }) => signerId === signature.signerId)
  if (signer && !signer.der) throw new Refusal('certificate_inactive', 'the certificate of this signature awaits its activation')
  throw new Refusal(
    'signature_invalid',
    signer ? 'the signature is not one of this URL' : 'the signature is by none of the active certificates',
  )
}

const needed = (command: Command, name: 'accessMode' | 'authId' | 'expiration'): string => {
  const value = command.find(name)
  if (value === undefined) throw new Refusal('invalid_parameter', `${name} is missing, and goes with a secKey`)
  return value
}

const expirationFormat = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/

const checkExpiration = (expiration: string, at: Date, skewMs: number): void => {
  const [, year, month, day, hour, minute, second] = expirationFormat.exec(expiration) ?? []
  const expiresAt = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  if (Number.isNaN(expiresAt.getTime())) throw new Refusal('url_expired', 'expiration must be a moment in UTC, as YYYYMMDDHHMMSS')
  if (at.getTime() > expiresAt.getTime() + skewMs) {
    throw new Refusal('url_expired', `the URL expired at ${expiresAt.toISOString()}, and here it is ${at.toISOString()}`)
  }
}

const checkAccessMode = (accessMode: string, access: string): void => {
  if (!/^[rcud]+$/.test(accessMode) || !accessMode.includes(access)) {
    throw new Refusal('access_mode_denied', `accessMode must be of the letters r, c, u and d, and hold ${access} for this command`)
  }
}
