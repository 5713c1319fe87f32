import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { part } from '../support/source-system.ts'

const scene = share(await startScene())
const workspace = await scene.workspace()
await workspace.source.createParts('D1', [
  part('data', 'HELLO'),
  part('note', 'aaaaa'),
  part('bytes', Buffer.from([0, 0xc3, 0xa4, 0x2b, 0x25, 0xff, 0x23, 0x20, 0x3b])),
  part('empty', ''),
])

const search = async (more: string, compId = 'data') => {
  const answer = await workspace.source.search('D1', `&compId=${compId}${more}`)
  expect(answer).toMatchObject({
    status: 200,
    headers: { 'content-type': 'text/plain; charset=us-ascii', 'content-length': String(answer.body.length) },
  })
  return String(answer.body)
}

describe('search', () => {
  test.each([
    ['&pattern=lo&numResults=5', '1;3;'],
    ['&pattern=lo&numResults=5&caseSensitive=n', '1;3;'],
    ['&pattern=lo&numResults=5&caseSensitive=y', '0;'],
    ['&pattern=LO&numResults=5&caseSensitive=y', '1;3;'],
    ['&pattern=l&numResults=5', '2;2;3;'],
    ['&fromOffset=4&toOffset=0&pattern=l&numResults=5', '2;3;2;'],
    ['&pattern=l', '1;2;'],
    ['&fromOffset=4&toOffset=0&pattern=l', '1;3;'],
    ['&pattern=l&numResults=0', '0;'],
    ['&pattern=HELLO', '1;0;'],
    ['&pattern=HELLO!', '0;'],
    ['&pattern=l&numResults=5&fromOffset=3', '1;3;'],
    ['&pattern=l&numResults=5&toOffset=2', '1;2;'],
    ['&pattern=l&numResults=5&fromOffset=3&toOffset=2', '2;3;2;'],
    ['&pattern=ll&numResults=5&toOffset=2', '1;2;'],
    ['&pattern=o&fromOffset=4&toOffset=-1', '1;4;'],
    ['&pattern=o&fromOffset=5', '0;'],
    ['&pattern=o&fromOffset=900&toOffset=0', '1;4;'],
    ['&pattern=h&fromOffset=900&toOffset=800', '0;'],
  ])('in HELLO with %s answers %s', async (more, expected) => {
    expect(await search(more)).toBe(expected)
  })

  test('counts overlapping hits, forwards and backwards', async () => {
    expect(await search('&pattern=aa&numResults=9', 'note')).toBe('4;0;1;2;3;')
    expect(await search('&pattern=aa&numResults=3&fromOffset=4&toOffset=0', 'note')).toBe('3;3;2;1;')
  })

  test('searches for bytes, not characters; percent-encoded bytes are decoded and a plus is a plus', async () => {
    const patterns = ['%00', '%C3%A4', '%A4+', '+', '%2B%25', '%ff%23', '%20', '%3b']
    const answers = await Promise.all(patterns.map((pattern) => search(`&pattern=${pattern}`, 'bytes')))
    expect(answers).toEqual(['1;0;', '1;1;', '1;2;', '1;3;', '1;3;', '1;5;', '1;7;', '1;8;'])
    expect(await search('&pattern=%E4', 'bytes')).toBe('0;')
  })

  test('finds nothing in an empty component', async () => {
    expect(await search('&pattern=x', 'empty')).toBe('0;')
    expect(await search('&pattern=x&fromOffset=9&toOffset=0', 'empty')).toBe('0;')
  })

  test('finds hits across the borders of stored chunks, and returns absolute offsets', async () => {
    const large = Buffer.alloc(5 * 1024 * 1024, '.')
    const borders = [256 * 1024, 512 * 1024, 2 * 1024 * 1024, 4 * 1024 * 1024].map((border) => border - 3)
    for (const offset of borders) large.write('Needle', offset)
    await workspace.source.create('LARGE', large)
    const forward = await workspace.source.search('LARGE', '&compId=data&pattern=needle&numResults=9')
    expect(String(forward.body)).toBe(`4;${borders.join(';')};`)
    const backward = await workspace.source.search('LARGE', '&compId=data&pattern=needle&numResults=9&fromOffset=99999999&toOffset=0')
    expect(String(backward.body)).toBe(`4;${borders.toReversed().join(';')};`)
  })

  test('returns no more than 10,000 hits', async () => {
    await workspace.source.create('MANY', 'x'.repeat(10_001))
    const answer = await workspace.source.search('MANY', '&compId=data&pattern=x&numResults=999999')
    expect(String(answer.body).split(';')).toHaveLength(10_002)
    expect(String(answer.body)).toMatch(/^10000;0;1;/)
  })

  test.each([
    ['no pattern', '&compId=data'],
    ['an empty pattern', '&compId=data&pattern='],
    ['a pattern that is too long', `&compId=data&pattern=${'x'.repeat(1_025)}`],
    ['no compId', '&pattern=x'],
    ['caseSensitive=Y', '&compId=data&pattern=x&caseSensitive=Y'],
    ['numResults=-1', '&compId=data&pattern=x&numResults=-1'],
    ['fromOffset=-1', '&compId=data&pattern=x&fromOffset=-1'],
  ])('is answered with 400 for %s', async (_, more) => {
    const answer = await workspace.source.search('D1', more)
    expect(answer).toMatchObject({ status: 400, headers: { 'x-errordescription': expect.stringMatching(/^invalid_parameter: /) } })
  })

  test('answers 404 for an unknown component or document, and 409 if the content is no longer stored', async () => {
    expect((await workspace.source.search('D1', '&compId=other&pattern=x')).status).toBe(404)
    expect((await workspace.source.search('NOWHERE', '&compId=data&pattern=x')).status).toBe(404)
    await workspace.source.create('GONE', 'x')
    await scene.db('documents').where({ doc_id: 'GONE' }).update({ content_id: null })
    expect((await workspace.source.search('GONE', '&compId=data&pattern=x')).status).toBe(409)
  })
})
