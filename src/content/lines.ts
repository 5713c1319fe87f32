const lineFeed = 0x0a

/** The lines of a stream, one character a byte, without their line feeds. Of a longer line only its first `maxCharacters` come. */
export async function* readLines(source: AsyncIterable<Buffer>, maxCharacters: number): AsyncGenerator<string, void, undefined> {
  let begun = ''
  const add = (piece: Buffer) => {
    begun += piece.toString('latin1', 0, maxCharacters - begun.length)
  }
  for await (const piece of source) {
    let start = 0
    for (let end = piece.indexOf(lineFeed); end >= 0; end = piece.indexOf(lineFeed, start)) {
      add(piece.subarray(start, end))
      yield begun
      begun = ''
      start = end + 1
    }
    add(piece.subarray(start))
  }
  if (begun !== '') yield begun
}
