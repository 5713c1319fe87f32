import { randomBytes } from 'node:crypto'
import { askedSpan, blockBytes, blockOf, createBlockDigests, verifiedBlocks } from '../../src/home/blocks.ts'

const inPieces = async function* (bytes: Buffer, sizeBytes: number) {
  for (let at = 0; at < bytes.length; at += sizeBytes) yield bytes.subarray(at, at + sizeBytes)
}

const digestsOf = (bytes: Buffer, sizeBytes: number) => {
  const blocks = createBlockDigests()
  for (let at = 0; at < bytes.length; at += sizeBytes) blocks.update(bytes.subarray(at, at + sizeBytes))
  return blocks.digest()
}

const read = async (expected: Buffer, ...args: Parameters<typeof verifiedBlocks>) => {
  const blocks: Buffer[] = []
  const reading = verifiedBlocks(...args)
  for (;;) {
    const { done, value } = await reading.next()
    if (done)
      return {
        blocks: blocks.length,
        isSame: Buffer.concat(blocks).equals(expected.subarray(0, blocks.length * blockBytes)),
        problem: value,
      }
    blocks.push(value)
  }
}

test.each([1, blockBytes - 1, blockBytes, blockBytes + 1, 2 * blockBytes + 77])(
  'a content of %i bytes is read by blocks, and one changed or missing byte stops before its block',
  async (sizeBytes) => {
    const bytes = randomBytes(sizeBytes)
    const digests = digestsOf(bytes, 100_001)
    expect(digests.equals(digestsOf(bytes, 3 * blockBytes))).toBe(true)
    const content = { sizeBytes, digests }
    const last = blockOf(sizeBytes - 1)
    expect(await read(bytes, inPieces(bytes, 65_536), content, { first: 0, last })).toEqual({
      blocks: last + 1,
      isSame: true,
      problem: undefined,
    })
    // A longer content has the same beginning, and is not what was delivered.
    const longer = Buffer.concat([bytes, Buffer.from('more')])
    expect(await read(bytes, inPieces(longer, 65_537), content, { first: 0, last })).toEqual({
      blocks: last,
      isSame: true,
      problem: `it has more than ${sizeBytes} bytes`,
    })
    expect(askedSpan({ first: 0, last }, sizeBytes)).toEqual({ start: 0, end: sizeBytes })
    for (const at of [0, sizeBytes >> 1, sizeBytes - 1]) {
      const changed = Buffer.from(bytes)
      changed[at]! ^= 128
      const found = await read(bytes, inPieces(changed, 70_000), content, { first: 0, last })
      expect(found.blocks).toBe(blockOf(at))
      expect(found.isSame).toBe(true)
      expect(found.problem).toMatch(/are other ones/)
    }
    const short = await read(bytes, inPieces(bytes.subarray(0, -1), 70_000), content, { first: 0, last })
    expect(short).toMatchObject({ blocks: last, problem: `it ends after ${sizeBytes - 1} of ${sizeBytes} bytes` })
  },
)
