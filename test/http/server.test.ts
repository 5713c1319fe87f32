import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Middleware } from 'koa'
import { pino } from 'pino'
import { createLog } from '../../src/base/log.ts'
import { refuseUnknown } from '../../src/http/errors.ts'
import { createConnectionLimit, startHttpServer } from '../../src/http/server.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { disposable } from '../support/disposable.ts'
import { testConfig } from '../support/factories.ts'
import { logsTo } from '../support/logs.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const KiB = 1024

const serve: Middleware = (ctx) => {
  ctx.body = 'served'
}

const start = (middlewares: Middleware[], variables: Record<string, string> = {}, log = createLog('silent')) => {
  const config = testConfig({ RELAY_SHUTDOWN_GRACE_MS: '100', ...variables })
  return startHttpServer(middlewares, 'RELAY_PORT', config, log, createConnectionLimit(config))
}

const server = share(disposable(await start([serve]), (each) => each.close()))

const send = async (head: string, { port } = server): Promise<string> => {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.end(head)
  return text(socket)
}

test('a request to an unknown path is answered with 404 in the common error envelope, for every method', async () => {
  const empty = await start([refuseUnknown(logsTo())])
  for (const method of ['GET', 'POST', 'OPTIONS']) {
    const answer = await fetch(`http://127.0.0.1:${empty.port}/nowhere`, { method })
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ error: { code: 'not_found', request_id: answer.headers.get('x-relay-request-id') } })
  }
  await empty.close()
})

test.each([
  ['Host: a\r\nHost: a', 400],
  ['Host: a\r\nX: b\r\nhOST: b', 400],
  ['Host: a b', 400],
  ['Host: a/b', 400],
  ['Host: a@b', 400],
  ['Host: a, b', 400],
  ['Host: a:b', 400],
  ['Host: [::1', 400],
  ['X: a', 400],
  ['Host: relay', 200],
  ['Host: relay.example:8080', 200],
  ['Host: my_relay', 200],
  ['Host: [::1]:8080', 200],
  ['Host:', 200],
])('a request for more hosts than one, or for none that can be read, is refused: %j %d', async (headers, status) => {
  expect((await send(`GET / HTTP/1.1\r\n${headers}\r\nConnection: close\r\n\r\n`)).slice(9, 12)).toBe(String(status))
})

test('a client that waits for 100 gets it before the answer, and behind another answer only the answer', async () => {
  const slow = await start([
    async (ctx) => {
      if (ctx.path === '/slow') await new Promise((resolve) => setTimeout(resolve, 50))
      // As the answer of docGet: a stream, whose header Node writes on its own.
      ctx.body = Readable.from([Buffer.from('bytes')], { objectMode: false })
      ctx.length = 5
    },
  ])
  const put = 'PUT /put HTTP/1.1\r\nHost: relay\r\nContent-Length: 1\r\nExpect: 100-continue\r\nConnection: close\r\n\r\nx'
  const get = 'GET /slow HTTP/1.1\r\nHost: relay\r\n\r\n'
  /** Sends bytes, and keeps its side of the connection open. @returns the status and the body of each answer */
  const answersTo = async (bytes: string) => {
    const socket = connect(slow.port, '127.0.0.1')
    socket.write(bytes)
    return (await text(socket)).split(/(?=HTTP\/1\.1 )/).map((part) => [part.slice(9, 12), part.split('\r\n\r\n')[1]])
  }
  expect(await answersTo(put)).toEqual([
    ['100', ''],
    ['200', 'bytes'],
  ])
  expect(await answersTo(get + put)).toEqual([
    ['200', 'bytes'],
    ['200', 'bytes'],
  ])
  await slow.close()
})

test('an idle connection is kept longer than nginx and the load balancers of AWS keep theirs by default', async () => {
  expect((await fetch(`http://127.0.0.1:${server.port}/`)).headers.get('keep-alive')).toBe('timeout=75')
})

test('while it drains, the server accepts connections and ends each with its answer; then it accepts no more', async () => {
  const draining = await start([serve], { RELAY_DRAIN_MS: '300', RELAY_PORT: String(await findFreePort()) })
  const ask = () => fetch(`http://127.0.0.1:${draining.port}/`)
  expect((await ask()).headers.get('connection')).toBe('keep-alive')
  let isDrained = false
  const drained = draining.drain().then(() => (isDrained = true))
  const answer = await ask()
  expect({ status: answer.status, connection: answer.headers.get('connection') }).toEqual({ status: 200, connection: 'close' })
  expect(isDrained).toBe(false)
  await drained
  await draining.close()
  await expect(ask()).rejects.toThrow('fetch failed')
})

describe('the HTTP server', () => {
  test('accepts a request line and headers of up to 64 KiB, because signed URLs are long', async () => {
    const head = `GET /?secKey=${'A'.repeat(40 * KiB)} HTTP/1.1\r\nHost: x\r\nX-Long: ${'b'.repeat(20 * KiB)}\r\nConnection: close\r\n\r\n`
    expect(await send(head)).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  })

  test('refuses longer headers and keeps serving', async () => {
    expect(await send(`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'b'.repeat(70 * KiB)}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431 /)
    expect(await send('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(/served$/)
  })

  test('answers 400 to bytes that are not HTTP', async () => {
    expect(await send('\u0000\u0001 nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
  })

  test.each([
    ['a length and chunks', 'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n'],
    ['two lengths', 'Content-Length: 4\r\nContent-Length: 5\r\n'],
    ['a space before the colon', 'Transfer-Encoding : chunked\r\n'],
    ['an unknown encoding', 'Transfer-Encoding: xchunked\r\n'],
    ['a negative length', 'Content-Length: -1\r\n'],
    ['a signed length', 'Content-Length: +4\r\n'],
    ['a folded header', 'X-A: b\r\n c\r\n'],
    ['a bare line feed', 'X-A: b\nX-B: c\r\n'],
    ['a bare carriage return', 'X-A: b\rX-B: c\r\n'],
  ])('answers 400 to %s, by which a proxy and the relay could disagree about the end of a request', async (_, header) => {
    const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
    const answers = await send(`POST / HTTP/1.1\r\nHost: x\r\n${header}\r\n0\r\n\r\n${smuggled}`)
    expect(answers).toMatch(/^HTTP\/1\.1 400 /)
    expect(answers.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  })

  test.each([
    ['in HTTP/1.0', '1.0', '0\r\n\r\n'],
    ['with a line feed in an extension', '1.1', '0;a=\nb\r\n\r\n'],
    ['with a signed length', '1.1', '+0\r\n\r\n'],
    ['whose length ends with a line feed', '1.1', '1\nx\r\n0\r\n\r\n'],
  ])('does not take what follows chunks %s for the next request', async (_, version, chunks) => {
    const answersTo = async (protocol: string, body: string) => {
      const next = 'GET /next HTTP/1.1\r\nHost: x\r\n\r\n'
      const answers = await send(`POST / HTTP/${protocol}\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${body}${next}`)
      return answers.match(/HTTP\/1\.1 \d+/g)?.filter((line) => line.endsWith(' 200')).length ?? 0
    }
    expect(await answersTo('1.1', '0\r\n\r\n')).toBe(2)
    expect(await answersTo(version, chunks)).toBeLessThanOrEqual(1)
  })

  test('answers 400 to a request without a host', async () => {
    expect(await send('GET / HTTP/1.1\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
  })

  test('forbids browsers to guess a content type, and to load anything from an answer', async () => {
    const answered = await fetch(`http://127.0.0.1:${server.port}/`)
    expect(answered.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answered.headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'")
  })

  const brokenOff = 'a client broke off its request'

  test.each([
    ['broken off', 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf', brokenOff],
    ['chunked and broken off', 'PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe', brokenOff],
    [
      'chunked and malformed',
      'PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nnonsense\r\n',
      'malformed request',
    ],
  ])('logs an upload that is %s without an error', async (_, request, msg) => {
    const lines: { level: number; msg: string; err?: unknown }[] = []
    const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const reading = await start([async (ctx) => void (await text(ctx.req))], {}, log)
    const socket = connect(reading.port, '127.0.0.1').on('error', () => {})
    await once(socket, 'connect')
    socket.end(request)
    const [line] = await until(
      'a line is logged',
      () => lines,
      (logged) => logged.length > 0,
    )
    expect(line).toMatchObject({ level: pino.levels.values['debug'], msg })
    expect(line).not.toHaveProperty('err')
    await reading.close()
  })
})

test.each([
  ['false', /127\.0\.0\.1$/],
  ['true', /^192\.0\.2\.7$/],
])('with RELAY_TRUST_PROXY=%s, a client that names other addresses has the address %s', async (trust, address) => {
  const showing = await start([(ctx) => void (ctx.body = ctx.ip)], { RELAY_TRUST_PROXY: trust })
  // The proxy adds the last one.
  const headers = { 'x-forwarded-for': '10.1.1.1, 192.0.2.7', forwarded: 'for=10.1.1.1', 'x-real-ip': '10.1.1.1' }
  expect(await (await fetch(`http://127.0.0.1:${showing.port}/`, { headers })).text()).toMatch(address)
  await showing.close()
})

describe('the limit of connections', () => {
  const open = async (port: number) => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    await once(socket, 'connect')
    return { socket, closed }
  }
  const request = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const isServed = async (port: number) => {
    const { socket, closed } = await open(port)
    let received = ''
    socket.on('data', (data) => (received += String(data)))
    socket.write(request)
    await closed
    return received.endsWith('served')
  }

  test.each([
    ['from one address', { RELAY_HTTP_MAX_CONNECTIONS_PER_ADDRESS: '2' }],
    ['in all', { RELAY_HTTP_MAX_CONNECTIONS: '2' }],
  ])('closes further connections %s, until one has ended', async (_, limit) => {
    const limited = await start([serve], limit)
    const [first] = [await open(limited.port), await open(limited.port)]
    expect(await isServed(limited.port)).toBe(false)
    first.socket.destroy()
    await until(
      'another connection is served',
      () => isServed(limited.port),
      (served) => served,
    )
    await limited.close()
  })

  test.each(['false', 'true'])('closes a connection that does not wait for answers, with RELAY_TRUST_PROXY=%s', async (trust) => {
    let served = 0
    const waiting: Middleware = async (ctx) => {
      served += 1
      if (ctx.path === '/wait') await new Promise(() => {})
      ctx.body = 'served'
    }
    const limited = await start([waiting], { RELAY_TRUST_PROXY: trust })
    const { socket, closed } = await open(limited.port)
    socket.write('GET /wait HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(10_000))
    await closed
    expect(served).toBe(16)
    expect(await isServed(limited.port)).toBe(true)
    await limited.close()
  })

  test.each([
    ['before', true],
    ['while others are sent before it', false],
  ])('ends the stream of an answer whose connection was closed %s, and logs no error', async (_, isLate) => {
    const lines: string[] = []
    const streams: Readable[] = []
    const gate = Promise.withResolvers<void>()
    if (!isLate) gate.resolve()
    const streaming: Middleware = async (ctx) => {
      if (ctx.path === '/now') return void (ctx.body = 'served')
      if (ctx.path === '/wait') await new Promise(() => {})
      await gate.promise
      // A body without an end.
      const stream = new Readable({ read: () => {} })
      streams.push(stream)
      return void (ctx.body = stream)
    }
    const limited = await start([streaming], {}, logsTo(lines).log)
    const { socket, closed } = await open(limited.port)
    const one = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
    socket.write(one.replace('/', '/wait') + one.repeat(15))
    // The last one is parsed before the answer to the next client.
    if (!isLate) await until('the answers have begun', () => streams.length === 15)
    else await until('the requests are parsed', async () => (await fetch(`http://127.0.0.1:${limited.port}/now`)).ok)
    socket.destroy()
    await closed
    expect((await fetch(`http://127.0.0.1:${limited.port}/now`)).status).toBe(200)
    gate.resolve()
    await until('all streams have ended', () => streams.length === 15 && streams.every(({ destroyed }) => destroyed))
    expect(lines.filter((line) => !line.includes('a client broke off its request'))).toEqual([])
    await limited.close()
  })

  test('serves a client that sends a few requests without waiting for answers', async () => {
    const limited = await start([serve])
    const { socket, closed } = await open(limited.port)
    let received = ''
    socket.on('data', (data) => (received += String(data)))
    for (let round = 1; round <= 3; round += 1) {
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(16))
      await until('all are answered', () => received.split('served').length === 16 * round + 1)
    }
    expect(received.match(/HTTP\/1.1 200/g)).toHaveLength(48)
    socket.end()
    await closed
    await limited.close()
  })

  test('answers 503 to more running requests than an address may have, over any number of connections', async () => {
    const waiting: Middleware = (ctx) => (ctx.path === '/wait' ? new Promise(() => {}) : void (ctx.body = 'served'))
    const limited = await start([waiting], { RELAY_HTTP_MAX_CONNECTIONS_PER_ADDRESS: '20' })
    for (let index = 0; index < 2; index += 1) {
      const { socket } = await open(limited.port)
      socket.write('GET /wait HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(10))
    }
    const ask = async () => (await fetch(`http://127.0.0.1:${limited.port}/`)).status
    await until('the address has too many', ask, (status) => status === 503)
    expect(await ask()).toBe(503)
    await limited.close()
  })

  test('counts the running requests of each client behind a proxy, and answers 503 to further ones', async () => {
    const gate = Promise.withResolvers<void>()
    let running = 0
    const waiting: Middleware = async (ctx) => {
      running += 1
      if (ctx.path === '/wait') await gate.promise
      ctx.body = 'served'
    }
    const limited = await start([waiting], { RELAY_TRUST_PROXY: 'true', RELAY_HTTP_MAX_CONNECTIONS_PER_ADDRESS: '2' })
    const call = (client: string, path: string) =>
      fetch(`http://127.0.0.1:${limited.port}${path}`, { headers: { 'x-forwarded-for': `10.9.9.9, ${client}` } })
    const first = [call('192.0.2.1', '/wait'), call('192.0.2.1', '/wait')]
    await until(
      'both requests run',
      () => running,
      (count) => count === 2,
    )
    const refused = await call('192.0.2.1', '/')
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(refused.headers.get('x-errordescription')).toMatch(/^unavailable: /)
    expect(await refused.json()).toMatchObject({ error: { code: 'unavailable', request_id: refused.headers.get('x-relay-request-id') } })
    expect((await call('192.0.2.2', '/')).status).toBe(200)
    gate.resolve()
    for (const answered of await Promise.all(first)) expect(await answered.text()).toBe('served')
    await until(
      'the client is served again',
      async () => (await call('192.0.2.1', '/')).status,
      (status) => status === 200,
    )
    await limited.close()
  })
})
