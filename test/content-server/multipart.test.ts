import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { boundaryOf, readParts } from '../../src/content-server/multipart.ts'
import { multipartBody, part } from '../support/source-system.ts'

const limits = { boundary: 'KoZbnd01', maxParts: 10 }

async function* split(body: Buffer, ...at: number[]) {
  const ends = [...at, body.length]
  for (const [index, end] of ends.entries()) yield body.subarray(index === 0 ? 0 : ends[index - 1]!, end)
}

const readAll = async (body: AsyncIterable<Buffer>) => {
  const parts: { compId: string | undefined; contentType: string | undefined; text: string }[] = []
  for await (const { header, body: bytes } of readParts(body, limits)) {
    parts.push({ compId: header('x-compid'), contentType: header('content-type'), text: String(await buffer(bytes)) })
  }
  return parts
}

const body = multipartBody('KoZbnd01', [
  part('data', '%PDF-\r\n--KoZbnd0', 'application/pdf; version=1.7'),
  part('descr', '0 5 X\n', 'application/x-alf-descr; charset='),
  part('empty', ''),
])
const parts = [
  { compId: 'data', contentType: 'application/pdf; version=1.7', text: '%PDF-\r\n--KoZbnd0' },
  { compId: 'descr', contentType: 'application/x-alf-descr; charset=', text: '0 5 X\n' },
  { compId: 'empty', contentType: 'application/octet-stream', text: '' },
]

describe('the parts of a multipart body', () => {
  test('are the same wherever the network splits the body', async () => {
    expect(await readAll(split(body))).toEqual(parts)
    for (let at = 1; at < body.length; at += 1) expect(await readAll(split(body, at))).toEqual(parts)
  })

  test('are the same if each byte arrives in its own chunk', async () => {
    expect(await readAll(split(body, ...Array.from({ length: body.length - 1 }, (_, index) => index + 1)))).toEqual(parts)
  })

  test('are none in each form of an empty body', async () => {
    for (const text of ['--KoZbnd01\r\n--KoZbnd01--\r\n', '--KoZbnd01\r\n--KoZbnd01--', '--KoZbnd01--\r\n', '\r\n--KoZbnd01--']) {
      for (let at = 0; at < text.length; at += 1) expect(await readAll(split(Buffer.from(text), at))).toEqual([])
    }
  })

  test('can be preceded by a preamble and followed by an epilogue', async () => {
    expect(await readAll(split(Buffer.concat([Buffer.from('preamble\r\n'), body, Buffer.from('epilogue')])))).toEqual(parts)
  })

  describe('whose lines end with LF alone', () => {
    const bare = { line: '\n', afterBody: '\n' }

    test.each<[string, string | Buffer]>([
      [
        'everywhere',
        String(body)
          .replaceAll('\r\n--KoZbnd01', '\n--KoZbnd01')
          .replaceAll(/(?<=KoZbnd01|\n(?:X|C)[^\r]*|\n)\r\n/g, '\n'),
      ],
      ['in the headers', String(body).replaceAll(/(?<=\n(?:X|C)[^\r\n]*)\r\n/g, '\n')],
      ['in the blank lines', String(body).replaceAll('\r\n\r\n', '\r\n\n')],
      ['before the boundaries', String(body).replaceAll('\r\n--KoZbnd01', '\n--KoZbnd01')],
      ['after the boundaries', String(body).replaceAll('KoZbnd01\r\n', 'KoZbnd01\n')],
    ])('%s, are the same wherever the network splits the body', async (_, text) => {
      const bytes = Buffer.from(text)
      for (let at = 0; at < bytes.length; at += 1) expect(await readAll(split(bytes, at))).toEqual(parts)
    })

    test('keep a CR at the end of a body', async () => {
      const bytes = multipartBody('KoZbnd01', [{ headers: { 'X-compId': 'data' }, body: 'x\r' }], bare)
      expect(await readAll(split(bytes))).toMatchObject([{ text: 'x\r' }])
    })

    test('need nothing between the blank line and the next boundary, as an info writes them', async () => {
      const info = ['--KoZbnd01', 'Content-Length: 0', 'X-compId: a', 'X-Content-Length: 7', ''].join('\n')
      expect(await readAll(split(Buffer.from(`${info}\n${info}\n--KoZbnd01--\n`)))).toMatchObject([
        { compId: 'a', text: '' },
        { compId: 'a', text: '' },
      ])
    })

    test('do not end a document that contains the boundary, if its announced size says that it goes on', async () => {
      const text = 'a mail:\n--KoZbnd01\nX-compId: other\n\nx\n--KoZbnd01--\nits end'
      expect(await readAll(split(multipartBody('KoZbnd01', [part('data', text)])))).toMatchObject([{ compId: 'data', text }])
    })
  })

  test('may go on in text that begins like a boundary line', async () => {
    const text = 'a\r\n--KoZbnd012\r\nb\r\n--KoZbnd01 is no boundary\r\n'
    const bytes = multipartBody('KoZbnd01', [part('data', text)])
    for (let at = 0; at < bytes.length; at += 1) expect(await readAll(split(bytes, at))).toMatchObject([{ compId: 'data', text }])
  })

  test('may have blanks behind a boundary, folded headers, and blanks before a colon', async () => {
    const bytes = Buffer.from('--KoZbnd01 \t\r\nX-compId : data\r\nContent-Type: application/pdf;\r\n version=1.7\r\n\r\nx\r\n--KoZbnd01--')
    expect(await readAll(split(bytes))).toEqual([{ compId: 'data', contentType: 'application/pdf; version=1.7', text: 'x' }])
  })

  test.each([
    ['has no last boundary', String(body).replace('--KoZbnd01--', '')],
    ['ends within a part', String(body).slice(0, 120)],
    ['ends within a header', String(body).slice(0, 20)],
    ['has no boundary at all', 'hello'],
    ['is empty', ''],
    ['has a part without a blank line', '--KoZbnd01\r\nX-compId: data\r\n--KoZbnd01--\r\n'],
    ['has a part without headers', '--KoZbnd01\r\nsome text that is no header\r\n--KoZbnd01--\r\n'],
    ['has a part without a blank line among others', `--KoZbnd01\r\nX-compId: a\r\n${String(body)}`],
  ])('are refused if the body %s', async (_, text) => {
    await expect(readAll(split(Buffer.from(text)))).rejects.toMatchObject({ name: 'MultipartError', code: 'malformed' })
  })

  test('are refused above the maximum number of parts, before the rest is read', async () => {
    let sent = 0
    async function* endless() {
      for (;;) {
        sent += 1
        yield Buffer.from(`--KoZbnd01\r\nX-compId: c${sent}\r\n\r\nx\r\n`)
        await delay(1)
        if (sent > 50) throw new Error('hung up')
      }
    }
    await expect(readAll(endless())).rejects.toMatchObject({ code: 'too_many_parts' })
    expect(sent).toBeLessThan(20)
  })

  test('end with the error of an aborted body, within a part and after the last one', async () => {
    for (const end of [100, body.length]) {
      async function* aborted() {
        yield body.subarray(0, end)
        await delay(5)
        throw new Error('hung up')
      }
      await expect(readAll(aborted())).rejects.toThrow('hung up')
    }
  })

  test('are read completely if the boundary arrives when the buffer of a part has just filled', async () => {
    // The body is split before the boundary. The line break at the end of the part fills its buffer of 64 KiB.
    const full = `${'x'.repeat(65_534)}\r\n`
    const twoParts = multipartBody('KoZbnd01', [part('data', full), part('note', 'n')])
    const read: string[] = []
    for await (const { body: bytes } of readParts(split(twoParts, twoParts.indexOf('\r\n--KoZbnd01\r\nX-compId: note')), limits)) {
      await delay(10)
      read.push(String(await buffer(bytes)))
    }
    expect(read).toEqual([full, 'n'])
  })

  test('apply backpressure to the network while they are not read', async () => {
    let sent = 0
    const chunk = Buffer.alloc(64 * 1024, 'x')
    async function* large() {
      yield Buffer.from('--KoZbnd01\r\nX-compId: data\r\n\r\n')
      for (; sent < 1_000; sent += 1) yield chunk
      yield Buffer.from('\r\n--KoZbnd01--\r\n')
    }
    for await (const { body: bytes } of readParts(large(), limits)) {
      await delay(50)
      expect(sent).toBeLessThan(10)
      expect(await buffer(bytes)).toHaveLength(1_000 * chunk.length)
    }
  })
})

describe('the boundary', () => {
  test.each([
    ['multipart/form-data; boundary=KoZbnd01', 'KoZbnd01'],
    ['multipart/form-data; boundary="KoZ bnd;01"', 'KoZ bnd;01'],
    ['Multipart/Mixed; charset=utf-8; Boundary=a=b; x=y', 'a=b'],
    [`multipart/form-data; boundary=${'x'.repeat(200)}`, 'x'.repeat(200)],
  ])('of %s is %s', (contentType, boundary) => {
    expect(boundaryOf(contentType)).toBe(boundary)
  })

  test.each([
    [undefined],
    ['application/pdf'],
    ['multipart/form-data'],
    ['multipart/form-data; boundary='],
    [`multipart/form-data; boundary=${'x'.repeat(201)}`],
    [`multipart/form-data; boundary=${'\xe4'.repeat(150)}`],
    ['multipart/form-data; boundary="B\t1"'],
  ])('is refused in %s', (contentType) => {
    expect(() => boundaryOf(contentType)).toThrow(expect.objectContaining({ code: 'malformed' }))
  })
})
