import { Readable } from 'node:stream'
import { cutText, plainText } from '../base/text.ts'
import type { Outbound } from '../security/outbound.ts'
import { decodeHeader, encodingOf, printableAscii } from './encoding.ts'
import { ContentServerFailure, malformed, refusedBy, toFailure, type Outcome } from './failure.ts'

export interface HttpContext {
  /** Opens the connections, after it has checked their addresses. */
  outbound: Pick<Outbound, 'dispatcher'>
  connectTimeoutMs: number
  /** The longest wait for the headers of an answer, and between two pieces of its body. */
  idleTimeoutMs: number
  /** Sent with every request. */
  headers?: Record<string, string> | undefined
}

export interface HttpRequest {
  method: string
  /** The query without its question mark. */
  query: string
  headers?: Record<string, string> | undefined
  body?: Buffer | Readable | undefined
  signal?: AbortSignal | undefined
  /** The longest time until the end of the answer. By default none: the bytes of a document may take long. */
  maxMs?: number | undefined
}

export interface HttpAnswer {
  status: number
  /** Returns the first value of a header as sent, with one character per byte. @param name in lower case */
  header(name: string): string | undefined
  /** Returns all values of a header. */
  values(name: string): string[]
  /** Must be read to its end or destroyed. Throws `ContentServerFailure` if the answer breaks off. */
  body: Readable
}

/** Creates a function that sends one request of the protocol. Any status is an answer. @throws `ContentServerFailure` if there is none */
export const createSend = (address: string, caCertificate: string | undefined, context: HttpContext) => {
  const { origin, pathname } = new URL(address)
  const { outbound, connectTimeoutMs, idleTimeoutMs } = context

  return async ({ method, query, headers, body, signal, maxMs }: HttpRequest): Promise<HttpAnswer> => {
    const ends = [signal, maxMs === undefined ? undefined : AbortSignal.timeout(maxMs)].filter((end) => end !== undefined)
    try {
      const response = await outbound.dispatcher({ connectTimeoutMs, caCertificate }).request({
        origin,
        path: `${pathname}?${query}`,
        method,
        // Without it, a proxy may compress what it passes on.
        headers: { 'user-agent': 'document-relay', 'accept-encoding': 'identity', ...context.headers, ...headers },
        body: body ?? null,
        signal: ends.length === 0 ? null : AbortSignal.any(ends),
        headersTimeout: idleTimeoutMs,
        bodyTimeout: idleTimeoutMs,
      })
      const values: HttpAnswer['values'] = (name) => [response.headers[name] ?? []].flat()
      return {
        status: response.statusCode,
        header: (name) => values(name)[0],
        values,
        body: withFailures(response.body),
      }
    } catch (thrown) {
      signal?.throwIfAborted()
      throw toFailure(thrown)
    }
  }
}

/** Returns the body with every error of the network converted. */
const withFailures = (body: Readable): Readable => {
  async function* read(): AsyncGenerator<Buffer, void, undefined> {
    try {
      yield* body as AsyncIterable<Buffer>
    } catch (thrown) {
      throw toFailure(thrown)
    } finally {
      body.destroy()
    }
  }
  const converted = Readable.from(read(), { objectMode: false })
  // A generator that has not begun has no `finally` to run.
  return converted.once('close', () => body.on('error', () => {}).destroy())
}

const descriptionMaxCharacters = 300

/** Returns the failure of an answer, with what the server says about it. Reads the body. */
export const failureOf = async (answer: HttpAnswer, codePage?: string): Promise<ContentServerFailure> => {
  const announced = answer.header('x-errordescription')
  // A body in HTML repeats the header, or is the page of a proxy.
  const body = await readText(answer.body, descriptionMaxCharacters).catch(() => '')
  const isPage = body.trimStart().startsWith('<')
  const isText = !isPage && encodingOf(answer.values) === undefined
  // What is cut may end within a character.
  const whole = body.length < descriptionMaxCharacters ? body : body.replace(/[\x80-\xff]{1,3}$/, '')
  const description = decodeHeader(announced ?? (isText ? whole : ''), codePage)
  const readable = cutText(withoutSignatures(plainText(description)).trim(), descriptionMaxCharacters)
  return refusedBy(answer.status, readable, { retryAfter: answer.header('retry-after'), isPage: isPage && announced === undefined })
}

/** Removes the signatures of URLs: an error page may repeat the request, and its signature can be used until it expires. */
const withoutSignatures = (text: string): string => text.replaceAll(/(seckey(?:=|%3d))[^\s&"'<>]*/gi, '$1...')

/** Reads a body as bytes of characters. A longer one is cut. */
const readText = async (body: Readable, maxBytes: number): Promise<string> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= maxBytes) break
  }
  return Buffer.concat(chunks).subarray(0, maxBytes).toString('latin1')
}

// The certificates of a repository, or the components of a document with a thousand pages: 200 KiB.
const textMaxBytes = 4 * 1024 * 1024

const tooLong = (status: number, maxBytes: number) =>
  new ContentServerFailure('too_large', `the content server answers more than ${maxBytes / 1024} KiB of text`, { status })

/** Reads an answer whose body is text. @throws `ContentServerFailure` if it is longer than 4 MiB or the given limit, or breaks off */
export const textOf = async ({ body, status }: HttpAnswer, maxBytes = textMaxBytes): Promise<string> => {
  const text = await readText(body, maxBytes + 1)
  if (text.length > maxBytes) throw tooLong(status, maxBytes)
  return text
}

/** Returns the answer. @throws `ContentServerFailure` if its bytes are not sent as they are: they would be taken for those of the document */
export const unencoded = (answer: HttpAnswer): HttpAnswer => {
  const encoding = encodingOf(answer.values)
  if (encoding === undefined) return answer
  answer.body.destroy()
  throw malformed(
    `its body is encoded (${printableAscii(encoding).slice(0, descriptionMaxCharacters)}), although the request does not allow it`,
  )
}

/** Returns a body that fails with a `ContentServerFailure` after 4 MiB. */
export const bounded = ({ body, status }: HttpAnswer): Readable => {
  async function* read(): AsyncGenerator<Buffer, void, undefined> {
    let bytes = 0
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > textMaxBytes) throw tooLong(status, textMaxBytes)
      yield chunk
    }
  }
  // A generator that has not begun does not close the body.
  return Readable.from(read(), { objectMode: false }).once('close', () => body.destroy())
}

/** Runs the work on an answer and returns its failure as a value. An aborted call throws the reason of its signal. */
export const asOutcome = async <T>(work: () => Promise<T>): Promise<Outcome<T>> => {
  try {
    return { ok: true, value: await work() }
  } catch (thrown) {
    if (thrown instanceof ContentServerFailure) return { ok: false, failure: thrown }
    throw thrown
  }
}
