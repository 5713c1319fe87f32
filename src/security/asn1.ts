import { createHash } from 'node:crypto'
import { Constructed, fromBER, type AsnType } from 'asn1js'

/** What is inside a SEQUENCE, SET or explicit tag. */
export const childrenOf = (block: AsnType | undefined): AsnType[] => (block instanceof Constructed ? block.valueBlock.value : [])

/** The very bytes of a block, as they came. */
export const bytesOf = (block: AsnType): Buffer => Buffer.from(block.valueBeforeDecodeView)

const contextSpecific = 3

/** Whether this is the field with the tag `[number]`. */
export const isTagged = (block: AsnType | undefined, number: number): block is AsnType =>
  block?.idBlock.tagClass === contextSpecific && block.idBlock.tagNumber === number

/** The fields of the SignedData in a ContentInfo, as they came; none where the bytes are something else. */
export const signedDataFields = (encoded: Buffer): AsnType[] => {
  const { offset, result } = fromBER(encoded)
  return offset < 0 ? [] : childrenOf(childrenOf(childrenOf(result)[1])[0])
}

/** What a signature names its signer by, made short: hexadecimal SHA-256 of the issuer and the serial number, as they are encoded. */
export const signerIdOf = (issuer: AsnType | undefined, serialNumber: AsnType | undefined): string => {
  if (!issuer || !serialNumber) throw new Error('no issuer')
  return createHash('sha256').update(bytesOf(issuer)).update(bytesOf(serialNumber)).digest('hex')
}
