import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Dicer } from '@fastify/busboy'

/** A multipart body that cannot be read. The message says why, in words for the sender. */
export class MultipartError extends Error {
  readonly code: 'malformed' | 'too_many_parts'

  constructor(code: MultipartError['code'], message: string) {
    super(message)
    this.name = 'MultipartError'
    this.code = code
  }
}

export interface Part {
  /** Returns the first value of a header as sent, with one character per byte. @param name in lower case */
  header(name: string): string | undefined
  /** Returns all values of a header. */
  values(name: string): string[]
  /** Must be read to its end before the next part is available. */
  body: AsyncIterable<Buffer>
}

// A name may have spaces before its colon, as mails may.
type Headers = Record<string, string[]>

const maxHeaderPairs = 100
// The parser and the store need 0.1 ms per small part.
const partsPerTurn = 20
// Dicer searches for at most 256 bytes, and converts other characters than ASCII to UTF-8.
const usableBoundary = /^[\x20-\x7e]{1,200}$/

/** @throws `MultipartError` if the content type is not multipart or has no boundary */
export const boundaryOf = (contentType: string | undefined): string => {
  if (!/^multipart\//i.test(contentType ?? '')) throw new MultipartError('malformed', 'the body must be multipart/form-data')
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]*)"|([^;\s]+))/i.exec(contentType!) ?? []
  const boundary = quoted ?? plain ?? ''
  if (!usableBoundary.test(boundary)) throw new MultipartError('malformed', 'the Content-Type has no valid boundary')
  return boundary
}

/**
 * Reads the parts of a multipart body one after another. Bytes that have not been read stay in the connection.
 * @throws `MultipartError` if the body is malformed or has too many parts, and errors of the body
 */
export async function* readParts(
  body: AsyncIterable<Buffer>,
  { boundary, maxParts }: { boundary: string; maxParts: number },
): AsyncGenerator<Part, void, undefined> {
  const dicer = new Dicer({ boundary, maxHeaderPairs })
  const found = new Readable({ objectMode: true, read: () => {} })
  const open = new Set<Readable>()
  const errors: unknown[] = []
  let resume = () => {}
  let writtenBytes = 0
  let count = 0
  let headless = false

  const fail = (error: unknown) => {
    errors.push(error)
    found.destroy(error as Error)
    for (const part of open) part.destroy(error as Error)
    resume()
  }
  const malformed = (reason: string) => fail(new MultipartError('malformed', `malformed multipart body: ${reason}`))

  async function* bodyOf(part: Readable): AsyncGenerator<Buffer, void, undefined> {
    try {
      yield* part
    } catch (thrown) {
      // Dicer reports an error of the body to each part as an error of its own.
      throw errors[0] ?? thrown
    }
  }

  dicer.on('part', (part) => {
    if (headless) return malformed('a part has no header')
    count += 1
    if (count > maxParts) return fail(new MultipartError('too_many_parts', `a request may contain at most ${maxParts} components`))
    headless = true
    open.add(part)
    // `bodyOf` and `found` report the errors to their readers.
    part.on('error', () => {})
    part.once('close', () => {
      open.delete(part)
      // Dicer waits for a read of a part whose buffer was full when its boundary arrived. It would not be read again.
      part['_read'](0)
    })
    part.once('header', (headers: object) => {
      headless = false
      const values: Part['values'] = (name) =>
        Object.entries(headers as Headers).flatMap(([each, texts]) => (each.trim() === name ? texts : []))
      found.push({ header: (name) => values(name)[0], values, body: bodyOf(part) } satisfies Part)
    })
    return undefined
  })
  dicer.on('error', (error: Error) => malformed(error.message))
  dicer.on('finish', () => {
    // Dicer takes `--B CRLF --B--`, a document without components, for a part without a header.
    const isEmpty = count === 1 && writtenBytes <= emptyBodyBytes(boundary)
    if (headless && !isEmpty) malformed('a part has no header')
    else found.push(null)
  })

  /** Feeds the parser, boundary by boundary. After an error, it discards the rest of the body, so that the client can read the refusal. */
  const feed = async () => {
    for await (const chunk of body) {
      for (const piece of splitAfterBoundaries(chunk, boundary)) {
        if (errors.length > 0) break
        writtenBytes += piece.length
        const countBefore = count
        await new Promise<void>((resolve) => {
          resume = resolve
          dicer.write(piece, () => resolve())
        })
        // A chunk can contain a thousand parts. Other requests have their turn between them.
        if (count > countBefore && count % partsPerTurn === 0) await nextTurn()
      }
    }
    if (errors.length === 0) dicer.end()
  }
  const fed = feed().catch(fail)

  try {
    for await (const part of found) yield part as Part
    // The bytes after the last boundary belong to the request as well.
    await fed
    if (errors.length > 0) throw errors[0]
  } finally {
    if (!found.readableEnded) fail(new Error('the reader has stopped'))
  }
}

/** Splits a chunk after each boundary that it contains as a whole. */
function* splitAfterBoundaries(chunk: Buffer, boundary: string): Generator<Buffer, void, undefined> {
  let start = 0
  for (let at = chunk.indexOf(boundary); at >= 0; at = chunk.indexOf(boundary, start)) {
    yield chunk.subarray(start, at + boundary.length)
    start = at + boundary.length
  }
  if (start < chunk.length) yield chunk.subarray(start)
}

const emptyBodyBytes = (boundary: string) => `--${boundary}\r\n--${boundary}--\r\n`.length
