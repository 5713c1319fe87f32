import { constants, createHash, verify, type KeyObject } from 'node:crypto'
import { ContentInfo, id_signedData, SignedData, type SignerInfo } from '@peculiar/asn1-cms'
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import { OctetString as OctetStringBlock } from 'asn1js'
import { bytesOf, childrenOf, isTagged, signedDataFields, signerIdOf } from './asn1.ts'

// CMS SignedData (RFC 5652) with one signer: structure by @peculiar/asn1-cms, mathematics by node:crypto. Whom to trust is the caller's.

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
    const { contentType, content } = AsnConvert.parse(encoded, ContentInfo)
    if (contentType !== id_signedData) return undefined
    const { encapContentInfo, signerInfos } = AsnConvert.parse(content, SignedData)
    const [signer, ...others] = signerInfos
    const digest = signer && digests[signer.digestAlgorithm.algorithm]
    if (!digest || others.length > 0) return undefined
    return {
      digest,
      content: encapContentInfo.eContent && contentOf(encoded),
      attributes: attributesOf(encoded, signer),
      isPss: signer.signatureAlgorithm.algorithm === rsaPss,
      value: Buffer.from(signer.signature.buffer),
      signerId: signer.sid.issuerAndSerialNumber && signerOf(encoded),
    }
  } catch {
    // the parser throws errors of many kinds at bytes that are something else
    return undefined
  }
}

const encapsulatedContentField = 2
const signerIdentifierField = 1
const signedAttributesField = 3

/** Of the one signer's fields, as they came. */
const signerFields = (message: Buffer) => childrenOf(childrenOf(signedDataFields(message).at(-1))[0])

const signerOf = (message: Buffer): string => {
  const [issuer, serialNumber] = childrenOf(signerFields(message)[signerIdentifierField])
  return signerIdOf(issuer, serialNumber)
}

/** What a message brings along, which a writer that streams has cut into pieces. @throws Error where it is not in octets */
const contentOf = (message: Buffer): Buffer => {
  const [, explicit] = childrenOf(signedDataFields(message)[encapsulatedContentField])
  const [octets] = childrenOf(explicit)
  if (!(octets instanceof OctetStringBlock)) throw new Error('content that is no octet string')
  return Buffer.from(octets.getValue())
}

/** @throws Error where there are attributes, and not exactly one that stands for the content */
const attributesOf = (message: Buffer, { signedAttrs }: SignerInfo): CmsSignature['attributes'] => {
  if (!signedAttrs) return undefined
  // the very bytes that came, as encoding them again might change them; hashed as the SET they are, not as the [0] they travel as
  const field = signerFields(message)[signedAttributesField]
  if (!isTagged(field, 0)) throw new Error('signed attributes out of place')
  const encoded = bytesOf(field)
  encoded[0] = setTag
  const values = signedAttrs.filter(({ attrType }) => attrType === messageDigestAttribute).flatMap(({ attrValues }) => attrValues)
  if (values.length !== 1) throw new Error('not one message digest')
  return { encoded, messageDigest: Buffer.from(AsnConvert.parse(values[0]!, OctetString).buffer) }
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
