import { createHash, X509Certificate, type KeyObject } from 'node:crypto'
import { fromBER } from 'asn1js'
import { bytesOf, childrenOf, isTagged, signedDataFields, signerIdOf } from './asn1.ts'

/** What an operator is shown of a certificate, and what finds it again. */
export interface CertificateFacts {
  /** X.509, however it arrived. */
  der: Buffer
  subject: string
  issuer: string
  /** Hexadecimal. */
  serialNumber: string
  validFrom: Date
  validTo: Date
  keyAlgorithm: string
  /** Null for a curve that we do not know. */
  keyBits: number | null
  /** Lower-case hexadecimal, both. */
  fingerprintSha1: string
  fingerprintSha256: string
  /** What a signature names this certificate by. */
  signerId: string
}

const authIdMaxCharacters = 1_024

/** What may name a signer: text of a sensible length that can be stored. It is only ever compared with itself. */
export const isAuthId = (text: string) => text.length > 0 && text.length <= authIdMaxCharacters && !/\p{Cc}/u.test(text)

const pem = /-----BEGIN (?:X509 |TRUSTED )?(?:CERTIFICATE|PKCS7|PKCS #7 SIGNED DATA)-----([A-Za-z0-9+/=\s]+)-----END/
const sequenceTag = 0x30
const keyAlgorithms = new Set(['rsa', 'rsa-pss', 'dsa', 'ec'])
const curveBits: Record<string, number> = { prime256v1: 256, secp384r1: 384, secp521r1: 521 }

/**
 * A certificate in whatever dress it comes: X.509 or PKCS#7 with certificates only (of which the first counts), each as DER, as PEM,
 * or as base64 of either. Undefined where it is none, or its key is of a kind that no source system signs with.
 */
export const readCertificate = (body: Buffer): CertificateFacts | undefined => {
  try {
    const der = derOf(body)
    if (!der) return undefined
    const certificate = new X509Certificate(der)
    const { publicKey } = certificate
    const keyAlgorithm = publicKey.asymmetricKeyType ?? ''
    const [validFrom, validTo] = [new Date(certificate.validFrom), new Date(certificate.validTo)]
    if (!keyAlgorithms.has(keyAlgorithm) || Number.isNaN(validFrom.getTime()) || Number.isNaN(validTo.getTime())) return undefined
    return {
      der,
      subject: inOneLine(certificate.subject),
      issuer: inOneLine(certificate.issuer),
      serialNumber: certificate.serialNumber.toLowerCase(),
      validFrom,
      validTo,
      keyAlgorithm,
      keyBits: bitsOf(publicKey),
      fingerprintSha1: createHash('sha1').update(der).digest('hex'),
      fingerprintSha256: createHash('sha256').update(der).digest('hex'),
      signerId: signerIdIn(der),
    }
  } catch {
    // the parsers throw errors of many kinds at bytes that are something else
    return undefined
  }
}

/** The X.509 DER in these bytes. A text may hold the DER or a PEM, once. */
const derOf = (bytes: Buffer, mayBeBase64 = true): Buffer | undefined => {
  if (bytes[0] === sequenceTag) return certificateIn(bytes)
  const text = bytes.toString('latin1')
  const [, inPem] = pem.exec(text) ?? []
  if (inPem !== undefined) return certificateIn(Buffer.from(inPem, 'base64'))
  return mayBeBase64 && /^[A-Za-z0-9+/=\s]+$/.test(text) ? derOf(Buffer.from(text, 'base64'), false) : undefined
}

const certificatesTag = 0

/** The first certificate of a PKCS#7; anything else as it is, without what may follow it. */
const certificateIn = (der: Buffer): Buffer | undefined => {
  const { offset, result } = fromBER(der)
  if (offset < 0) return undefined
  const set = signedDataFields(der).find((field) => isTagged(field, certificatesTag))
  const [first] = childrenOf(set)
  return bytesOf(first ?? result)
}

const inOneLine = (name: string | undefined) => (name ?? '').replaceAll('\n', ', ')

const bitsOf = ({ asymmetricKeyDetails: details }: KeyObject): number | null =>
  details?.modulusLength ?? curveBits[details?.namedCurve ?? ''] ?? null

const signerIdIn = (der: Buffer): string => {
  const fields = childrenOf(childrenOf(fromBER(der).result)[0])
  // a version stands first, except in certificates of the first one
  const [serialNumber, , issuer] = isTagged(fields[0], 0) ? fields.slice(1) : fields
  return signerIdOf(issuer, serialNumber)
}
