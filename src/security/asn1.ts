import { createHash } from 'node:crypto'
import { Constructed, fromBER, ObjectIdentifier, OctetString, type AsnType } from 'asn1js'

/** What is inside a SEQUENCE, SET or explicit tag. */
export const childrenOf = (block: AsnType | undefined): AsnType[] => (block instanceof Constructed ? block.valueBlock.value : [])

/** The very bytes of a block, as they came. */
export const bytesOf = (block: AsnType): Buffer => Buffer.from(block.valueBeforeDecodeView)

/** @throws Error where it is no OBJECT IDENTIFIER */
export const oidOf = (block: AsnType | undefined): string => {
  if (!(block instanceof ObjectIdentifier)) throw new Error('no object identifier')
  return block.getValue()
}

/** What an OCTET STRING holds, which a writer that streams has cut into pieces. @throws Error where it is none */
export const octetsOf = (block: AsnType | undefined): Buffer => {
  if (!(block instanceof OctetString)) throw new Error('no octets')
  return Buffer.from(block.getValue())
}

const contextSpecific = 3

/** Whether this is the field with the tag `[number]`. */
export const isTagged = (block: AsnType | undefined, number: number): block is AsnType =>
  block?.idBlock.tagClass === contextSpecific && block.idBlock.tagNumber === number

const signedData = '1.2.840.113549.1.7.2'

/** The fields of the SignedData in a ContentInfo, as they came; none where the bytes are something else. */
export const signedDataFields = (encoded: Buffer): AsnType[] => {
  const { offset, result } = fromBER(encoded)
  const [type, content] = offset < 0 ? [] : childrenOf(result)
  return type instanceof ObjectIdentifier && type.getValue() === signedData ? childrenOf(childrenOf(content)[0]) : []
}

/** What a signature names its signer by, made short: hexadecimal SHA-256 of the issuer and the serial number, as they are encoded. */
export const signerIdOf = (issuer: AsnType | undefined, serialNumber: AsnType | undefined): string => {
  if (!issuer || !serialNumber) throw new Error('no issuer')
  return createHash('sha256').update(bytesOf(issuer)).update(bytesOf(serialNumber)).digest('hex')
}
