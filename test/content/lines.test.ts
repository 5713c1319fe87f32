import { readLines } from '../../src/content/lines.ts'

const linesOf = async (pieces: Buffer[], maxCharacters = 100) => {
  async function* source() {
    yield* pieces
  }
  const lines: string[] = []
  for await (const line of readLines(source(), maxCharacters)) lines.push(line)
  return lines
}

describe('lines', () => {
  it.each([
    ['', []],
    ['a', ['a']],
    ['a\n', ['a']],
    ['a\n\nb', ['a', '', 'b']],
    ['\n', ['']],
    ['a\r\nb\n', ['a\r', 'b']],
  ])('of %j are %j, wherever the stream is cut', async (text, expected) => {
    const bytes = Buffer.from(text)
    for (let at = 0; at <= bytes.length; at += 1) expect(await linesOf([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(expected)
  })

  it('are one character a byte', async () => {
    expect(await linesOf([Buffer.from([0xfc, 0xc3, 0xa4])])).toEqual(['\u00fc\u00c3\u00a4'])
  })

  it('are cut where they are too long, wherever the stream is cut', async () => {
    for (let at = 0; at <= 9; at += 1) {
      const bytes = Buffer.from('123456\n78')
      expect(await linesOf([bytes.subarray(0, at), bytes.subarray(at)], 4)).toEqual(['1234', '78'])
    }
  })
})
