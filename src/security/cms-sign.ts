import { createHash, createPrivateKey, sign, X509Certificate, type KeyObject } from 'node:crypto'
import { bytesOf, childrenOf, isTagged, parseBer } from './asn1.ts'
import { integer, nothing, octets, oid, sequence, setOf, tagged, utcTime } from './der.ts'

/** Key with which messages are signed, and its certificate, both as PEM. */
export interface SigningKey {
  certificate: string
  privateKey: string
}

export type SigningDigest = 'sha1' | 'sha256'

const digests: Record<SigningDigest, string> = { sha1: '1.3.14.3.2.26', sha256: '2.16.840.1.101.3.4.2.1' }

/** Signature algorithms by key type. RSA uses one for all digests. */
export const signatureAlgorithms: Record<string, Record<SigningDigest, Buffer> | undefined> = {
  rsa: {
    sha1: sequence(oid('1.2.840.113549.1.1.1'), nothing),
    sha256: sequence(oid('1.2.840.113549.1.1.1'), nothing),
  },
  dsa: { sha1: sequence(oid('1.2.840.10040.4.3')), sha256: sequence(oid('2.16.840.1.101.3.4.3.2')) },
  ec: { sha1: sequence(oid('1.2.840.10045.4.1')), sha256: sequence(oid('1.2.840.10045.4.3.2')) },
}

const oids = {
  data: oid('1.2.840.113549.1.7.1'),
  signedData: oid('1.2.840.113549.1.7.2'),
  contentType: oid('1.2.840.113549.1.9.3'),
  messageDigest: oid('1.2.840.113549.1.9.4'),
  signingTime: oid('1.2.840.113549.1.9.5'),
}
const version1 = integer(Buffer.from([1]))

/** Returns why messages cannot be signed with a key and a certificate, or undefined. */
export const signingKeyIssue = (signingKey: SigningKey): string | undefined => {
  const read = readSigningKey(signingKey)
  return typeof read === 'string' ? read : undefined
}

/** Reads a key and its certificate. @returns a text that says why, if messages cannot be signed with them */
const readSigningKey = (signingKey: SigningKey): { certificate: X509Certificate; key: KeyObject } | string => {
  const certificate = readOr(() => new X509Certificate(signingKey.certificate))
  const key = readOr(() => createPrivateKey(signingKey.privateKey))
  if (!certificate) return 'the certificate is not X.509 in PEM'
  if (!key) return 'the private key is not a key in PEM without a passphrase'
  if (!signatureAlgorithms[key.asymmetricKeyType ?? '']) return 'the private key must be RSA, DSA or EC'
  return certificate.checkPrivateKey(key) ? { certificate, key } : 'the private key does not belong to the certificate'
}

const readOr = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch {
    // OpenSSL throws many kinds of errors, some of which quote the key.
    return undefined
  }
}

/** Signs a message. @returns a CMS SignedData in DER, without the message and without certificates */
export type SignMessage = (message: Buffer, at: Date) => Buffer

/**
 * Creates a function that signs as source systems do (RFC 5652): detached, one signer named by issuer and serial number, with the signed
 * attributes contentType, signingTime and messageDigest.
 * @param digest by default SHA-256, and SHA-1 for a DSA key, as the systems sign that still have one
 * @throws `TypeError` with `signingKeyIssue`
 */
export const createSignMessage = (signingKey: SigningKey, digest?: SigningDigest): SignMessage => {
  const { sign: signDigest, used } = createSigner(signingKey, digest)
  return (message, at) => signDigest(createHash(used).update(message).digest(), at)
}

/** Creates a function that signs a message of which only the SHA-256 is at hand, otherwise as `createSignMessage`. */
export const createSignSha256 = (signingKey: SigningKey): ((sha256: Buffer, at: Date) => Buffer) => createSigner(signingKey, 'sha256').sign

const createSigner = (signingKey: SigningKey, digest?: SigningDigest) => {
  const read = readSigningKey(signingKey)
  if (typeof read === 'string') throw new TypeError(read)
  const { certificate, key } = read
  const keyType = key.asymmetricKeyType!
  const used = digest ?? (keyType === 'dsa' ? 'sha1' : 'sha256')
  const digestAlgorithm = sequence(oid(digests[used]), nothing)
  const signer = signerOf(certificate)
  const signatureAlgorithm = signatureAlgorithms[keyType]![used]

  const signDigest = (messageDigest: Buffer, at: Date): Buffer => {
    const attributes = [
      sequence(oids.contentType, setOf(oids.data)),
      sequence(oids.signingTime, setOf(utcTime(at))),
      sequence(oids.messageDigest, setOf(octets(messageDigest))),
    ]
    // Signed with the tag of a SET, and written with the tag [0].
    const signed = setOf(...attributes)
    const written = Buffer.from(signed)
    written[0] = 0xa0
    const signature = octets(signBytes(signed, key, used))
    const signerInfo = sequence(version1, signer, digestAlgorithm, written, signatureAlgorithm, signature)
    const signedData = sequence(version1, setOf(digestAlgorithm), sequence(oids.data), setOf(signerInfo))
    return sequence(oids.signedData, tagged(0, signedData))
  }
  return { sign: signDigest, used }
}

/** Signs bytes with PKCS #1 v1.5 (RSA), or a DER sequence of two numbers (DSA, EC). */
export const signBytes = (bytes: Buffer, key: KeyObject, digest: SigningDigest): Buffer => sign(digest, bytes, { key, dsaEncoding: 'der' })

/** Returns issuer and serial number of a certificate, as they are written there. */
const signerOf = (certificate: X509Certificate): Buffer => {
  const fields = childrenOf(childrenOf(parseBer(certificate.raw))[0])
  // The version field comes first. X.509 version 1 certificates do not have it.
  const [serialNumber, , issuer] = isTagged(fields[0], 0) ? fields.slice(1) : fields
  return sequence(bytesOf(issuer!), bytesOf(serialNumber!))
}
