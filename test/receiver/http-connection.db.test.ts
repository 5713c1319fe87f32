import { setTimeout as delay } from 'node:timers/promises'
import { receiverLimits } from '../../src/receiver/limits.ts'
import { startApi } from '../support/api.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { openSocket, part } from '../support/source-system.ts'
import { until } from '../support/until.ts'

const variables = { RELAY_DOCUMENT_MAX_BYTES: '2000000' }
const scene = share(await startScene({ variables, limits: { receiver: { lingerTimeoutMs: 10_000 } } }))
const workspace = await scene.workspace()
await workspace.source.create('TAKEN', 'x')

/** Starts another API, which waits for bodies for a short time only. */
const startImpatientApi = () => {
  const limits = { receiver: { idleTimeoutMs: 4_000, minBodyBytes: 100, lingerTimeoutMs: 1_500 } }
  return startApi(scene.db, { variables, keyRing: scene.api.keyRing, limits })
}

const createQuery = (docId: string) => `create&pVersion=0045&contRep=Z1&docId=${docId}&compId=data`
const head = (docId: string, ...headers: string[]) =>
  [`PUT ${workspace.path}?${createQuery(docId)} HTTP/1.1`, 'Host: cs', ...headers, '', ''].join('\r\n')

/** Returns the rows of a document, and contents without an owner. */
const storedRows = async (docId: string): Promise<unknown[]> => [
  ...(await scene.db('documents').where({ doc_id: docId })),
  ...(await scene.db('contents').whereNull('owned_at')),
]

// More than the 1 MiB that the store holds in memory before it inserts bytes.
const storedAfterBytes = 1_200_000

/** Waits until the receiver has stored bytes of that many unfinished requests. */
const untilStoring = (requests = 1) =>
  until(
    'bytes of unfinished requests are stored',
    () => scene.db('contents').whereNull('owned_at'),
    (rows) => rows.length === requests,
  )

const expectNothingStored = async (docId: string) => {
  expect((await workspace.source.info(docId)).status).toBe(404)
  expect(await storedRows(docId)).toEqual([])
}
const untilNothingStored = async (docId: string) => {
  await until(
    `nothing is stored of ${docId}`,
    () => storedRows(docId),
    (rows) => rows.length === 0,
  )
  await expectNothingStored(docId)
}
/** Waits until the received text contains the words. @returns the text */
const untilReceived = (received: () => string, words: string) => until(`"${words}" is received`, received, (text) => text.includes(words))

describe('the query', () => {
  test('can have its parameters in any order and case, unknown ones, and repeated ones, of which the first is used', async () => {
    const created = await workspace.source.call(
      'CREATE&compid=data&DOCID=ORDER&scanPerformed=x&contrep=Z1&docId=OTHER&PVERSION=0047&flag',
      {
        method: 'PUT',
        body: 'x',
      },
    )
    expect(created.status).toBe(201)
    const info = await workspace.source.call('Info&docId=ORDER&contRep=Z1&pVersion=0047')
    expect(info.headers).toMatchObject({ 'x-docid': 'ORDER', 'x-pversion': '0047' })
  })

  test.each([
    ['a+b', 'a+b', 'a+b'],
    ['a%2Bb', 'a+b', 'a+b'],
    ['a%20b.pdf', 'a b.pdf', 'a b.pdf'],
    ['%C3%A4', 'ä', 'Ã¤'],
    ['%E4', 'ä', 'Ã¤'],
    ['%E2%82%AC', '€', 'â\u0082¬'],
    ['50%25', '50%', '50%'],
    ['50%', '50%', '50%'],
    ['a=b#c', 'a=b#c', 'a=b#c'],
  ])('with the compId %s means the component %s', async (raw, compId, header) => {
    const docId = `COMP-${Buffer.from(raw).toString('hex')}`
    const { send, untilClosed } = await openSocket(scene.api.port)
    const query = `create&pVersion=0045&contRep=Z1&docId=${docId}&compId=${raw}`
    await send(`PUT ${workspace.path}?${query} HTTP/1.1\r\nHost: cs\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx`)
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 201/)
    expect(await scene.db('documents').where({ doc_id: docId })).toMatchObject([{ comp_id: compId }])
    const answer = await workspace.source.get(docId, `&compId=${raw.replace('#', '%23')}`)
    expect(answer.headers['x-compid']).toBe(header)
    expect((await workspace.source.info(docId)).body.includes(`X-compId: ${compId}\r\n`)).toBe(true)
  })

  test('is read from a request line in absolute form', async () => {
    const { send, untilClosed } = await openSocket(scene.api.port)
    await send(`GET http://cs.example:1080${workspace.path}?serverInfo HTTP/1.1\r\nHost: cs\r\nConnection: close\r\n\r\n`)
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 200 OK/)
  })
})

describe('a compId in a part', () => {
  test('can be UTF-8 or ISO-8859-1', async () => {
    await workspace.source.createParts('UMLAUTS', [part('ä', 'utf-8')])
    const latin = Buffer.from('--B\r\nX-compId: ä\r\n\r\nlatin\r\n--B--\r\n', 'latin1')
    await workspace.source.call('create&pVersion=0045&contRep=Z1&docId=UMLAUT1', {
      method: 'POST',
      headers: { 'content-type': 'multipart/form-data; boundary="B"' },
      body: latin,
    })
    expect(String((await workspace.source.get('UMLAUTS', '&compId=%C3%A4')).body)).toBe('utf-8')
    expect(String((await workspace.source.get('UMLAUT1', '&compId=%C3%A4')).body)).toBe('latin')
  })
})

describe('a body', () => {
  test('can be sent by HTTP/1.0', async () => {
    const { send, untilClosed } = await openSocket(scene.api.port)
    await send(`PUT ${workspace.path}?${createQuery('HTTP10')} HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello`)
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 201 created\r\n/)
    expect(String((await workspace.source.get('HTTP10')).body)).toBe('hello')
  })

  test('can be chunked', async () => {
    const { send, untilClosed } = await openSocket(scene.api.port)
    await send(head('CHUNKED', 'Transfer-Encoding: chunked', 'Connection: close'))
    await send('3\r\nhel\r\n')
    await send('2\r\nlo\r\n0\r\n\r\n')
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 201 created\r\n/)
    expect(String((await workspace.source.get('CHUNKED')).body)).toBe('hello')
  })

  test('is requested by 100 Continue if the client expects it', async () => {
    const { send, received, untilClosed } = await openSocket(scene.api.port)
    await send(head('EXPECT', 'Content-Length: 5', 'Expect: 100-continue', 'Connection: close'))
    expect(await untilReceived(received, '100 Continue')).toMatch(/^HTTP\/1.1 100 Continue\r\n/)
    await send('hello')
    expect(await untilClosed()).toMatch(/HTTP\/1.1 201 created\r\n/)
  })

  test('without a Content-Length is refused', async () => {
    const { send, untilClosed } = await openSocket(scene.api.port)
    await send(head('LENGTHLESS', 'Connection: close'))
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 400 .*X-ErrorDescription: invalid_parameter: Content-Length is missing/s)
  })

  test('without a Content-Length is also refused by append, since 200 would acknowledge bytes that were never read', async () => {
    await workspace.source.create('ENDLESS', 'x')
    const { send, untilClosed } = await openSocket(scene.api.port)
    await send(`PUT ${workspace.path}?append&pVersion=0045&contRep=Z1&docId=ENDLESS&compId=data HTTP/1.0\r\n\r\n`)
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 400 .*X-ErrorDescription: invalid_parameter: Content-Length is missing/s)
  })

  test('that ends before its Content-Length is not stored', async () => {
    const { send, socket } = await openSocket(scene.api.port)
    await send(head('SHORT', 'Content-Length: 1900000'))
    await send('x'.repeat(storedAfterBytes))
    await untilStoring()
    socket.end()
    await untilNothingStored('SHORT')
    expect((await workspace.source.create('SHORT', 'again')).status).toBe(201)
  })

  test('whose client resets the connection is not stored, by PUT or by POST', async () => {
    const one = await openSocket(scene.api.port)
    await one.send(head('RESET', 'Content-Length: 1900000') + 'x'.repeat(storedAfterBytes))
    const other = await openSocket(scene.api.port)
    await other.send(
      `POST ${workspace.path}?create&pVersion=0045&contRep=Z1&docId=RESETPART HTTP/1.1\r\nHost: cs\r\nContent-Length: 1900000\r\n` +
        `Content-Type: multipart/form-data; boundary=B\r\n\r\n--B\r\nX-compId: a\r\n\r\n${'x'.repeat(500_000)}\r\n--B\r\nX-compId: b\r\n\r\n${'x'.repeat(500_000)}`,
    )
    await untilStoring(2)
    one.socket.resetAndDestroy()
    other.socket.resetAndDestroy()
    await untilNothingStored('RESET')
    await untilNothingStored('RESETPART')
    expect((await workspace.source.create('RESET', 'again')).status).toBe(201)
  })

  test('that stalls or trickles is aborted after the idle timeout', async () => {
    await using impatient = await startImpatientApi()
    const stalled = await openSocket(impatient.port)
    await stalled.send(head('STALLED', 'Content-Length: 1000'))
    await stalled.send('x')
    const trickling = await openSocket(impatient.port)
    await trickling.send(head('TRICKLING', 'Content-Length: 1000'))
    const began = Date.now()
    const timer = setInterval(() => void trickling.send('x'), 100)
    await Promise.all([stalled.untilClosed(), trickling.untilClosed()])
    clearInterval(timer)
    expect(Date.now() - began).toBeGreaterThan(1_000)
    expect(Date.now() - began).toBeLessThan(receiverLimits.idleTimeoutMs)
    await untilNothingStored('STALLED')
    await untilNothingStored('TRICKLING')
  })

  test('that is slow but above the minimum rate is accepted', async () => {
    await using impatient = await startImpatientApi()
    const { send, untilClosed } = await openSocket(impatient.port)
    await send(head('SLOW', 'Content-Length: 600', 'Connection: close'))
    for (let sent = 0; sent < 6; sent += 1) {
      await send('x'.repeat(100))
      await delay(1_000)
    }
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 201/)
  })
})

describe('a refused body', () => {
  test('is answered before it is read if its Content-Length is too large', async () => {
    const { send, received } = await openSocket(scene.api.port)
    await send(head('HUGE', 'Content-Length: 5000000000'))
    expect(await untilReceived(received, 'too_large')).toMatch(/^HTTP\/1.1 400 .*X-ErrorDescription: too_large/s)
  })

  test('that is chunked is answered as soon as it is too large, and not stored', async () => {
    const { send, received } = await openSocket(scene.api.port)
    await send(head('HUGECHUNKS', 'Transfer-Encoding: chunked'))
    for (let sent = 0; sent < 25; sent += 1) await send(`186a0\r\n${'x'.repeat(100_000)}\r\n`)
    expect(await untilReceived(received, 'too_large')).toMatch(/^HTTP\/1.1 400 .*X-ErrorDescription: too_large/s)
    await expectNothingStored('HUGECHUNKS')
  })

  test('is read to its end, so that the client receives the answer, and the connection stays open', async () => {
    const { send, received } = await openSocket(scene.api.port)
    await send(head('TAKEN', 'Content-Length: 1900000'))
    await send('x'.repeat(1_900_000))
    expect(await untilReceived(received, 'document_exists')).toMatch(/^HTTP\/1.1 403 .*document_exists/s)
    await send(`GET ${workspace.path}?serverInfo HTTP/1.1\r\nHost: cs\r\nConnection: close\r\n\r\n`)
    expect(await untilReceived(received, 'serverStatus="running"')).toMatch(/serverStatus="running"/)
  })

  test('does not count as time that the answer took', async () => {
    await using impatient = await startImpatientApi()
    const { send, received } = await openSocket(impatient.port)
    await send(head('ANY', 'Content-Length: 745').replace('contRep=Z1', 'contRep=NONE'))
    const answer = await untilReceived(received, 'repository_not_found')
    await delay(50)
    const restSentAt = Date.now()
    await send('x'.repeat(745))
    const id = /x-relay-request-id: (\w+)/i.exec(answer)![1]
    const captured = await until(
      'the request is captured',
      () => scene.db('captured_requests').where({ id }).first('request_at', 'response_at', 'duration_ms'),
      (row) => row !== undefined,
    )
    expect(captured.response_at.getTime()).toBeLessThan(restSentAt)
    expect(captured.response_at.getTime() - captured.request_at.getTime()).toBe(captured.duration_ms)
  })

  test('is read before the answer if the connection closes afterwards', async () => {
    const { send, untilClosed } = await openSocket(scene.api.port)
    await send(`PUT ${workspace.path}?${createQuery('TAKEN')} HTTP/1.0\r\nContent-Length: 1900000\r\n\r\n`)
    await delay(50)
    await send('x'.repeat(1_900_000))
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 403 .*document_exists/s)
  })

  test('is read for a limited time', async () => {
    await using impatient = await startImpatientApi()
    const { send, untilClosed } = await openSocket(impatient.port)
    await send(head('TAKEN', 'Content-Length: 1900000'))
    const timer = setInterval(() => void send('x'), 50)
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 403/)
    clearInterval(timer)
  })

  test('in parts is also read to its end', async () => {
    const { send, received } = await openSocket(scene.api.port)
    const noName = `--B\r\nContent-Type: text/plain\r\n\r\n${'x'.repeat(1_000_000)}\r\n--B--\r\n`
    await send(
      `POST ${workspace.path}?create&pVersion=0045&contRep=Z1&docId=NONAME HTTP/1.1\r\nHost: cs\r\nContent-Length: ${noName.length}\r\n` +
        `Content-Type: multipart/form-data; boundary=B\r\n\r\n${noName}`,
    )
    expect(await untilReceived(received, 'has no component name')).toMatch(/^HTTP\/1.1 400 .*has no component name/s)
    await send(`GET ${workspace.path}?serverInfo HTTP/1.1\r\nHost: cs\r\nConnection: close\r\n\r\n`)
    expect(await untilReceived(received, 'serverStatus="running"')).toMatch(/serverStatus="running"/)
  })
})
