const lineFeed = 0x0a

/**
 * Splits bytes into lines, with one character per byte and without line feeds. Longer lines are cut to `maxCharacters`.
 * @param line beginning of the first line, from the bytes before
 * @returns the lines that end in these bytes, and the beginning of the line after them
 */
export const splitLines = (line: string, bytes: Uint8Array, maxCharacters: number): { lines: string[]; rest: string } => {
  const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const lines: string[] = []
  let rest = line
  let start = 0
  const add = (end: number) => {
    rest += chunk.toString('latin1', start, Math.min(end, start + maxCharacters - rest.length))
  }
  for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
    add(end)
    lines.push(rest)
    rest = ''
    start = end + 1
  }
  add(chunk.length)
  return { lines, rest }
}
