// Hostile encodings in DER and BER, as a secKey or a certificate.

const lengthOf = (bytes: number) => Buffer.from([0x84, bytes >>> 24, (bytes >>> 16) & 0xff, (bytes >>> 8) & 0xff, bytes & 0xff])

const element = (tag: number, content: Buffer) => Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content])

const sequence = 0x30

/** Returns encodings of about this many bytes each. */
export const hostileAsn1 = (bytes: number): Record<string, Buffer> => {
  const many = (...each: number[]) => element(sequence, Buffer.alloc(bytes - (bytes % each.length), Buffer.from(each)))
  const large = (tag: number, byte: number) => element(sequence, element(tag, Buffer.alloc(bytes, byte)))
  return {
    'many NULLs': many(0x05, 0),
    'many integers': many(0x02, 1, 0),
    'many object identifiers': many(0x06, 1, 42),
    'many times': many(0x17, 13, ...Buffer.from('260101000000Z')),
    'a large object identifier': large(0x06, 0x01),
    'an object identifier with one large arc': large(0x06, 0x81),
    'a large integer': large(0x02, 0x71),
    'deep sequences': Buffer.alloc(bytes, Buffer.from([sequence, 0x80])),
  }
}
