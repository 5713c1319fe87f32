import { isUtf8 } from 'node:buffer'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { mediaTypeOf } from '../domain/headers.ts'
import { redactJson } from './redact-json.ts'
import { redactXml } from './redact-xml.ts'
import { redactPairs, type Steps } from './redact.ts'

const sliceMs = 10

/**
 * Runs the work in slices of about ten milliseconds, so that a hostile text of a megabyte does not delay other requests. Short work ends in
 * the first slice.
 */
export const runInSlices = async <Result>(work: Steps<Result>): Promise<Result> => {
  let sliceEndsAt = performance.now() + sliceMs
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    if (performance.now() < sliceEndsAt) continue
    await nextTurn()
    sliceEndsAt = performance.now() + sliceMs
  }
}

/**
 * Redacts a body. Returns the same buffer if there is nothing to redact.
 * @returns undefined if the body must not be stored: it is declared as JSON and is not, so a secret could not be found
 */
export function* redactBody(data: Buffer, contentType: string | null): Steps<Buffer | undefined> {
  if (isOpaque(data, contentType)) return data
  const mediaType = mediaTypeOf(contentType)
  if (mediaType.includes('json')) return yield* redactUtf8(data, redactJson)
  const first = firstCharacter(data)
  const safe = isJsonOpening(first) ? yield* redactUtf8(data, redactJson) : undefined
  if (safe) return safe
  if (mediaType.includes('xml') || first === '<') return yield* redactXmlBody(data)
  if (mediaType === form) return (yield* redactUtf8(data, redactPairs)) ?? data
  return data
}

const form = 'application/x-www-form-urlencoded'

/**
 * Returns true if a body is of no kind that is redacted. Most bodies are none, and their first bytes show it at a fraction of the cost of
 * decoding.
 * @param head the first bytes, or all. A body that these bytes do not decide about is not opaque
 */
export const isOpaque = (head: Buffer, contentType: string | null): boolean => {
  const mediaType = mediaTypeOf(contentType)
  if (mediaType.includes('json') || mediaType.includes('xml') || mediaType === form) return false
  // The next bytes may complete a byte order mark.
  if (head.length < byteOrderMark.length) return false
  const first = firstCharacter(head)
  return first !== '' && first !== '<' && !isJsonOpening(first)
}

const byteOrderMark = Buffer.from('\uFEFF')
const blanks = new Set(Buffer.from(' \t\r\n'))

/** Returns the first character of an ASCII text after a byte order mark and blanks. */
const firstCharacter = (data: Buffer): string => {
  let at = data.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? byteOrderMark.length : 0
  while (blanks.has(data[at]!)) at += 1
  return data.toString('latin1', at, at + 1)
}

const isJsonOpening = (character: string) => character === '{' || character === '[' || character === '"'

/** @returns undefined if the bytes are not UTF-8, or `redact` cannot read the text */
function* redactUtf8(data: Buffer, redact: (text: string) => Steps<string | undefined>): Steps<Buffer | undefined> {
  if (!isUtf8(data)) return undefined
  const text = data.toString()
  const safe = yield* redact(text)
  if (safe === undefined) return undefined
  return safe === text ? data : Buffer.from(safe)
}

function* redactXmlBody(data: Buffer): Steps<Buffer> {
  const mark = data.toString('hex', 0, 2)
  // UTF-16 begins with a byte order mark. Any other encoding of XML contains ASCII, and is read byte for byte.
  if ((mark !== 'fffe' && mark !== 'feff') || data.length % 2 === 1) return yield* redactXmlIn('latin1', data)
  if (mark === 'fffe') return yield* redactXmlIn('utf16le', data)
  const swapped = Buffer.from(data).swap16()
  const safe = yield* redactXmlIn('utf16le', swapped)
  return safe === swapped ? data : safe.swap16()
}

function* redactXmlIn(encoding: 'latin1' | 'utf16le', data: Buffer): Steps<Buffer> {
  const text = data.toString(encoding)
  const safe = yield* redactXml(text)
  return safe === text ? data : Buffer.from(safe, encoding)
}
