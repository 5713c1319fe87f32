import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { z } from 'zod'
import { messageOf } from '../../base/errors.ts'

/** A client certificate, for every kind that connects by TLS to servers that demand one. */
export const clientCertificate = {
  client_certificate: z
    .string()
    // A certificate of an elliptic curve has 1 KB, one of a long RSA key 3 KB.
    .max(20_000)
    .optional()
    .describe('PEM certificate with which the relay identifies itself to a target that demands one, followed by the intermediate ones'),
  client_key: z
    .string()
    .max(20_000)
    .meta({ secret: true })
    .optional()
    .describe('PEM private key of client_certificate, without a passphrase'),
}

type ClientCertificate = { [Key in keyof typeof clientCertificate]?: z.output<(typeof clientCertificate)[Key]> }

const pemCertificate = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

/** @returns none if the text contains something that is no certificate */
const certificatesIn = (pem: string): X509Certificate[] => {
  try {
    return (pem.match(pemCertificate) ?? []).map((each) => new X509Certificate(each))
  } catch {
    return []
  }
}

const keyIn = (pem: string) => {
  try {
    return createPrivateKey(pem)
  } catch {
    return undefined
  }
}

const dateOf = (time: string) => new Date(time).toISOString().slice(0, 10)

/** Adds an issue for a certificate that no connection can use: a part is missing, it is invalid or expired, or the key is that of another one. */
export const checkClientCertificate = (credentials: ClientCertificate, context: z.RefinementCtx): void => {
  const { client_certificate: certificate, client_key: key } = credentials
  const add = (path: keyof ClientCertificate, message: string) => context.addIssue({ code: 'custom', path: [path], message })
  if (certificate === undefined) return add('client_certificate', 'is missing; client_key needs it')
  if (key === undefined) return add('client_key', 'is missing; client_certificate needs it')

  const certificates = certificatesIn(certificate)
  const now = Date.now()
  const privateKey = keyIn(key)
  if (certificates.length === 0) add('client_certificate', 'must be one or more PEM certificates')
  if (!privateKey) add('client_key', 'must be a PEM private key without a passphrase')
  for (const { validFrom, validTo, subject } of certificates) {
    if (Date.parse(validTo) <= now) add('client_certificate', `has expired on ${dateOf(validTo)} (${inOneLine(subject)})`)
    if (Date.parse(validFrom) > now) add('client_certificate', `is not valid before ${dateOf(validFrom)} (${inOneLine(subject)})`)
  }
  const [own] = certificates
  if (!own || !privateKey) return
  if (!own.checkPrivateKey(privateKey)) return add('client_key', 'is not the key of the first certificate in client_certificate')
  try {
    createSecureContext({ cert: certificate, key })
  } catch (thrown) {
    // The text of OpenSSL: the key is too short, for example.
    add('client_certificate', `cannot be used: ${messageOf(thrown)}`)
  }
}

const inOneLine = (name: string) => name.replaceAll('\n', ', ')

/** Returns when the first one of the certificates expires. */
export const certificateExpiresAt = ({ client_certificate: pem }: ClientCertificate): Date | undefined => {
  const times = certificatesIn(pem ?? '').map(({ validTo }) => Date.parse(validTo))
  return times.length === 0 ? undefined : new Date(Math.min(...times))
}
