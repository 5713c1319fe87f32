import { isUtf8 } from 'node:buffer'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { mediaTypeOf } from '../domain/content-type.ts'
import { redactJson } from './redact-json.ts'
import { redactXml } from './redact-xml.ts'
import { assignment, pauseAfterSteps, redactPairs, type Steps } from './redact.ts'

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
 * @returns undefined if the body must not be stored: it is declared as JSON, XML or a form, or looks like JSON or XML, and cannot be read, so a
 *   secret could not be found
 */
export function* redactBody(data: Buffer, contentType: string | null): Steps<Buffer | undefined> {
  if (isOpaque(data, contentType)) return data
  const mediaType = mediaTypeOf(contentType)
  const [isJson, isXml, isForm] = [mediaType.includes('json'), mediaType.includes('xml'), mediaType === form]
  const wide = utf16Of(data) ?? (isJson || isXml || isForm ? unmarkedUtf16Of(data) : undefined)
  if (isJson) return yield* redactJsonBody(data, wide)
  // Any encoding that contains ASCII is read byte for byte.
  const text = wide?.text ?? data.toString('latin1')
  if ((isXml || isForm) && !isReadable(text, contentType ?? '', isXml ? '<' : '=')) return undefined
  if (isForm) return yield* redactBytes(data, wide, redactPairs)
  if (wide?.text.includes('\0')) return undefined
  const first = firstCharacter(wide ? Buffer.from(text.slice(0, headCharacters)) : data)
  if (isJsonOpening(first)) {
    const safe = yield* redactJsonBody(data, wide)
    if (safe) return safe
    if (!isXml) return assignment.test(text) ? undefined : data
  }
  return isXml || first === '<' ? yield* redactBytes(data, wide, redactXml) : data
}

// No text has these characters. Bytes that are compressed, or in an encoding of more bytes for a character, do.
const unreadable = new RegExp(String.raw`[\0-\x08\x0b\x0e-\x1f]`)
// Encodings that do not contain ASCII (UTF-7 writes = as +AD0-), and UTF-32.
const otherCharset =
  /(?:charset|encoding)\s*=\s*["']?(?:utf-?7|utf-?32|ucs-?4|unicode-1-1-utf-7|ebcdic|ibm-?\d|cp-?(?:037|273|500|1047|1140|1141))/i

/** Returns false for bytes of XML or a form that are in another encoding, or compressed. @param markup character without which there is no name */
const isReadable = (text: string, contentType: string, markup: string): boolean =>
  !unreadable.test(text) &&
  !otherCharset.test(contentType) &&
  !otherCharset.test(text.slice(0, prologCharacters)) &&
  (text.includes(markup) || !/[\x80-\xff]/.test(text))

const prologCharacters = 100

const form = 'application/x-www-form-urlencoded'

/**
 * Returns true if a body is of no kind that is redacted. Most bodies are of no such kind, and their first bytes show it at a fraction of the cost of
 * decoding.
 * @param head the first bytes, or all. A body that these bytes do not decide about is not opaque
 */
export const isOpaque = (head: Buffer, contentType: string | null): boolean => {
  const mediaType = mediaTypeOf(contentType)
  if (mediaType.includes('json') || mediaType.includes('xml') || mediaType === form) return false
  // The next bytes may complete a byte order mark.
  if (head.length < byteOrderMark.length) return false
  if (hasUtf16Mark(head)) return false
  const first = firstCharacter(head)
  return first !== '' && first !== '<' && !isJsonOpening(first)
}

const byteOrderMark = Buffer.from('\uFEFF')
// More blanks than stand before a text that a program has written.
const headCharacters = 1_024
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

/** A text in UTF-16, which begins with a byte order mark, and what encodes it again. */
interface WideText {
  text: string
  encode(text: string): Buffer
}

const hasUtf16Mark = (data: Buffer): boolean => ['fffe', 'feff'].includes(data.toString('hex', 0, 2))

const utf16Of = (data: Buffer): WideText | undefined => {
  if (!hasUtf16Mark(data) || data.length % 2 === 1) return undefined
  if (data[0] === 0xff) return { text: data.toString('utf16le'), encode: (text) => Buffer.from(text, 'utf16le') }
  return { text: Buffer.from(data).swap16().toString('utf16le'), encode: (text) => Buffer.from(text, 'utf16le').swap16() }
}

/** Returns the text of bytes that look like UTF-16 of ASCII, without a byte order mark. */
const unmarkedUtf16Of = (data: Buffer): WideText | undefined => {
  if (data.length < 4 || data.length % 2 === 1) return undefined
  const zeros = [...data.subarray(0, 4)].map((byte) => Number(byte === 0)).join('')
  if (zeros === '0101') return { text: data.toString('utf16le'), encode: (text) => Buffer.from(text, 'utf16le') }
  if (zeros !== '1010') return undefined
  return { text: Buffer.from(data).swap16().toString('utf16le'), encode: (text) => Buffer.from(text, 'utf16le').swap16() }
}

/** @returns undefined if the bytes are neither JSON nor JSON line by line */
function* redactJsonBody(data: Buffer, wide: WideText | undefined): Steps<Buffer | undefined> {
  if (!wide) return (yield* redactUtf8(data, redactJson)) ?? (yield* redactUtf8(data, redactJsonLines))
  const safe = (yield* redactJson(wide.text)) ?? (yield* redactJsonLines(wide.text))
  if (safe === undefined) return undefined
  return safe === wide.text ? data : wide.encode(safe)
}

/** Redacts a text of which each line is JSON, as in NDJSON. @returns undefined if one is not, or there is none */
function* redactJsonLines(text: string): Steps<string | undefined> {
  const isPauseDue = pauseAfterSteps()
  const output: string[] = []
  let hasValue = false
  for (let start = 0; start < text.length;) {
    if (isPauseDue()) yield
    const next = text.indexOf('\n', start) + 1
    const end = next === 0 ? text.length : next
    const line = text.slice(start, end)
    const isBlank = line.trim() === ''
    const safe: string | undefined = isBlank ? line : yield* redactJson(line)
    if (safe === undefined) return undefined
    hasValue ||= !isBlank
    output.push(safe)
    start = end
  }
  return hasValue ? output.join('') : undefined
}

/** Redacts a text in UTF-16, or in any encoding that contains ASCII, byte for byte. */
function* redactBytes(
  data: Buffer,
  wide: WideText | undefined,
  redact: (text: string) => Steps<string | undefined>,
): Steps<Buffer | undefined> {
  const text = wide?.text ?? data.toString('latin1')
  const safe = yield* redact(text)
  if (safe === undefined || safe === text) return safe === undefined ? undefined : data
  return wide ? wide.encode(safe) : Buffer.from(safe, 'latin1')
}
