import { Dicer } from '@fastify/busboy'
import { Readable } from 'node:stream'
import { Refusal } from './refusal.ts'

export interface Part {
  /** Names in lower case; values as sent, one character a byte; the first one of a name. */
  header(name: string): string | undefined
  /** Must be read to its end before the next part comes. */
  body: AsyncIterable<Buffer>
}

type Headers = Record<string, string[] | undefined>

const maxHeaderPairs = 100
// Dicer searches for 256 bytes at most, and would send others than ASCII through UTF-8
const usableBoundary = /^[\x20-\x7e]{1,200}$/

/** @throws Refusal where the content type is not multipart or names no boundary */
export const boundaryOf = (contentType: string | undefined): string => {
  if (!/^multipart\//i.test(contentType ?? '')) throw new Refusal('invalid_parameter', 'the body must be multipart/form-data')
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]*)"|([^;\s]+))/i.exec(contentType!) ?? []
  const boundary = quoted ?? plain ?? ''
  if (!usableBoundary.test(boundary)) throw new Refusal('invalid_parameter', 'the Content-Type names no usable boundary')
  return boundary
}

/**
 * The parts of a multipart body, one after the other; what is not read yet waits in the connection.
 * @throws Refusal where the body is malformed or has too many parts, and whatever the body throws
 */
export async function* readParts(
  body: AsyncIterable<Buffer>,
  { boundary, maxParts }: { boundary: string; maxParts: number },
): AsyncGenerator<Part, void, undefined> {
  const dicer = new Dicer({ boundary, maxHeaderPairs })
  const found = new Readable({ objectMode: true, read: () => {} })
  const open = new Set<Readable>()
  const faults: unknown[] = []
  let goOn = () => {}
  let writtenBytes = 0
  let count = 0
  let headless = false

  const fail = (error: unknown) => {
    faults.push(error)
    found.destroy(error as Error)
    for (const part of open) part.destroy(error as Error)
    goOn()
  }
  const malformed = (reason: string) => fail(new Refusal('invalid_parameter', `malformed multipart body: ${reason}`))

  async function* bodyOf(part: Readable): AsyncGenerator<Buffer, void, undefined> {
    try {
      yield* part
    } catch (thrown) {
      // Dicer tells each part in words of its own that the body was at fault
      throw faults[0] ?? thrown
    }
  }

  dicer.on('part', (part) => {
    if (headless) return malformed('a part has no header')
    count += 1
    if (count > maxParts) return fail(new Refusal('too_large', `a request may bring ${maxParts} components at most`))
    headless = true
    open.add(part)
    // `bodyOf` and `found` report what matters, each to whom it concerns
    part.on('error', () => {})
    part.once('close', () => {
      open.delete(part)
      // a part that was full as its boundary came is never read again: Dicer would wait for that for ever
      part['_read'](0)
    })
    part.once('header', (headers: object) => {
      headless = false
      found.push({ header: (name) => (headers as Headers)[name]?.[0], body: bodyOf(part) } satisfies Part)
    })
    return undefined
  })
  dicer.on('error', (error: Error) => malformed(error.message))
  dicer.on('finish', () => {
    // `--B CRLF --B--`, a document without components, looks to Dicer like a part without a header
    const isEmpty = count === 1 && writtenBytes <= emptyBodyBytes(boundary)
    if (headless && !isEmpty) malformed('a part has no header')
    else found.push(null)
  })

  /** Feeds the parser; after a fault it throws the rest away, so that the client gets to read the refusal. */
  const feed = async () => {
    for await (const piece of body) {
      if (faults.length > 0) continue
      writtenBytes += piece.length
      await new Promise<void>((resolve) => {
        goOn = resolve
        dicer.write(piece, () => resolve())
      })
    }
    if (faults.length === 0) dicer.end()
  }
  const fed = feed().catch(fail)

  try {
    for await (const part of found) yield part as Part
    // what follows the last boundary belongs to the request too
    await fed
    if (faults.length > 0) throw faults[0]
  } finally {
    if (!found.readableEnded) fail(new Error('nobody reads on'))
  }
}

const emptyBodyBytes = (boundary: string) => `--${boundary}\r\n--${boundary}--\r\n`.length
