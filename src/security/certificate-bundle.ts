import { X509Certificate } from 'node:crypto'
import { Sequence, type AsnType } from 'asn1js'
import { bytesOf, childrenOf, isTagged, parseBer, signedDataFields, signerIdOf } from './asn1.ts'

const pem = /-----BEGIN (?:X509 |TRUSTED )?(?:CERTIFICATE|PKCS7|PKCS #7 SIGNED DATA)-----([A-Za-z0-9+/=\s]+)-----END/g
const sequenceTag = 0x30
const certificatesTag = 0

/** The certificates of a text or message, and the one that it names as that of its signer. */
interface Bundle {
  certificates: Buffer[]
  signerId?: string | undefined
}

/**
 * Returns the certificate (X.509 in DER) in bytes that may be X.509 or PKCS#7, as DER, PEM, or base64 of these. Of a chain, this is the
 * certificate of the signer, wherever it stands: DER sorts the certificates of a PKCS#7 by their encoding, so the first one may be the CA.
 * @returns undefined if there is none
 */
export const signerCertificateIn = (bytes: Buffer): Buffer | undefined => {
  const { certificates, signerId } = bundleIn(bytes)
  const candidates = certificates.length > 1 ? certificates.flatMap(candidateOf) : []
  const named = candidates.find((candidate) => candidate.id === signerId) ?? endOfChain(candidates)
  return named?.der ?? certificates[0]
}

/** Base64 is decoded only once. */
const bundleIn = (bytes: Buffer, mayBeBase64 = true): Bundle => {
  if (bytes[0] === sequenceTag) return bundleInDer(bytes)
  const text = bytes.toString('latin1')
  const blocks = Array.from(text.matchAll(pem), ([, base64]) => bundleInDer(Buffer.from(base64!, 'base64')))
  if (blocks.length > 0) {
    return { certificates: blocks.flatMap(({ certificates }) => certificates), signerId: blocks.find(({ signerId }) => signerId)?.signerId }
  }
  return mayBeBase64 && /^[A-Za-z0-9+/=\s]+$/.test(text) ? bundleIn(Buffer.from(text, 'base64'), false) : { certificates: [] }
}

/** Reads a PKCS#7, or certificates one after another, without the bytes that follow them. */
const bundleInDer = (der: Buffer): Bundle => {
  const element = parseBer(der)
  if (!element) return { certificates: [] }
  const fields = signedDataFields(element)
  if (fields.length > 0) {
    const set = childrenOf(fields.find((field) => isTagged(field, certificatesTag)))
    return { certificates: set.filter((each) => each instanceof Sequence).map(bytesOf), signerId: signerOf(fields.at(-1)) }
  }
  const first = bytesOf(element)
  const rest = der.subarray(first.length)
  return { certificates: [first, ...(rest[0] === sequenceTag ? bundleInDer(rest).certificates : [])] }
}

/** Returns whom a signed message names as its signer. A message that only brings certificates names none. */
const signerOf = (signers: AsnType | undefined): string | undefined => {
  const [, identifier] = childrenOf(childrenOf(signers)[0])
  return identifier instanceof Sequence ? signerIdOf(childrenOf(identifier)[0], childrenOf(identifier)[1]) : undefined
}

interface Candidate {
  der: Buffer
  id: string
  subject: string
  issuer: string
  isAuthority: boolean
  validTo: number
}

const candidateOf = (der: Buffer): Candidate[] => {
  try {
    const { subject, issuer, ca, validTo } = new X509Certificate(der)
    return [{ der, id: certificateIdOf(parseBer(der)), subject, issuer, isAuthority: ca, validTo: Date.parse(validTo) }]
  } catch {
    return []
  }
}

/** Returns the id by which a signature names a certificate. @throws `Error` if it is none */
export const certificateIdOf = (certificate: AsnType | undefined): string => {
  const fields = childrenOf(childrenOf(certificate)[0])
  // The version field comes first. X.509 version 1 certificates do not have it.
  const [serialNumber, , issuer] = isTagged(fields[0], 0) ? fields.slice(1) : fields
  return signerIdOf(issuer, serialNumber)
}

/**
 * Returns the certificate that has issued none of the others. If several are left, one that another one has issued comes first, then one
 * that is not that of an authority, then the one of a signer that is valid longer, then the first one.
 */
const endOfChain = (candidates: Candidate[]): Candidate | undefined => {
  const hasIssued = (issuer: Candidate, other: Candidate) => issuer.subject === other.issuer && issuer.subject !== other.subject
  const isIssuer = (candidate: Candidate) => candidates.some((other) => hasIssued(candidate, other))
  const isIssued = (candidate: Candidate) => candidates.some((other) => hasIssued(other, candidate))
  const isShorter = (candidate: Candidate) =>
    candidates.some(({ subject, validTo }) => subject === candidate.subject && validTo > candidate.validTo)
  const rank = (candidate: Candidate) =>
    [isIssuer(candidate), !isIssued(candidate), candidate.isAuthority, isShorter(candidate)].reduce(
      (sum, flag) => 2 * sum + Number(flag),
      0,
    )
  return candidates.toSorted((one, other) => rank(one) - rank(other))[0]
}
