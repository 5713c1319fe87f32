import { constants, createHash, verify, type KeyObject } from 'node:crypto'
import { Sequence, type AsnType } from 'asn1js'
import { bytesOf, childrenOf, isTagged, octetsOf, oidOf, signedDataFields, signerIdOf } from './asn1.ts'

// CMS SignedData (RFC 5652) with one signer: structure by asn1js, mathematics by node:crypto. Whom to trust is the
// caller's. Walked by hand because a schema's parser took six times as long (3.3 ms a signature), on the thread that serves everybody.

export interface CmsSignature {
  digest: string
  /** What was signed, where the message brings it along. */
  content: Buffer | undefined
  /** The signed attributes as they must be hashed, and the one that stands for the content. */
  attributes: { encoded: Buffer; messageDigest: Buffer } | undefined
  isPss: boolean
  value: Buffer
  /** As `signerId` of the signer's certificate; undefined where a key identifier names it. */
  signerId: string | undefined
}

// md5, ripemd160 and sha1 are what source systems of the last decades sign with, and some still do. What is signed is put together
// by them, so that collisions are of no use to anybody; finding a second message for a given digest is still out of reach.
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

/** Undefined for whatever is not a SignedData with exactly one signer, in DER or BER. */
export const readSignature = (encoded: Buffer): CmsSignature | undefined => {
  try {
    const [, , encapsulated, ...rest] = signedDataFields(encoded)
    const [signer, ...others] = childrenOf(rest.at(-1))
    if (!signer || others.length > 0) return undefined
    return signatureOf(signer, encapsulated)
  } catch {
    // the parser throws errors of many kinds at bytes that are something else
    return undefined
  }
}

/** @throws Error where something is missing, or unknown, or out of place */
const signatureOf = (signer: AsnType, encapsulated: AsnType | undefined): CmsSignature => {
  const [, identifier, digestAlgorithm, ...fields] = childrenOf(signer)
  const attributes = isTagged(fields[0], 0) ? fields.shift() : undefined
  const [signatureAlgorithm, value] = fields
  const digest = digests[algorithmOf(digestAlgorithm)]
  if (!digest) throw new Error('unknown digest')
  const [, content] = childrenOf(encapsulated)
  return {
    digest,
    content: content && octetsOf(childrenOf(content)[0]),
    attributes: attributes && attributesOf(attributes),
    isPss: algorithmOf(signatureAlgorithm) === rsaPss,
    value: octetsOf(value),
    // or a key identifier, by which nobody is looked for here
    signerId: identifier instanceof Sequence ? signerIdOf(childrenOf(identifier)[0], childrenOf(identifier)[1]) : undefined,
  }
}

const algorithmOf = (identifier: AsnType | undefined) => oidOf(childrenOf(identifier)[0])

const attributesOf = (field: AsnType): CmsSignature['attributes'] => {
  const values = childrenOf(field)
    .map(childrenOf)
    .filter(([type]) => oidOf(type) === messageDigestAttribute)
    .flatMap(([, set]) => childrenOf(set))
  if (values.length !== 1) throw new Error('not one message digest')
  // the very bytes that came, as encoding them again might change them; hashed as the SET they are, not as the [0] they travel as
  const encoded = bytesOf(field)
  encoded[0] = setTag
  return { encoded, messageDigest: octetsOf(values[0]) }
}

/**
 * Whether this is a signature over the message, made with that key. What the key is, the certificate knows best: old clients name
 * their algorithm in ways that no longer exist.
 */
export const verifies = ({ digest, content, attributes, isPss, value }: CmsSignature, message: Buffer, key: KeyObject): boolean => {
  if (content && !content.equals(message)) return false
  if (attributes && !createHash(digest).update(message).digest().equals(attributes.messageDigest)) return false
  const signed = attributes?.encoded ?? message
  try {
    return verify(digest, signed, { key, ...paddingOf(key, isPss) }, value)
  } catch {
    // a digest and a key that cannot go together
    return false
  }
}

const paddingOf = ({ asymmetricKeyType }: KeyObject, isPss: boolean) => {
  if (asymmetricKeyType === 'rsa-pss' || (asymmetricKeyType === 'rsa' && isPss)) {
    return { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_AUTO }
  }
  return asymmetricKeyType === 'rsa' ? { padding: constants.RSA_PKCS1_PADDING } : { dsaEncoding: 'der' as const }
}
