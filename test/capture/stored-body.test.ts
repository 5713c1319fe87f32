import { createHash, randomBytes } from 'node:crypto'
import { bytesPiece, contentIdsOf, splitMultipart, type Piece } from '../../src/capture/stored-body.ts'
import { multipartBody, part } from '../support/source-system.ts'

const contentOf = (id: string, data: Buffer) => ({ id, sizeBytes: data.length, sha256: createHash('sha256').update(data).digest() })
const [one, two, none] = [randomBytes(500), Buffer.from('\r\n\r\n--B\r\n\r\n'), Buffer.alloc(0)]
const contents = { one: contentOf('ONE', one), two: contentOf('TWO', two), none: contentOf('NONE', none) }
const dataOf: Record<string, Buffer> = { ONE: one, TWO: two }

const joined = (pieces: Piece[]): Buffer =>
  Buffer.concat(pieces.map((piece) => ('data' in piece ? Buffer.from(piece.data, 'base64') : dataOf[piece.contentId]!)))

describe('a multipart body', () => {
  const body = multipartBody('BOUNDARY', [part('a', one), part('b', none), part('c', two)])

  test('is described by its contents and the bytes around them', () => {
    const pieces = splitMultipart(body, [contents.one, contents.none, contents.two])!
    expect(joined(pieces)).toEqual(body)
    expect(contentIdsOf(pieces)).toEqual(['ONE', 'TWO'])
    expect(pieces).toHaveLength(5)
    expect(pieces.at(-1)).toEqual(bytesPiece(Buffer.from('\r\n--BOUNDARY--\r\n')))
  })

  test('without components is described by its bytes', () => {
    expect(splitMultipart(Buffer.from('--B\r\n--B--\r\n'), [])).toEqual([bytesPiece(Buffer.from('--B\r\n--B--\r\n'))])
  })

  test.each([
    ['has other contents', body, [contents.two]],
    ['has them in another order', body, [contents.two, contents.none, contents.one]],
    ['ends before the last of them', body.subarray(0, body.length - 40), [contents.one, contents.none, contents.two]],
    ['has no header', Buffer.from('--B--'), [contents.none]],
  ])('is not described by contents if it %s', (_, bytes, expected) => {
    expect(splitMultipart(bytes, expected)).toBeUndefined()
  })
})
