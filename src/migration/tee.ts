import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { PassThrough, type Readable } from 'node:stream'
import type { ContentDigest } from '../content-server/answers.ts'
import { toUpstreamFailure, UpstreamFailure } from './failure.ts'

// The source reads ahead of a client by this much.
const aheadBytes = 1_024 * 1_024
// What the copy holds back until the whole is verified. A shorter component is whole then.
const heldBytes = 64 * 1_024
// A client that takes nothing for so long is disconnected: it must not keep the document from being stored.
const stallTimeoutMs = 30_000

interface Expected {
  compId: string
  sizeBytes: number
  /** The length that the answer announces, if it does. */
  contentLength?: number | undefined
  digest: ContentDigest | undefined
}

/** Creates a copy of a stream that does not end it. The last 64 KiB are copied once all bytes have been verified. */
export const createTee = (timeoutMs = stallTimeoutMs) => {
  const copy = new PassThrough({ highWaterMark: aheadBytes })
  // The reader sees the error in its own listener, if there is one.
  copy.on('error', () => {})
  let isAnnounced = false

  /** Waits until the reader has taken what was offered, or is gone. Disconnects it if it takes too long. */
  const untilRead = async (event: 'drain' | 'end', maxMs: number): Promise<boolean> => {
    const over = new AbortController()
    const signal = AbortSignal.any([AbortSignal.timeout(maxMs), over.signal])
    try {
      await Promise.race([once(copy, event, { signal }), once(copy, 'close', { signal })])
      return true
    } catch (thrown) {
      const isStalled = !copy.destroyed
      if (isStalled) copy.destroy(thrown as Error)
      return !isStalled
    } finally {
      // Ends the other wait.
      over.abort()
    }
  }

  const offer = async (chunk: Buffer): Promise<void> => {
    if (copy.destroyed || copy.write(chunk)) return
    await untilRead('drain', timeoutMs)
  }

  return {
    /** The bytes for a client. Fails if they are not those that were announced. The client may stop reading at any time. */
    copy: copy as Readable,
    /**
     * Returns true if the answer announces the expected length, and no digest: then each of its bytes is one of the component, whatever follows.
     * Known when the copy has its first byte.
     */
    isAnnounced: (): boolean => isAnnounced,
    /** Ends the copy, unless all bytes were passed: a client gets them even if they cannot be kept. */
    fail: (error: Error): void => {
      if (!copy.writableEnded) copy.destroy(error)
    },
    /** Waits until the client has read the copy, or does not want it any more. @returns false if the client takes too long */
    read: async (): Promise<boolean> => {
      // A copy without bytes is not read to its end.
      const isEmpty = copy.writableLength + copy.readableLength === 0
      // It holds twice as much as is read between two drains.
      return copy.destroyed || isEmpty || untilRead('end', 2 * timeoutMs)
    },
    /** Passes the bytes of the source on, and copies them. Fails if they are not those that were announced. */
    pass: async function* (source: AsyncIterable<Buffer>, expected: Expected): AsyncGenerator<Buffer, void, undefined> {
      const hash = expected.digest && createHash(expected.digest.algorithm)
      let bytes = 0
      const held: Buffer[] = []
      let heldFrom = 0
      isAnnounced = expected.contentLength === expected.sizeBytes && !hash
      try {
        for await (const chunk of source) {
          bytes += chunk.length
          if (bytes > expected.sizeBytes) throw differs(expected, 'more')
          hash?.update(chunk)
          held.push(chunk)
          while (held.length > 1 && bytes - heldFrom - held[0]!.length >= heldBytes) {
            const piece = held.shift()!
            heldFrom += piece.length
            await offer(piece)
          }
          yield chunk
        }
        if (bytes < expected.sizeBytes) throw differs(expected, 'fewer')
        if (hash && !hash.digest().equals(expected.digest!.value)) {
          throw new UpstreamFailure(`upstream: the bytes of component ${expected.compId} do not have the digest that the server sends`, {
            about: 'document',
          })
        }
        for (const piece of held) await offer(piece)
        copy.end()
      } catch (thrown) {
        const failure = toUpstreamFailure(thrown) as Error
        copy.destroy(failure)
        throw failure
      }
    },
  }
}

export type Tee = ReturnType<typeof createTee>

const differs = ({ compId, sizeBytes }: Expected, how: 'more' | 'fewer') =>
  new UpstreamFailure(`upstream: component ${compId} has ${how} than the ${sizeBytes} bytes that the server announces`, {
    about: 'document',
  })
