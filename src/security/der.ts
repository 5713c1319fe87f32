import { ObjectIdentifier, UTCTime, Utf8String } from 'asn1js'

// Writes DER. The parts of a structure are written already, so that bytes of a certificate are copied as they are.

const longLength = 0x80

/** Writes an element. @param tag the whole first byte: class, constructed or not, number */
const element = (tag: number, ...parts: Buffer[]): Buffer => {
  const content = Buffer.concat(parts)
  if (content.length < longLength) return Buffer.concat([Buffer.from([tag, content.length]), content])
  const hex = content.length.toString(16)
  const length = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.from([tag, longLength + length.length]), length, content])
}

export const sequence = (...parts: Buffer[]): Buffer => element(0x30, ...parts)

/** Writes a SET OF, whose elements DER sorts by their encoding. */
export const setOf = (...parts: Buffer[]): Buffer => element(0x31, ...parts.toSorted((one, other) => Buffer.compare(one, other)))

/** Writes the field with the context-specific tag `[number]` around its elements. */
export const tagged = (number: number, ...parts: Buffer[]): Buffer => element(0xa0 + number, ...parts)

/** Writes an INTEGER. @param bytes big-endian and not negative */
export const integer = (bytes: Buffer): Buffer => element(0x02, bytes[0]! >= longLength ? Buffer.concat([Buffer.alloc(1), bytes]) : bytes)

export const boolean = (value: boolean): Buffer => element(0x01, Buffer.from([value ? 0xff : 0]))

export const octets = (bytes: Buffer): Buffer => element(0x04, bytes)

/** Writes a BIT STRING of whole bytes. */
export const bits = (bytes: Buffer): Buffer => element(0x03, Buffer.alloc(1), bytes)

export const nothing: Buffer = element(0x05)

export const oid = (dotted: string): Buffer => Buffer.from(new ObjectIdentifier({ value: dotted }).toBER())

export const utf8 = (text: string): Buffer => Buffer.from(new Utf8String({ value: text }).toBER())

/** Writes a time between 1950 and 2049, without its milliseconds. */
export const utcTime = (time: Date): Buffer => Buffer.from(new UTCTime({ valueDate: time }).toBER())
