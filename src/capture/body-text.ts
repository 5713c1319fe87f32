import { isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import { contentTypeParameter } from '../domain/content-type.ts'

// ASCII, so it cannot name an encoding that is not read as ASCII.
const xmlEncoding = /^<\?xml\s[^>]*?encoding\s*=\s*["'](?!utf-16)([\w.:-]+)["']/i

const declarationMaxBytes = 256

/** Returns the encoding that the bytes or the content type declare. */
const declaredEncoding = (bytes: Buffer, contentType: string | null): string | undefined => {
  const mark = bytes.toString('hex', 0, 2)
  if (mark === 'fffe') return 'utf-16le'
  if (mark === 'feff') return 'utf-16be'
  return contentTypeParameter(contentType, 'charset') ?? xmlEncoding.exec(bytes.toString('latin1', 0, declarationMaxBytes))?.[1]
}

const decoderOf = (encoding: string | undefined): TextDecoder | undefined => {
  try {
    return encoding === undefined ? undefined : new TextDecoder(encoding)
  } catch {
    // Anybody can declare an encoding that does not exist.
    return undefined
  }
}

/**
 * Decodes a captured body: by its byte order mark, the charset of its content type, or its XML declaration. Without them, a body that is not
 * UTF-8 is ISO-8859-1, which ABAP systems send.
 */
export const bodyText = (bytes: Buffer, contentType: string | null): string =>
  decoderOf(declaredEncoding(bytes, contentType))?.decode(bytes) ?? bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1')
