import { isUtf8 } from 'node:buffer'
import { mediaTypeOf } from '../domain/content-type.ts'

// What is captured is redacted before it is kept (contract, section 8.3). Everything but the values in question stays as it was, to
// the byte: a number of twenty digits or a key that stands twice must not come out otherwise than it went in.

const redacted = '[REDACTED]'

// the contract's names; api_key and apikey are api-key in other spellings
const wholeNames = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie'])
const partOfName = /token|secret|password|api[-_]?key/i
// what a text without any such key cannot hold; an escape may spell a letter of one
const mention = /authorization|cookie|token|secret|password|api[-_]?key|\\u/i

const isSensitive = (name: string): boolean => wholeNames.has(name.toLowerCase()) || partOfName.test(name)

export const redactHeaders = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, isSensitive(name) ? redacted : value]))

const byteOrderMark = Buffer.from('\uFEFF')
const blanks = new Set(Buffer.from(' \t\r\n'))
const openings = new Set(Buffer.from('"[{'))

const looksLikeJson = (data: Buffer): boolean => {
  let at = data.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? byteOrderMark.length : 0
  while (at < data.length && blanks.has(data[at]!)) at += 1
  return at < data.length && openings.has(data[at]!)
}

/**
 * A body as it may be kept: the same buffer where there was nothing to hide.
 * @returns undefined where it must not be kept: it calls itself JSON and is none, so that nobody knows where a secret ends
 */
export const redactBody = (data: Buffer, contentType: string | null): Buffer | undefined => {
  const isDeclared = mediaTypeOf(contentType).includes('json')
  // most bodies are no JSON, which their first byte tells for much less than decoding them costs
  if (!isDeclared && !looksLikeJson(data)) return data
  const text = isUtf8(data) ? data.toString() : undefined
  const safe = text === undefined ? undefined : redactJson(text)
  if (safe === undefined) return isDeclared ? undefined : data
  return safe === text ? data : Buffer.from(safe)
}

/** @returns undefined where the text is no JSON */
export const redactJson = (text: string): string | undefined => {
  const json = text.replace(/^\uFEFF/, '')
  try {
    JSON.parse(json)
  } catch {
    return undefined
  }
  return mention.test(text) ? redactValues(text) : text
}

/** Of well-formed JSON only: from one string to the next, keys and values alike, without descending anywhere. */
const redactValues = (text: string): string => {
  const pieces: string[] = []
  let kept = 0
  const replace = (from: number, to: number, by: string) => {
    pieces.push(text.slice(kept, from), by)
    kept = to
  }
  for (let start = text.indexOf('"'); start >= 0;) {
    let end = endOfString(text, start)
    const valueAt = valueOfKey(text, end)
    if (valueAt === undefined) {
      const safe = redactString(text.slice(start, end))
      if (safe !== undefined) replace(start, end, safe)
    } else if (isSensitive(JSON.parse(text.slice(start, end)) as string)) {
      end = endOfValue(text, valueAt)
      replace(valueAt, end, `"${redacted}"`)
    }
    start = text.indexOf('"', end)
  }
  return pieces.join('') + text.slice(kept)
}

/** JSON may travel as a string in JSON. @returns undefined where the string stays */
const redactString = (literal: string): string | undefined => {
  if (!literal.includes('{') && !literal.includes('\\u007')) return undefined
  const inner = JSON.parse(literal) as string
  const safe = looksLikeJson(Buffer.from(inner)) ? redactJson(inner) : undefined
  return safe === undefined || safe === inner ? undefined : JSON.stringify(safe)
}

/** Behind the closing quote of the string that begins here. */
const endOfString = (text: string, start: number): number => {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return end + 1
  }
}

const skipWhitespace = (text: string, start: number): number => {
  let at = start
  while (at < text.length && ' \t\r\n'.includes(text[at]!)) at += 1
  return at
}

/** Where the value begins, if what ends here is a key. */
const valueOfKey = (text: string, end: number): number | undefined => {
  const colon = skipWhitespace(text, end)
  return text[colon] === ':' ? skipWhitespace(text, colon + 1) : undefined
}

const endOfValue = (text: string, start: number): number => {
  if (text[start] === '"') return endOfString(text, start)
  let depth = 0
  for (let at = start; ; at += 1) {
    const character = text[at]!
    // a number or a word ends where something else begins
    if (depth === 0 && at > start && ',]} \t\r\n'.includes(character)) return at
    if (character === '"') at = endOfString(text, at) - 1
    else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') depth -= 1
    if (depth === 0 && (character === '}' || character === ']')) return at + 1
  }
}
