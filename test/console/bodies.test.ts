import { hexDump, kindOf, partsOf, textOf } from '../../console/bytes.ts'
import { pretty } from '../../console/pretty.ts'
import { commandOf, readQuery, valueOf } from '../../console/query-string.ts'

const bytes = (text: string, encoding: BufferEncoding = 'utf8') => new Uint8Array(Buffer.from(text, encoding))

describe('JSON and XML are indented', () => {
  test.each([
    ['{"a":{"n":12345678901234567890,"n":1.00,"e":{},"l":[]},"t":"a, {b}: \\"c\\""}', 'application/json'],
    ['[1,2]', ''],
  ])('JSON keeps every number, repeated key and text: %s', (text, type) => {
    const shown = pretty(text, type)
    expect(shown.split('\n').length).toBeGreaterThan(3)
    expect(shown.replaceAll(/\n */g, '').replaceAll(/: (?=["{[0-9])/g, ':')).toBe(text)
    expect(JSON.parse(shown)).toEqual(JSON.parse(text))
  })

  test('JSON that is cut stays readable', () => {
    expect(pretty('{"a":[1,{"b":"unfini', 'application/json')).toBe('{\n  "a": [\n    1,\n    {\n      "b": "unfini')
  })

  test('XML: elements of one text stay in a line, comments and CDATA stay as they are', () => {
    const text = '<?xml version="1.0"?><a x="1>2"><b>text</b><!-- <c> --><d/><e><![CDATA[<f>]]></e><g></g></a>'
    expect(pretty(text, 'text/xml')).toBe(
      '<?xml version="1.0"?>\n<a x="1>2">\n  <b>text</b>\n  <!-- <c> -->\n  <d/>\n  <e><![CDATA[<f>]]></e>\n  <g></g>\n</a>',
    )
  })

  test('other texts stay as they are', () => {
    for (const [text, type] of [
      ['<p>one<br>two', 'text/html'],
      ['{not: json', 'text/plain'],
      ['a=1&b=2', ''],
    ] as const) {
      expect(pretty(text, type)).toBe(text)
    }
  })

  test.each(['"', '<', '<a "', '{"', '<!--'])('64 KiB of %s take no noticeable time', (piece) => {
    const text = piece.repeat(Math.floor((64 * 1_024) / piece.length))
    for (const type of ['application/json', 'application/xml']) expect(pretty(text, type).length).toBeGreaterThan(0)
  })
})

test('markup that a browser would run is a text', () => {
  expect(['image/svg+xml', 'text/html; charset=utf-8', 'application/xhtml+xml'].map(kindOf)).toEqual(['text', 'text', 'text'])
  expect(['image/png', 'application/pdf', 'multipart/form-data; boundary=x', 'application/octet-stream', ''].map(kindOf)).toEqual([
    'image',
    'pdf',
    'multipart',
    'unknown',
    'unknown',
  ])
})

describe('bytes are text', () => {
  test.each([
    ['in the declared charset', bytes('Größe', 'latin1'), 'text/plain; charset=iso-8859-1'],
    ['in the charset of the XML declaration', bytes('<?xml version="1.0" encoding="ISO-8859-1"?>Größe', 'latin1'), 'text/xml'],
    ['with a byte order mark', bytes('\uFEFFGröße', 'utf16le'), 'text/plain'],
    ['without a type', bytes('Größe'), ''],
    ['that ends inside a character', bytes('Größe €').subarray(0, -1), 'application/octet-stream'],
    ['in a charset that does not exist', bytes('Größe'), 'text/plain; charset=nothing'],
  ])('%s', (_, data, type) => {
    expect(textOf(data, type)).toContain('Größe')
  })

  test('and others are not', () => {
    expect(textOf(bytes('%PDF-1.4 \u0000\u0001'), '')).toBeUndefined()
    expect(textOf(new Uint8Array([0xff, 0xd8, 0xff, 0xe0]), 'application/octet-stream')).toBeUndefined()
  })
})

test('a hex dump shows 16 bytes in a line', () => {
  const lines = hexDump(bytes('%PDF-1.4\n0123456é')).split('\n')
  expect(lines).toEqual([
    '000000  25 50 44 46 2d 31 2e 34 0a 30 31 32 33 34 35 36  %PDF-1.4.0123456',
    `000010  c3 a9${' '.repeat(14 * 3 + 1)} ..`,
  ])
})

test('a multipart body is split into its parts, of which the last may be cut', () => {
  const body = '--B\r\nX-compId: data\r\nContent-Type: text/plain\r\n\r\nfirst\r\n--B\r\nX-compId: note\r\n\r\nsec'
  const parts = partsOf(bytes(body), 'multipart/form-data; boundary="B"')
  expect(parts.map(({ headers }) => headers)).toEqual([
    [
      ['X-compId', 'data'],
      ['Content-Type', 'text/plain'],
    ],
    [['X-compId', 'note']],
  ])
  expect(parts.map((part) => Buffer.from(part.body).toString())).toEqual(['first', 'sec'])
  expect(partsOf(bytes(`${body}ond\r\n--B--\r\n`), 'multipart/form-data; boundary=B')).toHaveLength(2)
  expect(partsOf(bytes(body), 'multipart/form-data')).toEqual([])
})

test('a query string is decoded', () => {
  expect(readQuery('create&pVersion=0047&contRep=Z%201&empty&docId=%ZZ&secKey=[REDACTED]')).toEqual({
    command: 'create',
    parameters: [
      ['pVersion', '0047'],
      ['contRep', 'Z 1'],
      ['empty', ''],
      ['docId', '%ZZ'],
      ['secKey', '[REDACTED]'],
    ],
  })
  const compIdOf = (query: string, codePage?: string) => readQuery(query, codePage).parameters[0]![1]
  expect(compIdOf('get&compId=%90%BF%8B%81%8F%91.pdf', 'shift_jis')).toBe('請求書.pdf')
  expect(compIdOf('get&compId=%B5o%B2%BC.pdf', 'big5')).toBe('發票.pdf')
  expect(compIdOf('get&compId=Pr%C3%BCfung', 'shift_jis')).toBe('Prüfung')
  expect(compIdOf('get&compId=Pr%FCfung')).toBe('Pr%FCfung')
  expect(readQuery('')).toEqual({ command: '', parameters: [] })
  expect(valueOf('get&DOCID=4711', 'docId')).toBe('4711')
  expect(commandOf('/receiver/acme/prod', 'get&docId=1')).toBe('get')
  expect(commandOf('/bridge/acme/prod/rfc/Z_FUNCTION', '')).toBe('Z_FUNCTION')
})
