import { Readable } from 'node:stream'
import { DeliveryError, type AttemptContext, type Parcel } from './connector.ts'
import { metered } from './metered.ts'

/** A part of a document on its way, as the body of one request. */
export interface Piece {
  start: number
  /** The byte after its last one. */
  end: number
  /** Nothing comes after it. */
  isLast: boolean
  /** Exactly `end - start` bytes. */
  body: Readable
}

/** What came of a piece: the document is whole, or the service wants to go on from here. */
export type PieceOutcome<Done> = { done: Done } | { nextByte: number | undefined }

/**
 * Sends a document in pieces, one request after the other, none of which ever stands in memory whole. Goes on from where the service
 * says it is, as a service may keep less than it was sent.
 * @param pieceBytes of every piece but the last
 */
export const sendPieces = async <Done>(
  parcel: Parcel,
  {
    startByte = 0,
    pieceBytes,
    signal,
    onProgress,
  }: { startByte?: number; pieceBytes: number } & Pick<AttemptContext, 'signal' | 'onProgress'>,
  send: (piece: Piece) => Promise<PieceOutcome<Done>>,
): Promise<Done> => {
  const openFrom = (first: number) =>
    metered(parcel.open(first), { sizeBytes: parcel.sizeBytes - first, signal, onBytes: (bytes) => onProgress(first + bytes) })
  let source = openFrom(startByte)
  try {
    let slice = createSlices(source)
    for (let start = startByte; ;) {
      const end = Math.min(start + pieceBytes, parcel.sizeBytes)
      const isLast = end === parcel.sizeBytes
      const outcome = await send({ start, end, isLast, body: slice(end - start, isLast) })
      if ('done' in outcome) return outcome.done
      const { nextByte = -1 } = outcome
      if (nextByte <= start || nextByte > end || nextByte === parcel.sizeBytes) throw outOfStep()
      if (nextByte < end) {
        source.destroy()
        source = openFrom(nextByte)
        slice = createSlices(source)
      }
      start = nextByte
    }
  } finally {
    source.destroy()
  }
}

export const outOfStep = () =>
  new DeliveryError('upload_out_of_step', 'the service has other parts of the document than were sent: the upload begins anew')

/**
 * Bodies of known length from one stream. The last one is not ended before the stream has: a stream that fails at its very end spoils
 * the upload instead of completing it.
 */
const createSlices = (source: Readable) => {
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
