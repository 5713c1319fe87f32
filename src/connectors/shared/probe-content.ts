import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Payload } from '../connector.ts'
import { toDeliveryError } from './errors.ts'

/** The content of a document, without what is known of it. */
export type Content = Pick<Payload, 'open' | 'sizeBytes' | 'sha256'>

/** Returns a small content for a test of a destination. */
export const probeContent = (sizeBytes?: number): Content => {
  const text = Buffer.from('A test of a destination of Document Relay.\n')
  const bytes = sizeBytes === undefined ? text : Buffer.alloc(sizeBytes, text)
  return {
    sizeBytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    open: (start = 0) => Readable.from([bytes.subarray(start)], { objectMode: false }),
  }
}

/**
 * Stores a small file as deliveries do, and removes it, also if storing it fails: its answer may have been lost.
 * @returns why the file remains, undefined if it does not
 * @throws what `store` throws
 */
export const storedAndRemoved = async (
  store: () => Promise<unknown>,
  remove: () => Promise<unknown>,
  signal: AbortSignal,
): Promise<string | undefined> => {
  try {
    await store()
  } catch (thrown) {
    await remove().catch(() => {})
    throw thrown
  }
  try {
    await remove()
    return undefined
  } catch (thrown) {
    signal.throwIfAborted()
    return toDeliveryError(thrown, 'request_failed').message
  }
}
