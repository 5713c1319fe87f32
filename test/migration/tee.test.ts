import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { createTee } from '../../src/migration/tee.ts'

const expected = (sizeBytes: number) => ({ compId: 'data', sizeBytes, digest: undefined })
const MiB = 1024 * 1024

async function* source(...chunks: Buffer[]) {
  yield* chunks
}

const drain = async (bytes: AsyncIterable<Buffer>) => {
  for await (const _ of bytes) continue
}

test('a copy whose bytes were all passed is readable after a failure, and one that was not breaks off', async () => {
  const [whole, half] = [createTee(), createTee()]
  await drain(whole.pass(source(Buffer.from('hello')), expected(5)))
  for (const tee of [whole, half]) tee.fail(new Error('the commit has failed'))
  expect(String(await buffer(whole.copy))).toBe('hello')
  await expect(buffer(half.copy)).rejects.toThrow('the commit has failed')
})

test('a copy has no byte of up to 64 KiB, and not the last ones of more, until all are verified', async () => {
  const KiB = 1024
  for (const [pieces, early] of [
    [[20 * KiB, 44 * KiB], 0],
    [[64 * KiB, 64 * KiB, 64 * KiB], 128 * KiB],
    [[200 * KiB, 1, 1], 0],
    [[200 * KiB, 64 * KiB], 200 * KiB],
  ] as const) {
    const size = pieces.reduce((sum, piece) => sum + piece, 0)
    for (const isShort of [true, false]) {
      const { copy, pass } = createTee()
      const passing = drain(pass(source(...pieces.map((piece) => Buffer.alloc(piece))), expected(isShort ? size + 1 : size)))
      if (isShort) await expect(passing).rejects.toThrow('fewer than')
      else await passing
      let bytes = 0
      copy.on('data', (chunk: Buffer) => (bytes += chunk.length))
      if (!isShort) await once(copy, 'end')
      expect(bytes).toBeLessThanOrEqual(isShort ? early : size)
      if (!isShort) expect(bytes).toBe(size)
    }
  }
})

test('a reader that pauses often leaves no listeners behind', async () => {
  const { copy, pass } = createTee()
  const before = copy.listenerCount('close')
  const passing = drain(pass(source(...Array.from({ length: 20 }, () => Buffer.alloc(MiB))), expected(20 * MiB)))
  let most = 0
  for await (const _ of copy) most = Math.max(most, copy.listenerCount('close'))
  await passing
  expect(most - before).toBeLessThan(5)
})

describe('the wait for the reader', () => {
  test('ends when the copy is read, and at once if it has no bytes or nobody wants it', async () => {
    const [read, empty, unwanted] = [createTee(), createTee(), createTee()]
    await drain(read.pass(source(Buffer.from('hello')), expected(5)))
    await drain(empty.pass(source(), expected(0)))
    unwanted.copy.destroy()
    const ends = Promise.all([read, empty, unwanted].map((tee) => tee.read()))
    await buffer(read.copy)
    expect(await ends).toEqual([true, true, true])
  })

  test('ends after a while if the reader takes nothing, and disconnects it', async () => {
    const stalled = createTee(20)
    await drain(stalled.pass(source(Buffer.from('hello')), expected(5)))
    expect(await stalled.read()).toBe(false)
    expect(stalled.copy.destroyed).toBe(true)
  })
})
