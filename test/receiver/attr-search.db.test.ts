import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { openSocket, part } from '../support/source-system.ts'

/** Returns the line of an index that defines a field: the name in 40 characters, then the offset and length of the value. */
const field = (name: string, offset: number, length: number) =>
  `0 46 DKEY${name.padEnd(40)}${String(offset).padStart(3)}${String(length).padStart(3)}`

const index = [
  '0 12 DPRLLIST1S0I9MM',
  field('Company code', 0, 4),
  field('Customer', 4, 10),
  field('Name', 14, 12),
  '73 138 DAIN1000LH        Mueller     ',
  '211 120 DAIN2000LH-400    M\u00fcller      ',
  '331 50 DAIN1000AZ        a#b+c       ',
  '0 0 DEPL',
  '',
].join('\n')

const scene = share(await startScene())
const workspace = await scene.workspace()
await workspace.source.createParts('LIST', [part('data', 'x'), part('descr', Buffer.from(index, 'latin1'), 'application/x-alf-descr')])
await workspace.source.create('PLAIN', 'x')

const search = (pattern: string, more = '', docId = 'LIST') =>
  workspace.source.call(`attrSearch&pVersion=0045&contRep=Z1&docId=${docId}&pattern=${pattern}${more}`)

describe('attrSearch', () => {
  test.each([
    ['4+10+LH', '&numResults=9', '2;73;138;211;120;'],
    ['4+10+LH', '', '1;73;138;'],
    ['4+10+lh', '&numResults=9', '2;73;138;211;120;'],
    ['4+10+lh', '&numResults=9&caseSensitive=y', '0;'],
    ['4+10+400', '', '1;211;120;'],
    ['0+4+1000', '&numResults=9', '2;73;138;331;50;'],
    // Only the bytes of the field are searched.
    ['0+4+LH', '', '0;'],
    ['14+12+M%DCLLER', '', '0;'],
    ['14+12+M%fcller', '', '1;211;120;'],
    ['14+12+%23b', '', '1;331;50;'],
    ['14+12+b%2Bc', '', '1;331;50;'],
    ['14+12+b+c', '', '1;331;50;'],
    // Two conditions, whose # a client has encoded.
    ['0+4+1000%234+10+LH', '&numResults=9', '1;73;138;'],
    ['0%2B4%2B1000%234%2B10%2BLH', '&numResults=9', '1;73;138;'],
    ['0+4+2000%234+10+AZ', '', '0;'],
    // The offsets select by the position of the entry in the component data.
    ['4+10+LH', '&numResults=9&fromOffset=74', '1;211;120;'],
    ['4+10+LH', '&numResults=9&toOffset=210', '1;73;138;'],
    ['4+10+LH', '&numResults=9&fromOffset=999&toOffset=0', '2;211;120;73;138;'],
    ['4+10+LH', '&fromOffset=999&toOffset=0', '1;211;120;'],
  ])('for the pattern %s and the parameters %j answers %s', async (pattern, more, expected) => {
    const answer = await search(pattern, more)
    expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'text/plain; charset=us-ascii' } })
    expect(String(answer.body)).toBe(expected)
  })

  test('accepts an unencoded # between two conditions', async () => {
    const { send, untilClosed } = await openSocket(scene.api.port)
    const query = 'attrSearch&pVersion=0045&contRep=Z1&docId=LIST&pattern=0+4+1000#4+10+LH&numResults=9'
    await send(`GET ${workspace.path}?${query} HTTP/1.1\r\nHost: cs\r\nConnection: close\r\n\r\n`)
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n1;73;138;$/)
  })

  test.each(['4+10', 'LH', '4+10+', 'x+10+LH', '-1+10+LH', '1234+10+LH', `4+10+${'x'.repeat(1_025)}`, ''])(
    'answers 400 for the pattern %s',
    async (pattern) => {
      const answer = await search(pattern)
      expect(answer).toMatchObject({ status: 400, headers: { 'x-errordescription': expect.stringMatching(/^invalid_parameter: pattern/) } })
    },
  )

  test('answers 400 if the index does not define the field', async () => {
    for (const pattern of ['0+5+1000', '1+4+1000', '0+4+1000%235+10+LH']) {
      const answer = await search(pattern)
      expect(answer).toMatchObject({ status: 400, headers: { 'x-errordescription': expect.stringMatching(/^invalid_parameter: pattern/) } })
    }
  })

  test('answers 404 if the document has no index or does not exist', async () => {
    expect((await search('0+4+1000', '', 'PLAIN')).headers['x-errordescription']).toMatch(/^component_not_found/)
    expect((await search('0+4+1000', '', 'NOWHERE')).headers['x-errordescription']).toMatch(/^document_not_found/)
  })

  test('reads an index of megabytes, with lines of any length', async () => {
    const lines = Array.from({ length: 60_000 }, (_, number) => `${number * 100} 100 DAIN${String(number).padStart(40)}`)
    const large = [field('Number', 35, 5), 'x'.repeat(3_000_000), ...lines].join('\n')
    await workspace.source.createParts('LARGE', [part('data', 'x'), part('descr', large)])
    expect(String((await search('35+5+59999', '', 'LARGE')).body)).toBe('1;5999900;100;')
    expect(String((await search('35+5+9', '&numResults=2&fromOffset=9999999&toOffset=0', 'LARGE')).body)).toBe('2;5999900;100;5999800;100;')
  })
})
