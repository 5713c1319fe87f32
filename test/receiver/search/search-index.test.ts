import { splitLines } from '../../../src/receiver/search/search-index.ts'

/** Returns the lines of several chunks, and the last line if it has no line feed. */
const linesOf = (chunks: Buffer[], maxCharacters = 100) => {
  const lines: string[] = []
  let rest = ''
  for (const chunk of chunks) {
    const split = splitLines(rest, chunk, maxCharacters)
    lines.push(...split.lines)
    rest = split.rest
  }
  return rest === '' ? lines : [...lines, rest]
}

describe('lines', () => {
  test.each([
    ['', []],
    ['a', ['a']],
    ['a\n', ['a']],
    ['a\n\nb', ['a', '', 'b']],
    ['\n', ['']],
    ['a\r\nb\n', ['a\r', 'b']],
  ])('of %j are %j, wherever the bytes are split', (text, expected) => {
    const bytes = Buffer.from(text)
    for (let at = 0; at <= bytes.length; at += 1) expect(linesOf([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(expected)
  })

  test('have one character per byte', () => {
    expect(linesOf([Buffer.from([0xfc, 0xc3, 0xa4])])).toEqual(['\u00fc\u00c3\u00a4'])
  })

  test('are truncated if they are too long, wherever the bytes are split', () => {
    for (let at = 0; at <= 9; at += 1) {
      const bytes = Buffer.from('123456\n78')
      expect(linesOf([bytes.subarray(0, at), bytes.subarray(at)], 4)).toEqual(['1234', '78'])
    }
  })
})
