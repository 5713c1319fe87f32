import { once } from 'node:events'
import http from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { request } from 'undici'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { disposable } from '../support/disposable.ts'
import { cutHeads, oddHeads } from '../support/odd-heads.ts'
import { share } from '../support/share.ts'

const outbound = share(disposable(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }), (each) => each.close()))

/** Starts a server that answers the n-th request of each connection with these bytes, and counts. */
const start = async (answer: (socket: Socket) => void) => {
  const counts = { connections: 0, requests: 0 }
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    counts.connections += 1
    sockets.add(socket.on('error', () => {}))
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      if (!text.endsWith('the document')) return
      text = ''
      counts.requests += 1
      answer(socket)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const stop = async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  }
  return { counts, origin, [Symbol.asyncDispose]: stop }
}

const send = (origin: string, headersTimeout = 60_000) =>
  request(origin, {
    method: 'POST',
    body: 'the document',
    dispatcher: outbound.dispatcher({ connectTimeoutMs: 60_000 }),
    headersTimeout,
    bodyTimeout: 60_000,
  })

const head = (status = 201) => `HTTP/1.1 ${status} Said\r\nContent-Length: 8\r\nX-Kept: yes\r\n\r\n`
const latin1 = (text: string) => Buffer.from(text, 'latin1')

describe('an answer', () => {
  test.each(Object.entries(oddHeads))('with %s is read, and the request is sent once', async (_, change) => {
    await using server = await start((socket) => void socket.write(latin1(`${change(head())}accepted`)))
    for (const number of [1, 2]) {
      const { statusCode, headers, body } = await send(server.origin)
      expect([statusCode, headers['x-kept'], await body.text()]).toEqual([201, 'yes', 'accepted'])
      expect(server.counts.requests).toBe(number)
    }
  })

  test('is read by clients that use the agents, too', async () => {
    for (const change of Object.values(oddHeads)) {
      await using server = await start((socket) => void socket.write(latin1(`${change(head())}accepted`)))
      const agent = outbound.agents({ connectTimeoutMs: 60_000 }).http
      const asked = http.request(server.origin, { method: 'POST', agent }).end('the document')
      const [answer] = (await once(asked, 'response')) as [http.IncomingMessage]
      expect([answer.statusCode, answer.headers['x-kept'], await buffer(answer)]).toEqual([201, 'yes', Buffer.from('accepted')])
    }
  })

  test('keeps its body, which may look like a head', async () => {
    const text = 'a\nB : c\r\nD: e\n\nF : g\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n'
    await using server = await start((socket) => {
      for (const change of ['a blank before a colon', 'a 100 Continue whose lines end with LF']) {
        if (server.counts.requests % 2 === (change.startsWith('a blank') ? 1 : 0)) {
          socket.write(latin1(`${oddHeads[change]!(head().replace('8', String(text.length)))}${text}`))
        }
      }
    })
    for (let sent = 0; sent < 2; sent += 1) expect(await (await send(server.origin)).body.text()).toBe(text)
  })

  test('that arrives byte by byte is read', async () => {
    const bytes = latin1(
      `${oddHeads['a 100 Continue that nobody asked for']!(oddHeads['a header that is folded with a tab']!(head()))}accepted`,
    )
    await using server = await start((socket) => {
      socket.setNoDelay()
      let at = 0
      const next = () => {
        if (at < bytes.length) socket.write(bytes.subarray(at, ++at), () => setImmediate(next))
      }
      next()
    })
    const { statusCode, headers, body } = await send(server.origin)
    expect([statusCode, headers['x-folded'], await body.text()]).toEqual([201, expect.stringMatching(/^a\s+b$/), 'accepted'])
  })

  test('keeps its connection open only if its head follows the rules', async () => {
    const connectionsOf = async (change: (text: string) => string) => {
      await using server = await start((socket) => void socket.write(latin1(`${change(head())}accepted`)))
      for (let sent = 0; sent < 3; sent += 1) await (await send(server.origin)).body.text()
      return server.counts.connections
    }
    const found: Record<string, number> = { plain: await connectionsOf((text) => text) }
    for (const [name, change] of Object.entries(oddHeads)) found[name] = await connectionsOf(change)
    const kept = Object.keys(found).filter((name) => found[name] === 1)
    expect(kept).toEqual([
      'plain',
      'a 100 Continue that nobody asked for',
      'a 100 Continue with a header',
      'three 100 Continue',
      'a 102 Processing',
      'a 103 Early Hints',
      'a 199 without a reason',
      'bytes above 127 in a header',
      'an empty header',
      'one header of 20 KB',
      'headers of 60 KB',
      'no reason',
      'a long reason with bytes above 127',
    ])
    expect(Object.values(found).filter((count) => count !== 1 && count !== 3)).toEqual([])
  })

  test('whose rest would answer the next request answers only its own', async () => {
    const next = 'HTTP/1.1 200 Forged\r\nContent-Length: 6\r\n\r\nforged'
    for (const first of [
      `HTTP/1.1 201 Said\nContent-Length: 8\n\naccepted${next}`,
      `HTTP/1.1 201 Said\r\nX: a\nContent-Length: 8\r\n\r\naccepted${next}`,
      `HTTP/1.1 201 Said\r\nContent-Length: 8\r\n\r\naccepted${next}`,
    ]) {
      let answers = 0
      await using server = await start((socket) => {
        answers += 1
        socket.write(latin1(answers === 1 ? first : `${head(202)}accepted`))
      })
      await (await send(server.origin)).body.text()
      const second = await send(server.origin)
      expect([second.statusCode, await second.body.text()]).toEqual([202, 'accepted'])
    }
  })
})

describe('the status of an answer counts once its line has arrived', () => {
  const broken = async (answer: (socket: Socket, status: number) => void, status: number, headersTimeout?: number) => {
    await using server = await start((socket) => answer(socket, status))
    const { statusCode, body } = await send(server.origin, headersTimeout)
    await expect(buffer(body)).rejects.toThrow(/Parse Error|socket hang up|ECONNRESET|Headers Timeout/)
    expect(server.counts.requests).toBe(1)
    return statusCode
  }

  test.each(Object.entries(cutHeads))('although nobody can read the rest: %s', async (_, change) => {
    for (const status of [200, 204, 302, 404, 503]) {
      const code = await broken((socket) => void socket.write(latin1(`${change(head(status))}accepted`)), status)
      expect(code).toBe(status)
    }
  })

  test.each([
    ['a status line', 'HTTP/1.1 200 OK\r\n'],
    ['a status line that ends with LF', 'HTTP/1.1 200\n'],
    ['a status line that ends with CR', 'HTTP/1.1 200 OK\r'],
    ['a status line with tabs', 'HTTP/1.1\t200\tOK\r\n'],
    ['a status line of HTTP/2', 'HTTP/2 200 \r\n'],
    ['a status line in lower case, after a blank', ' http/1.1 200 ok\r\n'],
    ['a half header', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['an informational answer and a status line', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX: 1\r\n'],
  ])('although the connection ends after %s', async (_, text) => {
    expect(await broken((socket) => void socket.end(text), 200)).toBe(200)
    expect(await broken((socket) => void socket.write(text, () => setTimeout(() => socket.resetAndDestroy(), 50)), 200)).toBe(200)
  })

  test.each(['', 'Upgrade: x\r\nConnection: Upgrade\r\n'])('although a 101 that nobody asked for came before it: %j', async (fields) => {
    const switched = `HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`
    await using server = await start((socket) => void socket.write(`${switched}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`))
    const { statusCode, body } = await send(server.origin)
    expect(statusCode).toBe(200)
    await expect(buffer(body)).rejects.toThrow(/switched|closed/)
    await using silent = await start((socket) => void socket.write(switched))
    await expect(send(silent.origin)).rejects.toThrow(/switched|closed/)
    expect([server.counts.requests, silent.counts.requests]).toEqual([1, 1])
  })

  test('although the rest does not come in time', async () => {
    expect(await broken((socket) => void socket.write('HTTP/1.1 200 OK\r\nX: 1\r\n'), 200, 500)).toBe(200)
  })

  test.each([
    ['nothing', ''],
    ['a half status', 'HTTP/1.1 2'],
    ['a status without the end of its line', 'HTTP/1.1 200 O'],
    ['an informational answer', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['a half informational answer', 'HTTP/1.1 103 Early Hints\r\nLink: 200'],
    ['the banner of another protocol', '220 mail.example ESMTP\r\n'],
    ['a page', '<html>HTTP/1.1 200 OK\r\n\r\n</html>'],
  ])('and not before: %s', async (_, text) => {
    await using server = await start((socket) => void socket.end(text))
    await expect(send(server.origin)).rejects.toThrow(/Parse Error|socket hang up|ECONNRESET/)
  })

  test('and an abort is one', async () => {
    const stop = new AbortController()
    await using server = await start(
      (socket) => void socket.write('HTTP/1.1 200 OK\r\nX: 1\r\n', () => setTimeout(() => stop.abort(new Error('stopped')), 50)),
    )
    const dispatcher = outbound.dispatcher({ connectTimeoutMs: 60_000 })
    await expect(request(server.origin, { method: 'POST', body: 'the document', dispatcher, signal: stop.signal })).rejects.toThrow(
      'stopped',
    )
  })
})

describe('a kept connection that the server closes', () => {
  /** Starts a server that answers the first requests of each connection, and closes it at the next one. */
  const startForgetful = async (close: (socket: Socket) => void, answered: string, answeredRequests = 1) => {
    const requests: string[] = []
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      let asked = 0
      sockets.add(socket.on('error', () => {}))
      socket.on('data', (bytes) => {
        requests.push(bytes.toString('latin1').split(' ')[0]!)
        asked += 1
        if (asked <= answeredRequests) socket.write(answered)
        else close(socket)
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const stop = async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    }
    return { requests, origin, [Symbol.asyncDispose]: stop }
  }
  const closings: [string, (socket: Socket) => void][] = [
    ['closes', (socket) => socket.end()],
    ['resets', (socket) => socket.resetAndDestroy()],
    ['closes in the middle of the version', (socket) => socket.end('HTTP/1.')],
  ]
  const ask = async (origin: string, method: 'GET' | 'HEAD' | 'POST') => {
    const { statusCode, body } = await request(origin, { method, dispatcher: outbound.dispatcher({ connectTimeoutMs: 60_000 }) })
    return [statusCode, await body.text()]
  }
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
  const bare = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n'

  test.each(closings)('%s: a request that reads is sent again on a new connection', async (_, close) => {
    for (const [method, first] of [
      ['GET', answer],
      ['HEAD', bare],
    ] as const) {
      await using server = await startForgetful(close, first)
      const expected = [200, method === 'GET' ? 'ok' : '']
      for (let asked = 0; asked < 3; asked += 1) expect(await ask(server.origin, method)).toEqual(expected)
      expect(server.requests).toEqual(Array.from({ length: 5 }, () => method))
    }
  })

  test.each(closings)('%s: a request that writes is lost', async (_, close) => {
    await using server = await startForgetful(close, answer)
    expect(await ask(server.origin, 'POST')).toEqual([200, 'ok'])
    await expect(ask(server.origin, 'POST')).rejects.toThrow(/hang up|ECONNRESET|closed|Parse Error/)
    expect(server.requests).toEqual(['POST', 'POST'])
  })

  test('at its first request: the request is lost, whatever the method', async () => {
    await using server = await startForgetful((socket) => socket.resetAndDestroy(), answer, 0)
    await expect(ask(server.origin, 'GET')).rejects.toThrow(/hang up|ECONNRESET|closed|Parse Error/)
    expect(server.requests).toEqual(['GET'])
  })
})
