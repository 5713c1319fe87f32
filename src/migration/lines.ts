/**
 * Splits a file into lines, each with its line feed. The last one may have none.
 * @param maxBytes of a line, without its line feed
 * @param tooLong creates the error of a longer line
 */
export async function* linesOf(
  bytes: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLong: () => Error,
): AsyncGenerator<Buffer, void, undefined> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of bytes) {
    rest = Buffer.concat([rest, chunk])
    let start = 0
    for (let end = rest.indexOf(0x0a); end !== -1; end = rest.indexOf(0x0a, start)) {
      if (end - start > maxBytes) throw tooLong()
      yield rest.subarray(start, end + 1)
      start = end + 1
    }
    rest = rest.subarray(start)
    if (rest.length > maxBytes) throw tooLong()
  }
  if (rest.length > 0) yield rest
}
