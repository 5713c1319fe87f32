// Bytes of others that are text: in which encoding they are, and what they say.
import { contentTypeParameter } from './content-type.ts'

const xmlEncoding = /^\s*<\?xml\s[^>]*?encoding\s*=\s*["']\s*([^"'>\s]+)\s*["']/i

const declarationMaxBytes = 256

// The byte order marks, and `<` and `<?` of XML in UTF-16 without one.
const beginnings: [bytes: string, encoding: string][] = [
  ['efbbbf', 'utf-8'],
  ['fffe', 'utf-16le'],
  ['feff', 'utf-16be'],
]
const unmarkedBeginnings: [bytes: string, encoding: string][] = [
  ['3c003f00', 'utf-16le'],
  ['003c003f', 'utf-16be'],
]

const decoderOf = (encoding: string | undefined): InstanceType<typeof TextDecoder> | undefined => {
  try {
    return encoding === undefined ? undefined : new TextDecoder(encoding)
  } catch {
    // Anybody can declare an encoding that does not exist.
    return undefined
  }
}

/** Returns the encoding that the bytes or the content type declare. */
const declaredEncoding = (bytes: Buffer, contentType: string | null): string | undefined => {
  const start = bytes.toString('hex', 0, 4)
  const encodingAt = (list: typeof beginnings) => list.find(([mark]) => start.startsWith(mark))?.[1]
  const certain = encodingAt(beginnings) ?? contentTypeParameter(contentType, 'charset') ?? encodingAt(unmarkedBeginnings)
  if (certain !== undefined) return certain
  const inXml = xmlEncoding.exec(bytes.toString('latin1', 0, declarationMaxBytes))?.[1]
  // What is read as ASCII is not in UTF-16, whatever it says.
  return decoderOf(inXml)?.encoding.startsWith('utf-16') ? undefined : inXml
}

interface DecodedText {
  text: string
  /** The encoding, if U+FFFD in the text stands for bytes that it does not have. */
  damaged?: string
  /** The encoding that is declared and unknown, if the bytes are not UTF-8 either. */
  unknownEncoding?: string
}

const isDecodable = (bytes: Buffer, encoding: string): boolean => {
  try {
    new TextDecoder(encoding, { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}

/**
 * Decodes text of others: by its byte order mark, the charset of its content type, or its XML declaration.
 * @param codePage encoding of text that is not UTF-8 and declares none; by default ISO-8859-1, which ABAP systems send
 */
export const decodeText = (bytes: Buffer, contentType: string | null = null, codePage?: string | null): DecodedText => {
  const declared = declaredEncoding(bytes, contentType)
  const decoder = decoderOf(declared)
  if (decoder) {
    const text = decoder.decode(bytes)
    const isDamaged = text.includes('\uFFFD') && !isDecodable(bytes, decoder.encoding)
    return { text, ...(isDamaged && { damaged: decoder.encoding }) }
  }
  if (isDecodable(bytes, 'utf-8')) return { text: bytes.toString('utf8') }
  const text = codePage ? new TextDecoder(codePage).decode(bytes) : bytes.toString('latin1')
  return { text, ...(declared !== undefined && { unknownEncoding: declared }) }
}
