import { linesOf } from '../../src/migration/lines.ts'

const tooLong = () => new Error('the line is too long')

async function* piecesOf(pieces: Iterable<string>) {
  for (const piece of pieces) yield Buffer.from(piece)
}

const read = async (...pieces: string[]): Promise<string[]> => {
  const lines: string[] = []
  for await (const line of linesOf(piecesOf(pieces), 4, tooLong)) lines.push(String(line))
  return lines
}

describe('the lines of a file', () => {
  test('have their line feeds, whatever the pieces are', async () => {
    expect(await read('ab\n\ncd', 'ef', '\ng')).toEqual(['ab\n', '\n', 'cdef\n', 'g'])
    expect(await read('ab\n')).toEqual(['ab\n'])
    expect(await read()).toEqual([])
  })

  test('are no longer than the limit, also if they arrive in one piece', async () => {
    await expect(read('abcde\n')).rejects.toThrow('the line is too long')
    await expect(read('ab', 'cde', '\n')).rejects.toThrow('the line is too long')
  })

  test('of a file without line feeds are not read to its end', async () => {
    const pieces = Array.from({ length: 100 }, () => 'ab')[Symbol.iterator]()
    await expect(linesOf(piecesOf(pieces), 4, tooLong).next()).rejects.toThrow('the line is too long')
    expect([...pieces]).toHaveLength(97)
  })
})
