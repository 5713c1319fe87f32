import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { quickXorHash } from '../../../src/connectors/teamsite/quick-xor-hash.ts'

const hashOf = (bytes: Buffer, chunkBytes = bytes.length || 1) =>
  quickXorHash(
    Readable.from(
      Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, index) =>
        bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes),
      ),
    ),
  )

// Known digests of the service, which other clients also compare with.
test.each([
  ['', 'AAAAAAAAAAAAAAAAAAAAAAAAAAA='],
  ['Sg==', 'SgAAAAAAAAAAAAAAAQAAAAAAAAA='],
  ['0pZP', '0rDEEwAAAAAAAAAAAwAAAAAAAAA='],
  ['n6Neh7p6fFgm', 'nxiFFw6hCz3wAQsmCQAAAAAAAAA='],
  ['XBV6YKU9V7yMakZnFIxIkuU=', 'HbplHsBQih5cgReMQYMRzkABRiA='],
  ['g8VtAh+2Kf4k0kY5tzji2i2zmA==', 'wDNrgwHWAVukwB8kg4YRcnALHIg='],
])('the digest of %j is %s', async (content, digest) => {
  expect(await hashOf(Buffer.from(content, 'base64'))).toBe(digest)
})

/** Computes the digest bit by bit, as its description says. */
const referenceOf = (bytes: Buffer): string => {
  const digest = Buffer.alloc(20)
  const flip = (bit: number) => {
    digest[Math.floor(bit / 8)]! ^= 1 << (bit % 8)
  }
  for (const [index, byte] of bytes.entries()) {
    for (let bit = 0; bit < 8; bit += 1) if ((byte >> bit) & 1) flip((index * 11 + bit) % 160)
  }
  for (let bit = 0; bit < 53; bit += 1) if (Math.floor(bytes.length / 2 ** bit) % 2 === 1) flip(96 + bit)
  return digest.toString('base64')
}

test.each([159, 160, 161, 1_000, 70_001])('a content of %i bytes has one digest, however it is cut', async (sizeBytes) => {
  const bytes = randomBytes(sizeBytes)
  for (const chunkBytes of [sizeBytes, 1, 7, 160, 161]) expect(await hashOf(bytes, chunkBytes)).toBe(referenceOf(bytes))
})
