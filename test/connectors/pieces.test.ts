import { buffer } from 'node:stream/consumers'
import { sendPieces, type Piece } from '../../src/connectors/pieces.ts'
import { dying, failure, largeParcel, parcelOf } from './parcels.ts'

const bytes = Buffer.from('0123456789')
const limits = { pieceBytes: 4, signal: new AbortController().signal, onProgress: () => {} }
const said = async ({ body }: Piece) => (await buffer(body)).toString()

test('a document goes in pieces of the size asked for', async () => {
  const pieces: string[] = []
  const done = await sendPieces(parcelOf(bytes), limits, async (piece) => {
    pieces.push(await said(piece))
    return piece.isLast ? { done: 'whole' } : { nextByte: piece.end }
  })
  expect(done).toBe('whole')
  expect(pieces).toEqual(['0123', '4567', '89'])
})

test('an empty one is a single piece without bytes', async () => {
  const pieces: string[] = []
  await sendPieces(parcelOf(Buffer.alloc(0)), limits, async (piece) => {
    pieces.push(await said(piece))
    return { done: piece.isLast }
  })
  expect(pieces).toEqual([''])
})

test('what the service did not keep is sent again', async () => {
  const pieces: string[] = []
  const progress: number[] = []
  await sendPieces(parcelOf(bytes), { ...limits, startByte: 2, onProgress: (sent) => progress.push(sent) }, async (piece) => {
    pieces.push(await said(piece))
    if (piece.isLast) return { done: true }
    return { nextByte: pieces.length === 1 ? 3 : piece.end }
  })
  expect(pieces).toEqual(['2345', '3456', '789'])
  expect(progress.at(-1)).toBe(10)
})

test.each([[undefined], [0], [4], [9], [10]])('a service that says it is at %s after bytes 4 to 8 is out of step', async (nextByte) => {
  const sending = sendPieces(parcelOf(bytes), limits, async (piece) => {
    await said(piece)
    return { nextByte: piece.start === 0 ? 4 : nextByte }
  })
  expect(await failure(sending)).toMatchObject({ code: 'upload_out_of_step', permanent: false })
})

test('a source that turns out too long spoils the last piece', async () => {
  const parcel = { ...largeParcel(200_000), sizeBytes: 65_536 }
  const sending = sendPieces(parcel, { ...limits, pieceBytes: 40_000 }, async (piece) => {
    await said(piece)
    return piece.isLast ? { done: true } : { nextByte: piece.end }
  })
  expect(await failure(sending)).toMatchObject({ code: 'content_unreadable' })
})

test('a source that dies spoils the piece it dies in', async () => {
  const sending = sendPieces(dying(largeParcel(300_000), 100_000), { ...limits, pieceBytes: 40_000 }, async (piece) => {
    await said(piece)
    return piece.isLast ? { done: true } : { nextByte: piece.end }
  })
  expect(await failure(sending)).toMatchObject({ code: 'content_unreadable' })
})
