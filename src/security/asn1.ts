import { createHash } from 'node:crypto'
import { Constructed, fromBER, ObjectIdentifier, OctetString, type AsnType } from 'asn1js'

// asn1js takes about 20 microseconds per element. A certificate has 60 to 90 elements, and a PKCS#7 may contain several certificates.
const maxElements = 1_000

/** Reads the first element of an encoding in BER. @returns `undefined` if it is not BER, or has more than 1,000 elements */
export const parseBer = (encoded: Buffer): AsnType | undefined => {
  if (hasTooManyElements(encoded)) return undefined
  const { offset, result } = fromBER(encoded)
  return offset < 0 ? undefined : result
}

const constructed = 0x20
const longTag = 0x1f
const longLength = 0x80

/** Counts the elements of all depths without recursion: the elements of a constructed one follow its header. */
const hasTooManyElements = (encoded: Buffer): boolean => {
  let elements = 0
  for (let at = 0; at < encoded.length && elements <= maxElements; elements += 1) {
    const tag = encoded[at]!
    at += 1
    if ((tag & longTag) === longTag) while (encoded[at++]! >= longLength) continue
    let length = encoded[at++] ?? 0
    // A length without further bytes (0x80) ends where the element with the tag 0 and the length 0 stands.
    if (length >= longLength) {
      const lengthBytes = length - longLength
      length = Number(`0x0${encoded.toString('hex', at, at + lengthBytes)}`)
      at += lengthBytes
    }
    if (!(tag & constructed)) at += length
  }
  return elements > maxElements
}

/** Returns the elements of a SEQUENCE, SET or explicit tag. Empty for any other element. */
export const childrenOf = (block: AsnType | undefined): AsnType[] => (block instanceof Constructed ? block.valueBlock.value : [])

/** Returns the original encoding of an element. */
export const bytesOf = (block: AsnType): Buffer => Buffer.from(block.valueBeforeDecodeView)

/** Returns the value of an OBJECT IDENTIFIER. @throws `Error` if the element has another type */
export const oidOf = (block: AsnType | undefined): string => {
  if (!(block instanceof ObjectIdentifier)) throw new Error('Expected an object identifier')
  return block.getValue()
}

/**
 * Returns the value of an OCTET STRING, even if it is encoded in several parts.
 * @throws `Error` if the element has another type
 */
export const octetsOf = (block: AsnType | undefined): Buffer => {
  if (!(block instanceof OctetString)) throw new Error('Expected an octet string')
  return Buffer.from(block.getValue())
}

const contextSpecific = 3

/** Checks that an element is the field with the context-specific tag `[number]`. */
export const isTagged = (block: AsnType | undefined, number: number): block is AsnType =>
  block?.idBlock.tagClass === contextSpecific && block.idBlock.tagNumber === number

const signedData = '1.2.840.113549.1.7.2'

/** Returns the fields of the SignedData in a ContentInfo. Empty if the element is anything else. */
export const signedDataFields = (contentInfo: AsnType | undefined): AsnType[] => {
  const [type, content] = childrenOf(contentInfo)
  return type instanceof ObjectIdentifier && type.getValue() === signedData ? childrenOf(childrenOf(content)[0]) : []
}

/**
 * Returns the hexadecimal SHA-256 of an encoded issuer and serial number, by which a signature identifies its signer.
 */
export const signerIdOf = (issuer: AsnType | undefined, serialNumber: AsnType | undefined): string => {
  if (!issuer || !serialNumber) throw new Error('Issuer or serial number is missing')
  return createHash('sha256').update(bytesOf(issuer)).update(bytesOf(serialNumber)).digest('hex')
}
