/** A range of bytes that a request asks for; both ends are inclusive. */
export interface Range {
  start: number
  end: number
}

/**
 * Reads the header `Range` (RFC 9110, section 14) for a representation of `sizeBytes`.
 * @returns undefined if the whole is to be sent: for no range, several ranges, another unit or malformed text, which a server ignores
 */
export const parseRange = (header: string, sizeBytes: number): Range | 'unsatisfiable' | undefined => {
  const [, first, last] = /^bytes\s*=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i.exec(header) ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  const range =
    first === ''
      ? { start: Math.max(sizeBytes - Number(last), 0), end: sizeBytes - 1 }
      : { start: Number(first), end: last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) }
  if (last !== '' && first !== '' && Number(last) < Number(first)) return undefined
  return range.start <= range.end ? range : 'unsatisfiable'
}
