import { isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'

const windows1252 = 'windows-1252'

/**
 * Decodes bytes of an unknown encoding: as UTF-8 if they are valid UTF-8, else by a code page.
 * @param codePage a label of the Encoding Standard; by default Windows-1252, which contains ISO-8859-1
 */
export const decodeText = (bytes: Buffer, codePage = windows1252): string =>
  isUtf8(bytes) ? bytes.toString() : new TextDecoder(codePage).decode(bytes)

const percentEncoded = /%([0-9a-f]{2})/gi

/** Decodes the percent-encoding of a query value. `+` is a plus. A percent sign without two hexadecimal digits is kept. */
export const decodeBytes = (raw: string): Buffer =>
  Buffer.from(
    raw.replaceAll(percentEncoded, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16))),
    'latin1',
  )

// A source system leaves the comma as it is. Some servers compare authId without decoding it.
const unlikeSourceSystems = /[!'()*~]|%2C/g

/** Percent-encodes a query value as source systems do. A plus is encoded too, because proxies may take it for a blank. */
export const encodeValue = (value: string): string =>
  encodeURIComponent(value.toWellFormed()).replaceAll(unlikeSourceSystems, (text) =>
    text === '%2C' ? ',' : `%${text.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/** Percent-encodes a query value whose bytes are not UTF-8, given with one character per byte. */
export const encodeBytes = (value: string): string =>
  value.replaceAll(/[^\x80-\xff]+|[\x80-\xff]/g, (run) =>
    run < '\x80' ? encodeValue(run) : `%${run.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/** Decodes a header value, which Node and the reader of parts represent with one character per byte. */
export const decodeHeader = (value: string, codePage?: string): string => decodeText(Buffer.from(value, 'latin1'), codePage)

/** Encodes text as UTF-8 with one character per byte, as Node expects a header value. */
export const encodeHeader = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

// `binary`, `8bit` and `7bit` are transfer encodings of MIME that change nothing.
const unchanged = new Set(['', 'identity', 'binary', '8bit', '7bit'])

/**
 * Returns the header that says that bytes are sent in another form than they have, such as `Content-Encoding: gzip` or
 * `Content-Transfer-Encoding: base64`, or undefined.
 * @param valuesOf returns the values of a header, by its name in lower case
 */
export const encodingOf = (valuesOf: (name: string) => readonly string[]): string | undefined => {
  for (const name of ['Content-Encoding', 'Content-Transfer-Encoding']) {
    const value = valuesOf(name.toLowerCase()).join(',')
    if (!value.split(/[,;]/).every((token) => unchanged.has(token.trim().toLowerCase()))) return `${name}: ${value.trim()}`
  }
  return undefined
}

/** Replaces everything but printable ASCII by a question mark. */
export const printableAscii = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, '?')
