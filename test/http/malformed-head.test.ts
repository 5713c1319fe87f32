import { explainMalformed, readMalformedHead } from '../../src/http/malformed-head.ts'

test.each([
  ['GET /a?b=c d HTTP/1.1', 'GET', '/a?b=c d'],
  ['get  /a  HTTP/1.0  ', 'GET', '/a'],
  ['GET /a', 'GET', '/a'],
  ['GET /a HTTP/1.1 HTTP/1.1', 'GET', '/a HTTP/1.1'],
  ['GET /M\u00E4rz', 'GET', '/M%E4rz'],
])('the request line %j is split', (line, method, target) => {
  expect(readMalformedHead(Buffer.from(`${line}\r\nA:  b \u00A0\t\r\n\r\nrest`, 'latin1'), 4)).toEqual({
    method,
    target,
    headers: { a: 'b \u00A0' },
  })
})

test.each(['', '/', 'GET', 'GET  ', '\u0016\u0003\u0001'])('%j is no request line', (line) => {
  expect(readMalformedHead(Buffer.from(`${line}\r\n\r\n`, 'latin1'), 0)).toBeUndefined()
})

// A pattern that reads blanks again from each of them took 8 s for the first of these, in which the process answered no request.
test.each([
  ['blanks in the target', `GET /a${' '.repeat(60_000)}x\r\n\r\n`],
  ['blanks before the version', `GET /a${' '.repeat(60_000)}HTTP/1.1\r\n\r\n`],
  ['blanks in a header', `GET /a HTTP/1.1\r\nA: b${' '.repeat(60_000)}x\r\n\r\n`],
  ['versions', `GET /a${' HTTP/1.1'.repeat(6_500)}x\r\n\r\n`],
  ['tabs after a name', `GET /a HTTP/1.1\r\nA${'\t'.repeat(60_000)}x\r\n\r\n`],
  ['line feeds', `GET /a${'\n'.repeat(60_000)}`],
])('%s of 60 KB take no time', (_, head) => {
  const before = performance.now()
  const bytes = Buffer.from(head)
  readMalformedHead(bytes, bytes.length)
  explainMalformed({ code: 'HPE_INVALID_HEADER_TOKEN' }, bytes, bytes.length)
  expect(performance.now() - before).toBeLessThan(2_000)
})
