// Finds out how bytes can be shown. Pure, so that it can be tested without a browser.

export type BodyKind = 'image' | 'pdf' | 'multipart' | 'text' | 'unknown'

const mediaTypeOf = (contentType: string) => contentType.split(';')[0]!.trim().toLowerCase()

const isDeclaredText = (contentType: string): boolean => {
  const type = mediaTypeOf(contentType)
  return (
    type.startsWith('text/') || type === 'application/x-www-form-urlencoded' || /^application\/([a-z0-9.+-]*[+])?(json|xml)$/.test(type)
  )
}

/** Returns how a body can be shown, by its declared type. SVG and HTML are text: the sender decides what they contain. */
export const kindOf = (contentType: string): BodyKind => {
  const type = mediaTypeOf(contentType)
  if (['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/bmp'].includes(type)) return 'image'
  if (type === 'application/pdf') return 'pdf'
  if (type.startsWith('multipart/')) return 'multipart'
  return isDeclaredText(contentType) || type === 'image/svg+xml' ? 'text' : 'unknown'
}

const allowedControls = '\t\n\r\f\u001A'

const hasControlCharacter = (text: string): boolean => {
  for (const character of text) if (character < ' ' && !allowedControls.includes(character)) return true
  return false
}

/** Returns the beginning of the bytes, one character for each. */
const ascii = (bytes: Uint8Array, length: number) => String.fromCharCode(...bytes.subarray(0, length))

const xmlDeclarationBytes = 200

const charsetOf = (bytes: Uint8Array, contentType: string): string => {
  const mark = ascii(bytes, 2)
  if (mark === '\u00FF\u00FE') return 'utf-16le'
  if (mark === '\u00FE\u00FF') return 'utf-16be'
  const declared = /;\s*charset="?([\w.:-]+)/i.exec(contentType)?.[1]
  return declared ?? /^<\?xml[^>]*encoding=["']([\w.:-]+)/.exec(ascii(bytes, xmlDeclarationBytes))?.[1] ?? 'utf-8'
}

/**
 * Returns bytes as text. They may end inside a character.
 * @returns undefined if they are not declared as text and do not look like it
 */
export const textOf = (bytes: Uint8Array, contentType: string): string | undefined => {
  const mustBeText = kindOf(contentType) === 'text'
  const decode = (charset: string) => new TextDecoder(charset, { fatal: !mustBeText }).decode(bytes, { stream: true })
  let text: string
  try {
    text = decode(charsetOf(bytes, contentType))
  } catch {
    // The charset does not exist, or the bytes are not in it.
    if (!mustBeText) return undefined
    text = decode('utf-8')
  }
  return mustBeText || !hasControlCharacter(text) ? text : undefined
}

const bytesPerLine = 16

/** Writes bytes as a table of hexadecimal numbers and ASCII. */
export const hexDump = (bytes: Uint8Array): string => {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += bytesPerLine) {
    const line = [...bytes.subarray(at, at + bytesPerLine)]
    const hex = line.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const text = line.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(bytesPerLine * 3)} ${text}`)
  }
  return lines.join('\n')
}

export interface Part {
  headers: [name: string, value: string][]
  body: Uint8Array
}

/** Returns the parts of a multipart body, the last of which may be cut. */
export const partsOf = (bytes: Uint8Array, contentType: string): Part[] => {
  const boundary = /;\s*boundary="?([^";]+)/i.exec(contentType)?.[1]?.trim()
  if (boundary === undefined) return []
  // One character for each byte, so that a position in the text is one in the bytes.
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')
  const delimiter = `--${boundary}`
  const parts: Part[] = []
  for (let start = text.indexOf(delimiter); start >= 0;) {
    const head = start + delimiter.length
    if (text.startsWith('--', head)) break
    const next = text.indexOf(`\r\n${delimiter}`, head)
    const end = next < 0 ? text.length : next
    const blank = text.indexOf('\r\n\r\n', head)
    if (blank < 0) break
    const headers = text
      .slice(head, blank)
      .split('\r\n')
      .filter((line) => line.includes(':'))
      .map((line): [string, string] => [line.slice(0, line.indexOf(':')).trim(), line.slice(line.indexOf(':') + 1).trim()])
    parts.push({ headers, body: bytes.subarray(Math.min(blank + '\r\n\r\n'.length, end), end) })
    start = next < 0 ? -1 : next + '\r\n'.length
  }
  return parts
}
