import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { encodeHeader } from './encoding.ts'

/** A component as a client sends it. */
export interface SentComponent {
  compId: string
  /** With its parameters, with one character per byte. Null sends none. */
  contentType: string | null
  sizeBytes: number
  /** A stream must have exactly `sizeBytes`. */
  body: Buffer | Readable
}

/** Returns components as the body of a request, whose length is known before the bytes are read. Reading fails if a component is longer or shorter. */
export const multipartOf = (components: readonly SentComponent[]): { contentType: string; sizeBytes: number; body: Readable } => {
  const boundary = `relay${randomBytes(12).toString('hex')}`
  const parts = components.map((component) => ({ head: headOf(boundary, component), component }))
  // An empty document has a first boundary, too.
  const end = Buffer.from(`${parts.length === 0 ? `--${boundary}\r\n` : ''}--${boundary}--\r\n`)
  const foot = Buffer.from('\r\n')
  async function* write(): AsyncGenerator<Buffer, void, undefined> {
    for (const { head, component } of parts) {
      yield head
      yield* exactly(component)
      yield foot
    }
    yield end
  }
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    sizeBytes: parts.reduce((sum, { head, component }) => sum + head.length + component.sizeBytes + foot.length, end.length),
    body: Readable.from(write(), { objectMode: false }),
  }
}

const headOf = (boundary: string, { compId, contentType, sizeBytes }: SentComponent): Buffer => {
  const type = contentType === null ? '' : `Content-Type: ${contentType}\r\n`
  return Buffer.from(`--${boundary}\r\nX-compId: ${encodeHeader(compId)}\r\n${type}Content-Length: ${sizeBytes}\r\n\r\n`, 'latin1')
}

async function* exactly({ compId, sizeBytes, body }: SentComponent): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0
  for await (const chunk of Buffer.isBuffer(body) ? [body] : (body as AsyncIterable<Buffer>)) {
    bytes += chunk.length
    if (bytes > sizeBytes) break
    yield chunk
  }
  if (bytes !== sizeBytes) throw new Error(`component ${compId} has other than the announced ${sizeBytes} bytes`)
}
