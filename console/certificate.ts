// What an operator compares and checks before a certificate is activated. Pure, so that it can be tested without a browser.

const dayMs = 86_400_000
/** Days before the end of its validity from which a certificate needs attention, as in the notifications of the relay. */
export const expiringDays = 30

/** Returns the whole days until a time; negative if it has passed. @param nowMs milliseconds since 1970 */
export const daysUntil = (iso: string, nowMs: number): number => Math.floor((Date.parse(iso) - nowMs) / dayMs)

const bytesPerLine = 8

/** Returns a fingerprint as STRUST writes it, in lines of eight bytes: `9C:B9:2E:54:81:5E:08:F1`. */
export const fingerprintLines = (hex: string): string[] => {
  const bytes = hex.toUpperCase().match(/../g) ?? []
  return Array.from({ length: Math.ceil(bytes.length / bytesPerLine) }, (_, line) =>
    bytes.slice(line * bytesPerLine, (line + 1) * bytesPerLine).join(':'),
  )
}

const digitsOf = { md5: 32, sha1: 40, sha256: 64 }

export type Comparison = 'empty' | 'incomplete' | 'md5' | 'equal' | 'different'

/**
 * Compares a fingerprint of the source system with those of a certificate. Colons, blanks and the case do not matter.
 * @returns `md5` for a fingerprint that cannot be compared
 */
export const compareFingerprint = (text: string, { sha1, sha256 }: { sha1: string; sha256: string }): Comparison => {
  const hex = text.replaceAll(/[\s:.-]/g, '').toLowerCase()
  if (hex === '') return 'empty'
  if (hex === sha1 || hex === sha256) return 'equal'
  if (!/^[0-9a-f]+$/.test(hex)) return 'incomplete'
  if (hex.length === digitsOf.sha1 || hex.length === digitsOf.sha256) return 'different'
  return hex.length === digitsOf.md5 ? 'md5' : 'incomplete'
}

const chunkBytes = 32_768

/** Returns a certificate file as the API takes it: PEM as it is, anything else in base64. */
export const certificateText = (file: Uint8Array): string => {
  const text = new TextDecoder().decode(file)
  if (/^\s*-----BEGIN /.test(text) || /^[\sA-Za-z0-9+/=]+$/.test(text)) return text
  let binary = ''
  for (let start = 0; start < file.length; start += chunkBytes) binary += String.fromCharCode(...file.subarray(start, start + chunkBytes))
  return btoa(binary)
}
