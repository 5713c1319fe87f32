import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { createPartMemory, sendPartsInParallel, sendPartsInSequence, type UploadPart } from '../../../src/connectors/shared/upload-parts.ts'
import { failing, failure, largePayload, payloadOf } from '../payloads.ts'

const bytes = Buffer.from('0123456789')
const limits = { partBytes: 4, signal: new AbortController().signal, onProgress: () => {} }
const textOf = async ({ body }: UploadPart) => (await buffer(body)).toString()

test('a document is sent in parts of the requested size', async () => {
  const parts: string[] = []
  const done = await sendPartsInSequence(payloadOf(bytes), limits, async (part) => {
    parts.push(await textOf(part))
    return part.isLast ? { done: 'whole' } : { nextByte: part.end }
  })
  expect(done).toBe('whole')
  expect(parts).toEqual(['0123', '4567', '89'])
})

test('an empty document is a single part without bytes', async () => {
  const parts: string[] = []
  await sendPartsInSequence(payloadOf(Buffer.alloc(0)), limits, async (part) => {
    parts.push(await textOf(part))
    return { done: part.isLast }
  })
  expect(parts).toEqual([''])
})

test('bytes that the service did not store are sent again', async () => {
  const parts: string[] = []
  const progress: number[] = []
  await sendPartsInSequence(payloadOf(bytes), { ...limits, startByte: 2, onProgress: (sent) => progress.push(sent) }, async (part) => {
    parts.push(await textOf(part))
    if (part.isLast) return { done: true }
    return { nextByte: parts.length === 1 ? 3 : part.end }
  })
  expect(parts).toEqual(['2345', '3456', '789'])
  expect(progress.at(-1)).toBe(10)
})

test.each([[undefined], [0], [4], [9], [10]])('a service that asks for byte %s after bytes 4 to 8 is out of step', async (nextByte) => {
  const sending = sendPartsInSequence(payloadOf(bytes), limits, async (part) => {
    await textOf(part)
    return { nextByte: part.start === 0 ? 4 : nextByte }
  })
  expect(await failure(sending)).toMatchObject({ code: 'upload_out_of_step', permanent: false })
})

test('a source that is too long fails the last part', async () => {
  const payload = { ...largePayload(200_000), sizeBytes: 65_536 }
  const sending = sendPartsInSequence(payload, { ...limits, partBytes: 40_000 }, async (part) => {
    await textOf(part)
    return part.isLast ? { done: true } : { nextByte: part.end }
  })
  expect(await failure(sending)).toMatchObject({ code: 'content_unreadable' })
})

test('a source that fails, fails the part that is being sent', async () => {
  const sending = sendPartsInSequence(failing(largePayload(300_000), 100_000), { ...limits, partBytes: 40_000 }, async (part) => {
    await textOf(part)
    return part.isLast ? { done: true } : { nextByte: part.end }
  })
  expect(await failure(sending)).toMatchObject({ code: 'content_unreadable' })
})

test('an upload in parallel parts holds five parts in memory, and each part keeps its bytes until it is sent', async () => {
  // Node takes the memory of smaller buffers from a common one.
  const partBytes = Buffer.poolSize
  const document = randomBytes(10 * partBytes + 3)
  const memory = new Set<ArrayBufferLike>()
  const sent: Buffer[] = []
  await sendPartsInParallel(Readable.from([document]), { sizeBytes: document.length, partBytes }, async (part, number) => {
    memory.add(part.buffer)
    // Later parts end first.
    for (let turn = number % 4; turn < 4; turn += 1) await setImmediate()
    sent[number - 1] = Buffer.from(part)
  })
  expect(sent.map(({ length }) => length)).toEqual([...Array.from({ length: 10 }, () => partBytes), 3])
  expect(Buffer.concat(sent).equals(document)).toBe(true)
  expect(memory.size).toBeLessThanOrEqual(5)
})

test.each([
  [8, 'the body is longer than 8 bytes'],
  [9, 'the body is longer than 9 bytes'],
  [11, 'the body ends at byte 10 of 11'],
  [14, 'the body ends at byte 10 of 14'],
])('an upload in parallel parts of %i bytes fails if the body has 10', async (sizeBytes, message) => {
  const sending = sendPartsInParallel(Readable.from([bytes]), { sizeBytes, partBytes: 4 }, async (_part, number) => {
    if (number > 4) throw new Error('the upload does not end')
  })
  await expect(sending).rejects.toThrow(message)
})

test('uploads share the memory for further parts, and each has one part of its own', async () => {
  const document = randomBytes(10 * Buffer.poolSize)
  const memory = createPartMemory(3.5 * Buffer.poolSize)
  const upload = async (act = () => {}) => {
    const held = new Set<ArrayBufferLike>()
    const sent: Buffer[] = []
    await sendPartsInParallel(
      Readable.from([document]),
      { sizeBytes: document.length, partBytes: Buffer.poolSize, memory },
      async (part, number) => {
        held.add(part.buffer)
        act()
        await setImmediate()
        sent[number - 1] = Buffer.from(part)
      },
    )
    expect(Buffer.concat(sent).equals(document)).toBe(true)
    return held.size
  }

  const held = await Promise.all([upload(), upload(), upload()])
  const fail = () => {
    throw new Error('the target failed')
  }
  await expect(upload(fail)).rejects.toThrow('the target failed')

  expect(held.reduce((sum, parts) => sum + parts)).toBe(6)
  expect(memory.take(3.5 * Buffer.poolSize)).toBe(true)
})
