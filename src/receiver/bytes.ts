import { isUtf8 } from 'node:buffer'

/** Text in bytes of which nobody says what they are: UTF-8 where they can be that, ISO-8859-1 otherwise. */
export const decodeText = (bytes: Buffer): string => bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1')

const percentEncoded = /%([0-9a-f]{2})/gi

/** The bytes of a value in a query string. `+` is a plus. A percent sign that begins no byte stands for itself. */
export const decodeBytes = (raw: string): Buffer =>
  Buffer.from(
    raw.replaceAll(percentEncoded, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16))),
    'latin1',
  )

/** A header's value as Node and Dicer give it, one character a byte, read as text. */
export const decodeHeader = (value: string): string => decodeText(Buffer.from(value, 'latin1'))

/** Text as Node wants a header's value: one character for each byte of its UTF-8. */
export const encodeHeader = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

/** What may stand where the protocol allows ASCII only. */
export const printableAscii = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, '?')

export const hasControlCharacter = (text: string): boolean => /\p{Cc}/u.test(text)
