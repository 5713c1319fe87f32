import { Readable } from 'node:stream'

/**
 * Hands one stream out in bodies of known length, one after the other, none of which ever stands in memory whole.
 * The last one is not ended before the stream has: a stream that fails at its very end spoils the upload instead of completing it.
 */
export const createSlices = (source: Readable) => {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>
  let rest: Buffer = Buffer.alloc(0)
  const more = async () => {
    const { done, value } = await chunks.next()
    rest = done ? Buffer.alloc(0) : value
    return !done
  }
  const toTheEnd = async () => {
    while (await more());
  }
  const bytesOf = async function* (sizeBytes: number, isLast: boolean) {
    if (sizeBytes === 0 && isLast) await toTheEnd()
    for (let left = sizeBytes; left > 0;) {
      if (rest.length === 0 && !(await more())) return
      const piece = rest.subarray(0, left)
      rest = rest.subarray(piece.length)
      left -= piece.length
      if (left === 0 && isLast) await toTheEnd()
      yield piece
    }
  }
  return (sizeBytes: number, isLast: boolean): Readable => Readable.from(bytesOf(sizeBytes, isLast), { objectMode: false })
}
