import { createHash } from 'node:crypto'
import { Constructed, fromBER, ObjectIdentifier, OctetString, type AsnType } from 'asn1js'

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
 * Returns the value of an OCTET STRING, also if it is encoded in several parts.
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

/** Returns the fields of the SignedData in a ContentInfo. Empty if the bytes are anything else. */
export const signedDataFields = (encoded: Buffer): AsnType[] => {
  const { offset, result } = fromBER(encoded)
  const [type, content] = offset < 0 ? [] : childrenOf(result)
  return type instanceof ObjectIdentifier && type.getValue() === signedData ? childrenOf(childrenOf(content)[0]) : []
}

/**
 * Returns the hexadecimal SHA-256 of an encoded issuer and serial number, by which a signature identifies its signer.
 */
export const signerIdOf = (issuer: AsnType | undefined, serialNumber: AsnType | undefined): string => {
  if (!issuer || !serialNumber) throw new Error('Issuer or serial number is missing')
  return createHash('sha256').update(bytesOf(issuer)).update(bytesOf(serialNumber)).digest('hex')
}
