import { createHash, X509Certificate, type KeyObject } from 'node:crypto'
import type { AsnType } from 'asn1js'
import { plainText } from '../base/text.ts'
import { childrenOf, oidOf, parseBer } from './asn1.ts'
import { certificateIdOf, signerCertificateIn } from './certificate-bundle.ts'

/** Properties of a certificate that operators see and that identify it. */
export interface CertificateFacts {
  /** X.509 in DER, whatever the format received. */
  der: Buffer
  subject: string
  issuer: string
  /** Lower-case hexadecimal. */
  serialNumber: string
  validFrom: Date
  validTo: Date
  keyAlgorithm: string
  /** `null` for an elliptic curve whose name does not contain its size. */
  keyBits: number | null
  /** Object identifier of the algorithm with which the certificate itself is signed. */
  signatureAlgorithm: string
  /** Lower-case hexadecimal, as is `fingerprintSha256`. */
  fingerprintSha1: string
  fingerprintSha256: string
  /** Identifier by which a signature names this certificate. */
  signerId: string
}

const authIdMaxCharacters = 1_024
// Reading a hostile certificate of this size takes 10 to 30 ms, during which other requests wait.
export const certificateMaxBytes = 16 * 1_024

/** Checks that a text can be stored as the id of a signer. Such ids are only compared for equality. */
export const isAuthId = (text: string) => text.length > 0 && text.length <= authIdMaxCharacters && !/\p{Cc}/u.test(text)

const keyAlgorithms = new Set(['rsa', 'rsa-pss', 'dsa', 'ec'])

/**
 * Reads a certificate: X.509 or PKCS#7, each as DER, PEM, or base64 of either. Of a chain, reads that of the signer, in whatever order the
 * certificates stand.
 * @returns `undefined` if the bytes are not a certificate, or source systems cannot sign with its type of key
 */
export const readCertificate = (body: Buffer): CertificateFacts | undefined => {
  try {
    const der = signerCertificateIn(body)
    if (!der) return undefined
    const certificate = new X509Certificate(der)
    const { publicKey } = certificate
    const keyAlgorithm = publicKey.asymmetricKeyType ?? ''
    const [validFrom, validTo] = [new Date(certificate.validFrom), new Date(certificate.validTo)]
    if (!keyAlgorithms.has(keyAlgorithm) || Number.isNaN(validFrom.getTime()) || Number.isNaN(validTo.getTime())) return undefined
    const structure = parseBer(der)
    return {
      der,
      subject: plainText(inOneLine(certificate.subject)),
      issuer: plainText(inOneLine(certificate.issuer)),
      serialNumber: certificate.serialNumber.toLowerCase(),
      validFrom,
      validTo,
      keyAlgorithm,
      keyBits: bitsOf(publicKey),
      signatureAlgorithm: signatureAlgorithmOf(structure),
      fingerprintSha1: createHash('sha1').update(der).digest('hex'),
      fingerprintSha256: createHash('sha256').update(der).digest('hex'),
      signerId: certificateIdOf(structure),
    }
  } catch {
    // The parsers throw many kinds of errors if the bytes are not a certificate.
    return undefined
  }
}

const inOneLine = (name: string | undefined) => (name ?? '').replaceAll('\n', ', ')

/** The names of the curves contain their sizes: prime256v1, secp384r1, brainpoolP320r1. */
const bitsOf = ({ asymmetricKeyDetails: details }: KeyObject): number | null =>
  details?.modulusLength ?? (Number(/\d{3}/.exec(details?.namedCurve ?? '')?.[0]) || null)

const signatureAlgorithmOf = (certificate: AsnType | undefined): string => oidOf(childrenOf(childrenOf(certificate)[1])[0])

// An elliptic curve of 160 bits is about as strong as an RSA key of 1,024 bits, one of 224 bits as 2,048.
const leastBits = { modulus: 1_024, curve: 160 }
const recommendedBits = { modulus: 2_048, curve: 224 }

type KeyFacts = Pick<CertificateFacts, 'keyAlgorithm' | 'keyBits'>

const isShorterThan = ({ modulus, curve }: typeof leastBits, { keyAlgorithm, keyBits }: KeyFacts) =>
  keyBits !== null && keyBits < (keyAlgorithm === 'ec' ? curve : modulus)

/** Returns true if the key is so short that its signatures can be forged. */
export const isTooWeak = (facts: KeyFacts): boolean => isShorterThan(leastBits, facts)

export const tooWeak = `has a key of less than ${leastBits.modulus} bits (elliptic curve: ${leastBits.curve})`

export const certificateWarningCodes = ['short_key', 'md5', 'expired'] as const

export interface CertificateWarning {
  code: (typeof certificateWarningCodes)[number]
  message: string
}

const md5Algorithms = new Set(['1.2.840.113549.1.1.2', '1.2.840.113549.1.1.4', '1.3.14.3.2.3'])

/** Returns what an operator should know before activating a certificate. None of it prevents signatures from being accepted. */
export const certificateWarnings = (
  facts: KeyFacts & Pick<CertificateFacts, 'signatureAlgorithm' | 'validTo'>,
  now: Date,
): CertificateWarning[] => {
  const warnings: CertificateWarning[] = []
  if (isShorterThan(recommendedBits, facts)) {
    const recommended = facts.keyAlgorithm === 'ec' ? recommendedBits.curve : recommendedBits.modulus
    warnings.push({ code: 'short_key', message: `The key has ${facts.keyBits} bits. Use at least ${recommended}.` })
  }
  if (md5Algorithms.has(facts.signatureAlgorithm)) {
    warnings.push({
      code: 'md5',
      message: 'The certificate is signed with MD5 or MD2, which can be forged. Compare its SHA-256 fingerprint.',
    })
  }
  if (facts.validTo < now) warnings.push({ code: 'expired', message: `The certificate expired at ${facts.validTo.toISOString()}.` })
  return warnings
}
