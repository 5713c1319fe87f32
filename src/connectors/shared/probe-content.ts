import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Payload } from '../connector.ts'

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
