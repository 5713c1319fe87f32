import { constants, createHash, verify, type KeyObject } from 'node:crypto'
import { Sequence, type AsnType } from 'asn1js'
import { bytesOf, childrenOf, isTagged, octetsOf, oidOf, parseBer, signedDataFields, signerIdOf } from './asn1.ts'

// CMS SignedData (RFC 5652) with one signer. asn1js reads the structure and node:crypto verifies the signature. The
// caller decides which keys to trust. The fields are read by position because parsing with an asn1js schema took six
// times as long (3.3 ms per signature), on the thread that serves all requests.

/** Signature of a SignedData message with what is needed to verify it. */
export interface CmsSignature {
  digest: string
  /** Signed content, if the message embeds it. */
  content: Buffer | undefined
  /** Signed attributes, encoded as they must be hashed, and the digest of the content among them. */
  attributes: { encoded: Buffer; messageDigest: Buffer } | undefined
  isPss: boolean
  value: Buffer
  /** `signerId` of the signer's certificate. `undefined` if the message names the signer by a key identifier. */
  signerId: string | undefined
}

// Older source systems sign with md5, ripemd160 or sha1, and some still do. Collisions do not help an attacker, because
// the source system composes the signed message. Finding a second message with the same digest is still infeasible.
const digests: Record<string, string> = {
  '1.2.840.113549.2.5': 'md5',
  '1.3.36.3.2.1': 'ripemd160',
  '1.3.14.3.2.26': 'sha1',
  '2.16.840.1.101.3.4.2.4': 'sha224',
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
}
const rsaPss = '1.2.840.113549.1.1.10'
const messageDigestAttribute = '1.2.840.113549.1.9.4'
const setTag = 0x31

/** Reads a signature in DER or BER. @returns `undefined` if the bytes are not a SignedData with exactly one signer */
export const readSignature = (encoded: Buffer): CmsSignature | undefined => {
  try {
    const [, , encapsulated, ...rest] = signedDataFields(parseBer(encoded))
    const [signer, ...others] = childrenOf(rest.at(-1))
    if (!signer || others.length > 0) return undefined
    return signatureOf(signer, encapsulated)
  } catch {
    // The parser throws many kinds of errors if the bytes are not a signature.
    return undefined
  }
}

/** @throws `Error` if a field is missing, unknown or in the wrong position */
const signatureOf = (signer: AsnType, encapsulated: AsnType | undefined): CmsSignature => {
  const [, identifier, digestAlgorithm, ...fields] = childrenOf(signer)
  const attributes = isTagged(fields[0], 0) ? fields.shift() : undefined
  const [signatureAlgorithm, value] = fields
  const digest = digests[algorithmOf(digestAlgorithm)]
  if (!digest) throw new Error('Unknown digest algorithm')
  const [, content] = childrenOf(encapsulated)
  return {
    digest,
    content: content && octetsOf(childrenOf(content)[0]),
    attributes: attributes && attributesOf(attributes),
    isPss: algorithmOf(signatureAlgorithm) === rsaPss,
    value: octetsOf(value),
    // The alternative is a key identifier, which is not used to find certificates.
    signerId: identifier instanceof Sequence ? signerIdOf(childrenOf(identifier)[0], childrenOf(identifier)[1]) : undefined,
  }
}

const algorithmOf = (identifier: AsnType | undefined) => oidOf(childrenOf(identifier)[0])

const attributesOf = (field: AsnType): CmsSignature['attributes'] => {
  const values = childrenOf(field)
    .map(childrenOf)
    .filter(([type]) => oidOf(type) === messageDigestAttribute)
    .flatMap(([, set]) => childrenOf(set))
  if (values.length !== 1) throw new Error('Expected exactly one message digest')
  // Use the original bytes, because encoding the attributes again could change them. RFC 5652 hashes them with the tag
  // of a SET instead of the [0] in the message.
  const encoded = bytesOf(field)
  encoded[0] = setTag
  return { encoded, messageDigest: octetsOf(values[0]) }
}

/**
 * Verifies a signature over a message with a public key. The algorithm is taken from the key, because old clients name
 * theirs by identifiers that no longer exist.
 */
export const verifies = ({ digest, content, attributes, isPss, value }: CmsSignature, message: Buffer, key: KeyObject): boolean => {
  if (content && !content.equals(message)) return false
  if (attributes && !createHash(digest).update(message).digest().equals(attributes.messageDigest)) return false
  const signed = attributes?.encoded ?? message
  try {
    return verify(digest, signed, { key, ...paddingOf(key, isPss) }, value)
  } catch {
    // The digest cannot be used with this key.
    return false
  }
}

const paddingOf = ({ asymmetricKeyType }: KeyObject, isPss: boolean) => {
  if (asymmetricKeyType === 'rsa-pss' || (asymmetricKeyType === 'rsa' && isPss)) {
    return { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_AUTO }
  }
  return asymmetricKeyType === 'rsa' ? { padding: constants.RSA_PKCS1_PADDING } : { dsaEncoding: 'der' as const }
}
