import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { DeliveryError, Interruption, type AttemptContext } from '../connector.ts'
import { openPayload, type OpenPayload } from './payload-stream.ts'

const MiB = 1024 * 1024
/** Up to this size, one request is cheaper than several. */
export const minPartBytes = 8 * MiB
// One more part is read while they are sent, so five parts are in memory at a time.
const maxPartsInFlight = 4
// Eight uploads hold five parts of 8 MiB each. With 100 uploads of one part each, a worker holds 1 GiB.
const sharedPartsMaxBytes = 256 * MiB

/** Returns the part size for an upload that may have at most `maxParts` parts. */
export const partBytesFor = (sizeBytes: number, maxParts: number) => Math.max(minPartBytes, Math.ceil(sizeBytes / maxParts))

/** The memory that the uploads of a process share for their second and further parts. */
export interface PartMemory {
  /** @returns false if so much is not left */
  take(bytes: number): boolean
  giveBack(bytes: number): void
}

export const createPartMemory = (maxBytes = sharedPartsMaxBytes): PartMemory => {
  let left = maxBytes
  return {
    take: (bytes) => {
      if (bytes > left) return false
      left -= bytes
      return true
    },
    giveBack: (bytes) => {
      left += bytes
    },
  }
}

/**
 * Returns whether another attempt continues the upload of one that has failed: its worker stops, its time has passed, or the target has answered
 * with something that passes. An upload of a document that could not be read, that was cancelled, or whose last attempt this is, is given up.
 * @param passes returns true for an error of the target that passes
 * @returns a function that gets the error, and the signal of the stream, whose reason is a `DeliveryError` if the document could not be read
 */
export const canGoOn =
  ({ signal, isLast = false }: Pick<AttemptContext, 'signal' | 'isLast'>, passes: (thrown: unknown) => boolean) =>
  (thrown: unknown, ofStream: AbortSignal): boolean => {
    const { reason } = signal as { reason: unknown }
    // An interruption uses up no retry.
    if (reason instanceof Interruption) return true
    if (isLast) return false
    if (signal.aborted) return (reason as Error | undefined)?.name === 'TimeoutError'
    return !(ofStream.reason instanceof DeliveryError) && passes(thrown)
  }

// Parts in flight are waited for after one has failed. A target that answers none of them must not hold the attempt.
const lastPartsMaxMs = 20_000

/**
 * Sends a body in parts of equal size (the last one may be shorter), at most `maxInFlight` at a time. Once a part fails, no
 * further part is started; the caller must abort the parts that are still in flight.
 * @param body must have exactly `sizeBytes` bytes
 * @param options.memory limits the parts that are held at a time. Without it, that is `maxInFlight` and one more. An upload always holds
 *   one, so that it never waits for another upload
 * @param options.isStored returns true for a part that need not be sent
 * @param options.goesOn returns true after an error if another attempt continues the upload: then the parts in flight are waited for, so
 *   that they need not be sent again
 * @param send gets a part and its number, counted from 1. The memory of the part is used again when `send` has ended
 */
export const sendPartsInParallel = async (
  body: AsyncIterable<Buffer>,
  options: {
    sizeBytes: number
    partBytes: number
    maxInFlight?: number
    memory?: PartMemory
    isStored?: (number: number) => boolean
    goesOn?: (thrown: unknown) => boolean
  },
  send: (bytes: Buffer, number: number) => Promise<void>,
): Promise<void> => {
  const { sizeBytes, partBytes, maxInFlight = maxPartsInFlight, memory, isStored = () => false, goesOn = () => false } = options
  const inFlight = new Set<Promise<void>>()
  // New memory for each part would stay until the next garbage collection, which takes several parts.
  const free: Buffer[] = []
  let sharedBytes = 0
  let isFirst = true

  const allocate = (): Buffer | undefined => {
    if (!isFirst && memory) {
      if (!memory.take(partBytes)) return undefined
      sharedBytes += partBytes
    }
    isFirst = false
    return Buffer.allocUnsafe(Math.min(partBytes, sizeBytes))
  }
  const takeBuffer = async (): Promise<Buffer> => {
    for (;;) {
      const buffer = free.pop() ?? allocate()
      if (buffer) return buffer
      await Promise.race(inFlight)
    }
  }

  const chunks = body[Symbol.asyncIterator]()
  // Without `return`: a body that is closed ends the parts in flight.
  const open = { [Symbol.asyncIterator]: () => ({ next: () => chunks.next() }) }
  try {
    let number = 0
    for await (const bytes of cutIntoParts(open, sizeBytes, takeBuffer)) {
      if (inFlight.size >= maxInFlight) await Promise.race(inFlight)
      number += 1
      if (isStored(number)) {
        free.push(bytes)
        continue
      }
      const part = send(bytes, number)
      // A failed part stays in the set, so that the race or the final wait throws its error.
      inFlight.add(part)
      part.then(
        () => {
          inFlight.delete(part)
          free.push(bytes)
        },
        () => {},
      )
    }
    await Promise.all(inFlight)
  } catch (thrown) {
    if (goesOn(thrown)) await settled(inFlight)
    await chunks.return?.()
    throw thrown
  } finally {
    memory?.giveBack(sharedBytes)
  }
}

const settled = async (inFlight: Iterable<Promise<void>>): Promise<void> => {
  const timer = new AbortController()
  const limit = delay(lastPartsMaxMs, undefined, { signal: timer.signal }).catch(() => {})
  await Promise.race([Promise.allSettled(inFlight), limit])
  timer.abort()
}

/** @param takeBuffer returns a buffer that is not used at the moment, of the length of a part */
async function* cutIntoParts(body: AsyncIterable<Buffer>, sizeBytes: number, takeBuffer: () => Promise<Buffer>): AsyncGenerator<Buffer> {
  let [filled, left] = [0, sizeBytes]
  let part: Buffer | undefined
  for await (const chunk of body) {
    if (filled + chunk.length > left) throw new Error(`the body is longer than ${sizeBytes} bytes`)
    for (let at = 0; at < chunk.length;) {
      part ??= (await takeBuffer()).subarray(0, left)
      const copied = chunk.copy(part, filled, at)
      at += copied
      filled += copied
      if (filled < part.length) continue
      yield part
      left -= filled
      part = undefined
      filled = 0
    }
  }
  if (left > 0) throw new Error(`the body ends at byte ${sizeBytes - left + filled} of ${sizeBytes}`)
}

/** A part of a document as the body of one request. */
export interface UploadPart {
  start: number
  /** The position after the part's last byte. */
  end: number
  isLast: boolean
  /** Exactly `end - start` bytes. */
  body: Readable
}

/** The service's answer to a part: the document is complete, or the service expects the byte `nextByte` next. */
export type PartResult<Done> = { done: Done } | { nextByte: number | undefined }

/**
 * Sends a document in parts, one request after the other, without holding a part in memory. Continues at the byte that
 * the service asks for, since a service may keep less than it was sent.
 * @param partBytes is the size of every part but the last
 * @throws DeliveryError `upload_out_of_step` if the service asks for a byte outside of the part that it was sent
 */
export const sendPartsInSequence = async <Done>(
  payload: OpenPayload,
  {
    startByte = 0,
    partBytes,
    signal,
    onProgress,
  }: { startByte?: number; partBytes: number } & Pick<AttemptContext, 'signal' | 'onProgress'>,
  send: (part: UploadPart) => Promise<PartResult<Done>>,
): Promise<Done> => {
  const openAt = (position: number) => openPayload(payload, { signal, onProgress, startByte: position })
  let source = openAt(startByte)
  try {
    let bodyOf = createBodies(source)
    for (let start = startByte; ;) {
      const end = Math.min(start + partBytes, payload.sizeBytes)
      const isLast = end === payload.sizeBytes
      const result = await send({ start, end, isLast, body: bodyOf(end - start, isLast) })
      if ('done' in result) return result.done
      const { nextByte = -1 } = result
      if (nextByte <= start || nextByte > end || nextByte === payload.sizeBytes) throw uploadOutOfStep()
      if (nextByte < end) {
        source.destroy()
        source = openAt(nextByte)
        bodyOf = createBodies(source)
      }
      start = nextByte
    }
  } finally {
    source.destroy()
  }
}

export const uploadOutOfStep = () =>
  new DeliveryError('upload_out_of_step', 'the service has stored other parts of the document than were sent; the upload starts again')

/**
 * Cuts bodies of known length from one stream. The last body does not end before the stream has: a stream that fails at
 * its very end must fail the upload instead of completing it.
 */
const createBodies = (source: Readable) => {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>
  let rest: Buffer = Buffer.alloc(0)
  const readMore = async () => {
    const { done, value } = await chunks.next()
    rest = done ? Buffer.alloc(0) : value
    return !done
  }
  const readToEnd = async () => {
    while (await readMore());
  }
  const bytesOf = async function* (sizeBytes: number, isLast: boolean) {
    if (sizeBytes === 0 && isLast) await readToEnd()
    for (let left = sizeBytes; left > 0;) {
      if (rest.length === 0 && !(await readMore())) return
      const chunk = rest.subarray(0, left)
      rest = rest.subarray(chunk.length)
      left -= chunk.length
      if (left === 0 && isLast) await readToEnd()
      yield chunk
    }
  }
  return (sizeBytes: number, isLast: boolean): Readable => Readable.from(bytesOf(sizeBytes, isLast), { objectMode: false })
}
