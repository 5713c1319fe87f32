import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import type { Json } from '../support/client.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const scene = share(await startScene())
const workspace = await scene.workspace()
await workspace.source.create('D1', 'hello')

/** Sends pieces of bytes in packets of their own. @returns the answer */
const send = async (...pieces: (string | Buffer)[]): Promise<string> => {
  const socket = connect(scene.api.port, '127.0.0.1').setNoDelay(true)
  const answer = text(socket)
  for (const piece of pieces) {
    socket.write(piece)
    await delay(20)
  }
  return answer
}

const secKey = 'MIIBsecretSignature'
const query = (compId: string) => `get&pVersion=0046&contRep=Z1&docId=D1&compId=${compId}&secKey=${secKey}`
const get = (compId: string, end = ' HTTP/1.1\r\nHost: relay\r\n\r\n') => `GET ${workspace.path}?${query(compId)}${end}`
const latin1 = (line: string) => Buffer.from(line, 'latin1')

const counted = async (reason: string): Promise<number> => {
  const { values } = await scene.api.malformedMetrics[0]!.get()
  return values.find(({ labels }) => labels['reason'] === reason)!.value
}

describe('a request that is no HTTP', () => {
  test.each<[string, string, string, string | Buffer]>([
    ['a blank in its query', 'blank', 'encode it as %20', get('Mein Bild.pdf')],
    ['several blanks', 'blank', 'encode it as %20', get('Mein  Bild vom Mai.pdf')],
    ['a blank in its path', 'blank', 'encode it as %20', get('data').replace('?get', '/Mein Bild.pdf?get')],
    ['HTTP/1.1 in its query', 'blank', 'encode it as %20', get('about HTTP/1.1')],
    ['an umlaut in UTF-8', 'not_ascii', 'percent-encode', Buffer.from(get('Prüfung.pdf'))],
    ['an umlaut in Latin-1', 'not_ascii', 'percent-encode', latin1(get('Pr\xfcfung.pdf'))],
    ['an umlaut in its path', 'not_ascii', 'percent-encode', latin1(get('data').replace('?get', '/Pr\xfcfung.pdf?get'))],
    ['Chinese characters', 'not_ascii', 'percent-encode', Buffer.from(get('发票.pdf'))],
    ['a tab', 'control_character', 'control character', get('a\tb')],
    ['a NUL', 'control_character', 'control character', get('a\0b')],
    ['another version', 'version', 'another version', get('data', ' HTTP/5.5\r\nHost: relay\r\n\r\n')],
    ['line feeds alone', 'line_feed', 'LF alone', get('data', ' HTTP/1.1\nHost: relay\n\n')],
    ['no Host', 'host', 'Host is missing', get('data', ' HTTP/1.1\r\n\r\n')],
    ['two Hosts', 'host', 'more than once', get('data', ' HTTP/1.1\r\nHost: relay\r\nhost: other\r\n\r\n')],
    ['a Host that is none', 'host', 'no name or address', get('data', ' HTTP/1.1\r\nHost: a b\r\n\r\n')],
    ['a header that is none', 'syntax', 'no HTTP', get('data', ' HTTP/1.1\r\nHost: relay\r\nno header\r\n\r\n')],
    [
      'two lengths',
      'body',
      'length of the body',
      get('data', ' HTTP/1.1\r\nHost: relay\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n'),
    ],
    ['long headers', 'too_large', '65536 bytes', get('data', ` HTTP/1.1\r\nHost: relay\r\nX-Long: ${'x'.repeat(70_000)}\r\n\r\n`)],
    [
      'another expectation',
      'expectation',
      '100-continue',
      get('data', ' HTTP/1.1\r\nHost: relay\r\nExpect: magic\r\nConnection: close\r\n\r\n'),
    ],
  ])('because of %s is answered, counted, logged and captured', async (_, reason, words, request) => {
    const before = await counted(reason)
    const answer = await send(request)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    const [, description = ''] = /\r\nX-ErrorDescription: ([\x20-\x7e]+)\r\n/i.exec(answer) ?? []
    expect(description).toMatch(/^invalid_parameter: /)
    expect(description).toContain(words)
    const [, id = ''] = /\r\nx-relay-request-id: (\w+)\r\n/.exec(answer) ?? []
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ error: { code: 'invalid_parameter', request_id: id } })
    expect(await counted(reason)).toBe(before + 1)
    const lines = scene.api.log.filter((line) => line.includes(id))
    expect(lines.length).toBeGreaterThan(0)
    expect(lines.join('')).not.toContain(secKey)

    const { json } = await until(
      `request ${id} is captured`,
      () => workspace.ask('GET', `/requests/${id}`),
      ({ status }) => status === 200,
    )
    const { attributes } = json.data
    expect(attributes).toMatchObject({ status_code: 400, error_code: 'invalid_parameter', http_method: 'GET' })
    expect(attributes.query_string).toContain('contRep=Z1&docId=D1')
    expect(JSON.stringify(json)).not.toContain(secKey)
  })

  test('is read although its line arrives in several packets', async () => {
    const line = get('Mein Bild.pdf')
    for (const at of [3, 20, line.indexOf(' Bild'), line.indexOf(' Bild') + 1, line.indexOf(' HTTP')]) {
      const answer = await send(line.slice(0, at), line.slice(at))
      expect(answer).toContain('encode it as %20')
      const [, id = ''] = /\r\nx-relay-request-id: (\w+)\r\n/.exec(answer) ?? []
      await until(
        `request ${id} is captured`,
        () => workspace.ask('GET', `/requests/${id}`),
        ({ status }) => status === 200,
      )
    }
  })

  test('is refused after requests that were served on the same connection', async () => {
    const served = `GET ${workspace.path}?get&pVersion=0046&contRep=Z1&docId=D1 HTTP/1.1\r\nHost: relay\r\n\r\n`
    const socket = connect(scene.api.port, '127.0.0.1')
    let received = ''
    socket.on('data', (bytes) => (received += String(bytes)))
    for (let count = 1; count <= 2; count += 1) {
      socket.write(served)
      await until(
        'an answer',
        () => received.split('hello').length - 1,
        (answers) => answers === count,
      )
    }
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(get('Mein Bild.pdf'))
    await closed
    expect(received).toContain('encode it as %20')
    // Each is captured after its answer.
    await until(
      'the refused request is the newest, after those that were served',
      async () => (await workspace.list(3)).slice(0, 3).map((each: Json) => String(each.attributes.query_string).includes('Mein Bild.pdf')),
      (newest) => String(newest) === 'true,false,false',
    )
  })

  test('keeps its bytes, so that a replay reads the name that was meant', async () => {
    for (const [docId, line] of [
      ['UMLAUT', Buffer.from(get('Prüfung.pdf').replace('docId=D1', 'docId=UMLAUT'))],
      ['LATIN', latin1(get('Pr\xfcfung.pdf').replace('docId=D1', 'docId=LATIN'))],
    ] as const) {
      await workspace.source.create(docId, `content of ${docId}`, { compId: encodeURIComponent('Prüfung.pdf') })
      const [, id = ''] = /\r\nx-relay-request-id: (\w+)\r\n/.exec(await send(line)) ?? []
      const { json } = await until(
        'the request can be replayed',
        () => workspace.ask('POST', `/requests/${id}/replay`),
        ({ status }) => status === 202,
      )
      const replayed = await until(
        'the replay is captured',
        () => workspace.ask('GET', `/requests/${json.data.new_request_id}`),
        ({ status }) => status === 200,
      )
      // The signature is invented, and this repository does not verify any.
      expect(replayed.json.data.attributes).toMatchObject({ status_code: 200 })
    }
  })

  test('is answered while the client is still sending its body', async () => {
    const head = `PUT ${workspace.path}?create&pVersion=0046&contRep=Z1&docId=BIG&compId=Mein Bild.pdf HTTP/1.1\r\nHost: relay\r\nContent-Length: 3000000\r\n\r\n`
    const answer = await send(Buffer.concat([Buffer.from(head), Buffer.alloc(1_000_000)]), Buffer.alloc(2_000_000))
    expect(answer).toContain('encode it as %20')
    expect((await workspace.source.info('BIG')).status).toBe(404)
  })

  test('of another surface gets the reason, too', async () => {
    const answer = await send(`GET /api/${workspace.name}/documents?q=a b HTTP/1.1\r\nHost: relay\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).toContain('x-errordescription: invalid_request: the request line contains a blank')
  })

  test('speaks TLS, and is told so', async () => {
    expect(await send(Buffer.from('16030100a5010000a10303', 'hex'))).toContain('the client speaks TLS')
  })

  test('does not put an answer between the bytes of another one', async () => {
    await workspace.source.create('LARGE', Buffer.alloc(5_000_000, 'x'))
    const socket = connect(scene.api.port, '127.0.0.1')
    const served = `GET ${workspace.path}?get&pVersion=0046&contRep=Z1&docId=LARGE HTTP/1.1\r\nHost: relay\r\n\r\n`
    socket.write(served)
    const chunks: Buffer[] = []
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.once('data', (first) => {
      chunks.push(first)
      socket.on('data', (bytes) => chunks.push(bytes))
      socket.write(get('a b'))
    })
    socket.on('error', () => {})
    await closed
    expect(Buffer.concat(chunks).toString('latin1')).not.toContain('encode it as')
  })
})
