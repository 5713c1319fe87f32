import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { createServer, type AddressInfo, type LookupFunction, type Socket } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { inspect } from 'node:util'
import { request } from 'undici'
import { toDeliveryError } from '../../src/connectors/shared/errors.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { checkForwardProxy, createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import { createAuthority } from '../support/certificates.ts'
import { startForwardProxy, type ForwardProxy } from '../support/forward-proxy.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { until } from '../support/until.ts'

// No test waits for this timeout but the one that is about it.
const timeoutMs = 10_000

const resolvingTo =
  (addresses: Record<string, string>): LookupFunction =>
  (host, _options, done) => {
    const address = addresses[host]
    if (address === undefined) return done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' }), [])
    done(null, [{ address, family: 4 }])
  }

// The proxy resolves every name to this machine, whatever the relay has found.
const lookup = resolvingTo({
  'target.example': '8.8.8.8',
  'far.invalid': '8.8.4.4',
  'deep.inside.example': '8.8.4.4',
  'inside.example': '8.8.4.4',
  'outside.example': '8.8.4.4',
  'private.example': '127.0.0.1',
  'blocked.example': '169.254.169.254',
})

describe('through a proxy that demands a password', () => {
  let target: HttpTarget
  let proxy: ForwardProxy
  const guards: OutboundGuard[] = []
  const guard = (options: { proxyUrl?: string; noProxy?: string[]; allowedCidrs?: string[] } = {}) => {
    const { allowedCidrs = [], ...rest } = options
    const created = createOutboundGuard({ allowedCidrs, proxyUrl: proxy.urlWithLogin, lookup, ...rest })
    guards.push(created)
    return created
  }
  const failureOf = async (outbound: Pick<OutboundGuard, 'connect'>, host = 'target.example', port = target.port) => {
    const thrown: unknown = await outbound.connect({ host, port, timeoutMs }).then(
      (socket) => socket.destroy(),
      (error: unknown) => error,
    )
    const { code, message } = toDeliveryError(thrown, 'unexpected')
    expect(inspect(thrown, { depth: 10, showHidden: true })).not.toContain('canary')
    expect(message).not.toContain('127.0.0.1')
    return { code, message }
  }

  beforeAll(async () => {
    target = await startHttpTarget()
    proxy = await startForwardProxy()
  })
  beforeEach(() => void (proxy.targets.length = 0))
  afterAll(async () => {
    for (const each of guards) await each.close()
    await proxy.stop()
    await target.stop()
  })

  test('requests reach the target, which the proxy resolves by its name', async () => {
    const dispatcher = guard().dispatcher({ connectTimeoutMs: timeoutMs })
    for (const body of ['first', 'second']) {
      const response = await request(`http://target.example:${target.port}/in`, { method: 'POST', body, dispatcher })
      expect(await response.body.text()).toBe('accepted')
    }
    expect(target.arrivals.map((arrival) => arrival.body.toString())).toEqual(['first', 'second'])
    expect(new Set(proxy.targets)).toEqual(new Set([`target.example:${target.port}`]))
  })

  test('a body is sent while it is read', async () => {
    const received = new PassThrough()
    const server = http
      .createServer((message, response) => void message.pipe(received).once('finish', () => response.end()))
      .listen(0, '127.0.0.1')
    await once(server, 'listening')
    const chunk = Buffer.alloc(64 * 1024, 'x')
    // Ends only after the target has the beginning.
    async function* source() {
      yield chunk
      await once(received, 'readable')
      received.resume()
      yield chunk
    }
    const dispatcher = guard().dispatcher({ connectTimeoutMs: timeoutMs })
    const url = `http://target.example:${(server.address() as AddressInfo).port}/`
    const response = await request(url, { method: 'PUT', body: Readable.from(source(), { objectMode: false }), dispatcher })
    expect(response.statusCode).toBe(200)
    expect(proxy.targets).toHaveLength(1)
    server.closeAllConnections()
    server.close()
  })

  test('TLS is spoken with the target, whose certificate must be for its name', async () => {
    const authority = await createAuthority()
    const certificate = await authority.issue('DNS:target.example')
    const secure = await startHttpTarget(certificate)
    const { agents, dispatcher } = guard()
    const trust = { connectTimeoutMs: timeoutMs, caCertificate: authority.certificate }
    const answer = await request(`https://target.example:${secure.port}/`, { dispatcher: dispatcher(trust) })
    expect(await answer.body.text()).toBe('accepted')
    await expect(request(`https://inside.example:${secure.port}/`, { dispatcher: dispatcher(trust) })).rejects.toMatchObject({
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
    // As the AWS SDK connects.
    const asked = https.get(`https://target.example:${secure.port}/`, { agent: agents(trust).https })
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    expect(await text(response)).toBe('accepted')
    expect(proxy.targets).toEqual(['target', 'inside', 'target'].map((name) => `${name}.example:${secure.port}`))
    await secure.stop()
    await authority.remove()
  })

  test('a name that leads to an address that is not allowed never reaches the proxy', async () => {
    const before = proxy.connections()
    for (const host of ['blocked.example', 'private.example', '10.0.0.1', '169.254.169.254', '[::1]']) {
      await expect(guard().connect({ host: host.replace(/[[\]]/g, ''), port: 443, timeoutMs })).rejects.toMatchObject({
        code: 'blocked_address',
      })
    }
    await expect(guard().connect({ host: 'unknown.example', port: 443, timeoutMs })).rejects.toMatchObject({ code: 'ENOTFOUND' })
    expect(proxy.connections()).toBe(before)
  })

  test('what needs no encryption is asked for by the private address that was checked', async () => {
    const { unencryptedPrivate } = guard({ allowedCidrs: ['127.0.0.0/8'] })
    const socket = await unencryptedPrivate.connect({ host: 'private.example', port: target.port, timeoutMs })
    socket.destroy()
    expect(proxy.targets).toEqual([`127.0.0.1:${target.port}`])
    await expect(unencryptedPrivate.connect({ host: 'target.example', port: target.port, timeoutMs })).rejects.toMatchObject({
      code: 'tls_required',
    })
  })

  test.each<[entry: string, host: string, isDirect: boolean]>([
    ['private.example', 'private.example', true],
    ['PRIVATE.example.', 'private.example', true],
    ['example', 'private.example', true],
    ['.example', 'private.example', true],
    ['*.example', 'private.example', true],
    ['ate.example', 'private.example', false],
    ['other.example', 'private.example', false],
    ['127.0.0.0/8', 'private.example', true],
    ['127.0.0.1', 'private.example', true],
    ['127.0.0.1', '127.0.0.1', true],
    ['::1', '127.0.0.1', false],
    ['10.0.0.0/8', '127.0.0.1', false],
  ])('with %s in the no-proxy list, %s is reached directly: %s', async (entry, host, isDirect) => {
    const outbound = guard({ allowedCidrs: ['127.0.0.0/8'], noProxy: ['none.invalid', entry] })
    const socket = await outbound.connect({ host, port: target.port, timeoutMs })
    expect(socket.remotePort === target.port).toBe(isDirect)
    socket.destroy()
    expect(proxy.targets).toHaveLength(isDirect ? 0 : 1)
  })

  test('a wrong password, and none, are errors that name the variable', async () => {
    const wrong = proxy.url.replace('//', '//relay:canary-wrong@')
    expect(await failureOf(guard({ proxyUrl: wrong }))).toEqual({
      code: 'proxy_failed',
      message: 'the proxy of RELAY_OUTBOUND_PROXY refuses the user and password of the variable (407)',
    })
    expect(await failureOf(guard({ proxyUrl: proxy.url }))).toEqual({
      code: 'proxy_failed',
      message: 'the proxy of RELAY_OUTBOUND_PROXY demands a user and a password, and the variable has none (407)',
    })
    expect(proxy.targets).toEqual([])
  })

  test('a target that does not exist at the proxy is not a failure of the proxy', async () => {
    expect(await failureOf(guard(), 'far.invalid', 25)).toEqual({
      code: 'connection_failed',
      message: 'the proxy of RELAY_OUTBOUND_PROXY could not connect to far.invalid:25 (502)',
    })
  })

  test('a check of the proxy needs no target', async () => {
    await checkForwardProxy(proxy.urlWithLogin, timeoutMs)
    await expect(checkForwardProxy(proxy.url, timeoutMs)).rejects.toMatchObject({ code: 'proxy_failed' })
    await expect(checkForwardProxy(`http://127.0.0.1:${await findFreePort()}`, timeoutMs)).rejects.toMatchObject({ code: 'proxy_failed' })
  })

  test('a proxy that is down is an error that names the variable, and does not open the way past it', async () => {
    const before = target.connections()
    const proxyUrl = `http://relay:canary@127.0.0.1:${await findFreePort()}`
    expect(await failureOf(guard({ proxyUrl }), 'target.example')).toEqual({
      code: 'proxy_failed',
      message: 'the proxy of RELAY_OUTBOUND_PROXY cannot be reached (ECONNREFUSED)',
    })
    expect(target.connections()).toBe(before)
  })
})

describe('a proxy', () => {
  /** Starts a server that reads a request and writes this, in one packet. */
  const startAnswering = async (answer: (socket: Socket) => void) => {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket)
      socket
        .on('error', () => {})
        .once('data', () => {
          answer(socket)
          socket.resume()
        })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const outbound = createOutboundGuard({
      allowedCidrs: [],
      proxyUrl: `http://relay:canary@127.0.0.1:${(server.address() as AddressInfo).port}`,
      lookup,
    })
    const stop = async () => {
      await outbound.close()
      for (const socket of sockets) socket.destroy()
      server.close()
    }
    return { outbound, sockets, stop }
  }

  test('may pass the first bytes of the target with its answer', async () => {
    const { outbound, stop } = await startAnswering((socket) =>
      socket.end('HTTP/1.1 200 OK\r\nvia: proxy\r\n\r\n220 mail.example ESMTP\r\n'),
    )
    const socket = await outbound.connect({ host: 'target.example', port: 25, timeoutMs })
    expect(await text(socket)).toBe('220 mail.example ESMTP\r\n')
    await stop()
  })

  test.each<[name: string, answer: string, code: string, message: RegExp]>([
    [
      'does not allow the target',
      'HTTP/1.1 403 Forbidden\r\n\r\n<html>canary</html>',
      'proxy_failed',
      /does not allow connections to target\.example:443 \(403\)$/,
    ],
    ['redirects', 'HTTP/1.1 302 Found\r\nlocation: http://login.example\r\n\r\n', 'proxy_failed', /does not allow .* \(302\)$/],
    [
      'cannot reach the target',
      'HTTP/1.1 503 Service Unavailable\r\n\r\n',
      'connection_failed',
      /could not connect to target\.example:443 \(503\)$/,
    ],
    [
      'answers as tinyproxy does to a wrong password',
      'HTTP/1.1 401 Unauthorized\r\n\r\n',
      'proxy_failed',
      /refuses the user and password of the variable \(401\)$/,
    ],
    ['demands Kerberos', 'HTTP/1.1 407 X\r\nproxy-authenticate: Negotiate\r\nproxy-authenticate: NTLM\r\n\r\n', 'proxy_failed', /Basic/],
    ['speaks another protocol', '220 mail.example ESMTP\r\n', 'proxy_failed', /does not answer as an HTTP proxy \(HPE_/],
    ['answers without end', `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}`, 'proxy_failed', /\(HPE_HEADER_OVERFLOW\)$/],
    ['closes the connection', '', 'proxy_failed', /closed the connection without an answer \(ECONNRESET\)$/],
  ])('that %s is told apart', async (_name, answer, code, message) => {
    const { outbound, sockets, stop } = await startAnswering((socket) => (answer === '' ? socket.end() : socket.write(answer)))
    const thrown: unknown = await outbound.connect({ host: 'target.example', port: 443, timeoutMs }).catch((error: unknown) => error)
    expect(toDeliveryError(thrown, 'unexpected')).toMatchObject({ code, message: expect.stringMatching(message) })
    expect(inspect(thrown, { depth: 10, showHidden: true })).not.toContain('canary')
    // The relay does not keep the connection.
    await until('the relay has closed its connections', () => [...sockets].every((socket) => socket.closed))
    await stop()
  })

  test('that does not answer costs the time for connecting, and a cancelled attempt none', async () => {
    const { outbound, sockets, stop } = await startAnswering(() => {})
    const error = await outbound.connect({ host: 'target.example', port: 443, timeoutMs: 200 }).catch((thrown: unknown) => thrown)
    expect(toDeliveryError(error, 'unexpected')).toMatchObject({
      code: 'timeout',
      message: 'could not connect to target.example:443 within 200 ms through the proxy of RELAY_OUTBOUND_PROXY',
    })
    const cancelled = new AbortController()
    const connecting = outbound.connect({ host: 'target.example', port: 443, timeoutMs, signal: cancelled.signal })
    cancelled.abort(new Error('cancelled'))
    await expect(connecting).rejects.toThrow('cancelled')
    await until('the relay has closed its connections', () => [...sockets].every((socket) => socket.closed))
    await stop()
  })
})

test.each([
  ['http://outgoing.example:3128', ['10.0.0.0/33'], 'RELAY_OUTBOUND_NO_PROXY: 10.0.0.0/33 is neither a name nor an address range'],
  ['http://outgoing.example:3128', ['https://a.example'], 'RELAY_OUTBOUND_NO_PROXY: https://a.example'],
  ['http://outgoing.example:3128', ['*'], 'RELAY_OUTBOUND_NO_PROXY: *'],
  ['http://relay:100%@proxy.example:3128', [], 'RELAY_OUTBOUND_PROXY: write %25 for a % in the user or the password'],
])('the relay does not start with the proxy %s and the list %s', (proxyUrl, noProxy, message) => {
  expect(() => createOutboundGuard({ allowedCidrs: [], proxyUrl, noProxy })).toThrow(message)
})
