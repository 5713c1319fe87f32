import { spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TLSSocket, TlsOptions } from 'node:tls'
import { inspect } from 'node:util'
import { createWebhook } from '../../../src/connectors/webhook/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startForwardProxy } from '../../support/forward-proxy.ts'
import { startHttpTarget, type Arrival, type HttpTarget } from '../../support/http-target.ts'
import { startOAuthServer } from '../../support/oauth-server.ts'
import { contextOf, failure, payloadOf, watched } from '../payloads.ts'

const authority = await createAuthority()
const serverCertificate = await authority.issue('DNS:localhost,IP:127.0.0.1')
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
const oauth = await startOAuthServer(serverCertificate, [{ id: 'relay', secret: 'client-secret' }])
const servers: HttpTarget[] = []
const start = async (tls?: TlsOptions) => {
  const started = await startHttpTarget(tls && { ...serverCertificate, ...tls })
  servers.push(started)
  return started
}
afterAll(async () => {
  await outbound.close()
  for (const each of [oauth, ...servers]) await each.stop()
  await authority.remove()
})

describe('a webhook whose target wants tokens of an OAuth2 server', () => {
  const credentials = {
    token_url: oauth.tokenUrl,
    client_id: 'relay',
    client_secret: 'client-secret',
    scope: 'documents',
    token_ca_certificate: authority.certificate,
  }
  const startTarget = async () => {
    const server = await start()
    const answer = async ({ headers }: Arrival, status: (code: number) => void) =>
      status((await oauth.accepts(headers.authorization)) ? 200 : 401)
    server.answerWith(
      (arrival, response) => void answer(arrival, (code) => response.writeHead(code).end(`you sent ${arrival.headers.authorization}`)),
    )
    const webhook = createWebhook()
    const target = (more: object = {}) => ({
      config: webhook.config.parse({ url: `${server.origin}/documents` }),
      credentials: webhook.credentials.parse({ ...credentials, ...more }),
    })
    oauth.requests.length = 0
    return { server, webhook, target }
  }

  test('gets a token, and many documents at once cost one request for it', async () => {
    const { server, webhook, target } = await startTarget()
    const payloads = Array.from({ length: 20 }, (_, number) => payloadOf(Buffer.from(`document ${number}`)))
    const results = await Promise.all(payloads.map((payload) => webhook.deliver(payload, target(), contextOf(outbound))))

    expect(results.map(({ answer }) => answer?.status)).toEqual(payloads.map(() => 200))
    expect(oauth.requests).toHaveLength(1)
    expect(server.arrivals).toHaveLength(20)
    // The target has quoted the token.
    expect(results[0]?.answer?.body).toBe('you sent Bearer [REDACTED]')
  })

  test('gets a new token in the same attempt if the target refuses the one that it was sent', async () => {
    const { server, webhook, target } = await startTarget()
    await webhook.deliver(payloadOf(Buffer.from('x')), target(), contextOf(outbound))
    await oauth.revoke(server.arrivals[0]?.headers.authorization)

    const payload = payloadOf(Buffer.from('y'))
    const result = await webhook.deliver(payload, target(), contextOf(outbound))
    expect(result.answer?.status).toBe(200)
    expect(oauth.requests).toHaveLength(2)
    // The refused request and its repetition are the same message.
    const [, refused, repeated] = server.arrivals
    expect([refused, repeated].map((arrival) => arrival?.headers['webhook-id'])).toEqual([payload.messageId, payload.messageId])
    expect([refused, repeated].map((arrival) => arrival?.sha256)).toEqual([payload.sha256, payload.sha256])
  })

  test('fails permanently if it refuses a new token, too, after one renewal', async () => {
    const { server, webhook, target } = await startTarget()
    server.answerWith((_, response) => response.writeHead(401).end('no'))
    const error = await failure(webhook.deliver(payloadOf(Buffer.from('x')), target(), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true, answer: { status: 401 } })
    expect(server.arrivals).toHaveLength(2)
    expect(oauth.requests).toHaveLength(2)
  })

  test('sends nothing without a token, and shows no secret', async () => {
    const { server, webhook, target } = await startTarget()
    const { payload, starts } = watched(payloadOf(Buffer.from('x')))
    const wrong = target({ client_secret: 'wrong-secret' })
    for (const attempt of [() => webhook.deliver(payload, wrong, contextOf(outbound)), () => webhook.probe(wrong, contextOf(outbound))]) {
      const error = await failure(attempt())
      expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
      expect(error.message).toContain('invalid_client')
      expect(inspect(error)).not.toMatch(/wrong-secret|cmVsYXk6d3Jvbmctc2VjcmV0/)
    }
    expect(oauth.requests).toHaveLength(2)
    expect(server.arrivals).toEqual([])
    expect(starts).toEqual([])
  })

  test('gets a token, and the document, through the proxy of the operator', async () => {
    const { server, webhook, target } = await startTarget()
    const proxy = await startForwardProxy()
    const through = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'], proxyUrl: proxy.urlWithLogin })
    const wrong = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'], proxyUrl: proxy.url.replace('//', '//relay:canary@') })
    // The attempt of a target without TLS, as its credentials demand it: the token is asked for over TLS, which may go anywhere.
    const error = await failure(webhook.deliver(payloadOf(Buffer.from('x')), target(), contextOf(wrong.unencryptedPrivate)))
    expect(error).toMatchObject({ code: 'proxy_failed', permanent: false })
    expect(error.message).toContain('no token from 127.0.0.1')
    expect(inspect(error)).not.toMatch(/canary|client-secret/)

    const result = await webhook.deliver(payloadOf(Buffer.from('x')), target(), contextOf(through.unencryptedPrivate))
    expect(result.answer?.status).toBe(200)
    expect(proxy.targets).toEqual([new URL(oauth.tokenUrl).host, new URL(server.origin).host])
    expect(oauth.requests).toHaveLength(1)
    for (const guard of [through, wrong]) await guard.close()
    await proxy.stop()
  })

  test('is tested with a new token instead of one that was issued earlier', async () => {
    const { server, webhook, target } = await startTarget()
    await webhook.deliver(payloadOf(Buffer.from('x')), target(), contextOf(outbound))
    await webhook.probe(target(), contextOf(outbound))
    const [delivered, tested] = server.arrivals.map(({ headers }) => headers.authorization)
    expect(tested).not.toBe(delivered)
    expect(oauth.requests).toHaveLength(2)
  })
})

/** Starts OpenSSL's server, which sends the alerts of TLS that Node's does not. */
const startSslServer = async (version: string) => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-tls-'))
  const file = async (name: string, content: string) => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }
  const own = ['-cert', await file('cert.pem', serverCertificate.cert), '-key', await file('key.pem', serverCertificate.key)]
  const demand = ['-CAfile', await file('ca.pem', authority.certificate), '-Verify', '1', '-verify_return_error']
  const server = spawn('openssl', ['s_server', '-accept', '127.0.0.1:0', version, ...own, ...demand, '-www'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  for await (const line of createInterface(server.stdout)) {
    const [, port] = /^ACCEPT .*:(\d+)$/.exec(line) ?? []
    if (port === undefined) continue
    server.stdout.resume()
    const stop = async () => {
      server.kill()
      await once(server, 'close')
      await rm(folder, { recursive: true })
    }
    return { origin: `https://127.0.0.1:${port}`, stop }
  }
  throw new Error('openssl s_server did not start')
}

describe('a webhook whose target demands a client certificate', () => {
  const webhook = createWebhook()
  const startStrict = () => start({ requestCert: true, rejectUnauthorized: true, ca: authority.certificate })
  const to = (url: string, { cert, key }: { cert?: string; key?: string } = {}) => ({
    config: webhook.config.parse({ url, ca_certificate: authority.certificate }),
    credentials: webhook.credentials.parse({ client_certificate: cert, client_key: key }),
  })
  const deliver = (target: ReturnType<typeof to>) => webhook.deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound))

  test('gets the certificate of the destination, and a test of the destination proves that', async () => {
    const strict = await startStrict()
    const client = await authority.issueClient(30)
    expect(await deliver(to(strict.origin, client))).toMatchObject({ answer: { status: 200 } })
    expect(await webhook.probe(to(strict.origin, client), contextOf(outbound))).toContain('200')
  })

  test('gets it through the proxy of the operator, end to end', async () => {
    const strict = await startStrict()
    const proxy = await startForwardProxy()
    const through = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'], proxyUrl: proxy.urlWithLogin })
    const client = await authority.issueClient(30)
    const seen: string[] = []
    strict.answerWith((arrival, response) => {
      seen.push((arrival.socket as TLSSocket).getPeerCertificate().fingerprint256)
      response.end()
    })
    await webhook.deliver(payloadOf(Buffer.from('x')), to(strict.origin, client), contextOf(through))
    expect(seen).toEqual([new X509Certificate(client.cert).fingerprint256])
    expect(proxy.targets).toEqual([new URL(strict.origin).host])
    await through.close()
    await proxy.stop()
  })

  // In TLS 1.3, the connection is open for the client before the server has judged its certificate: the end of the connection may overtake the
  // alert that says why.
  test.each([
    ['-tls1_2', /^credentials_refused$/, /^tls_failed$/],
    ['-tls1_3', /^(credentials_refused|connection_lost)$/, /^(credentials_refused|connection_lost)$/],
  ])(
    'refuses a certificate of another authority, and a destination without one (openssl s_server %s)',
    async (version, foreign, missing) => {
      const strict = await startSslServer(version)
      const other = await createAuthority()
      const error = await failure(deliver(to(strict.origin, await other.issueClient(30))))
      expect(error.code).toMatch(foreign)
      expect(error.permanent).toBe(error.code === 'credentials_refused')
      expect(error.message).toContain('client certificate')
      expect(inspect(error)).not.toContain('PRIVATE KEY')
      // TLS 1.2 has no alert of its own for a certificate that is missing.
      expect((await failure(deliver(to(strict.origin)))).code).toMatch(missing)
      await other.remove()
      await strict.stop()
    },
  )

  test('may close the connection instead of saying why, which is retried (Node)', async () => {
    const strict = await startStrict()
    const other = await createAuthority()
    const error = await failure(deliver(to(strict.origin, await other.issueClient(30))))
    await other.remove()
    expect(error).toMatchObject({ code: 'connection_lost', permanent: false })
    expect(error.message).toContain('may have refused the client certificate')
    expect(strict.arrivals).toEqual([])
  })

  test('sees each destination with its own certificate, although they send to the same address', async () => {
    const strict = await startStrict()
    const clients = [await authority.issueClient(30), await authority.issueClient(30)]
    const seen: string[] = []
    strict.answerWith((arrival, response) => {
      seen.push((arrival.socket as TLSSocket).getPeerCertificate().fingerprint256)
      response.end()
    })
    for (const client of [...clients, ...clients]) await deliver(to(strict.origin, client))
    expect(new Set(seen).size).toBe(2)
    expect(seen.slice(2)).toEqual(seen.slice(0, 2))
  })

  test('is not contacted without TLS, where a certificate proves nothing', async () => {
    const plain = await start()
    const error = await failure(deliver(to(plain.origin, await authority.issueClient(30))))
    expect(error).toMatchObject({ code: 'config_invalid', permanent: true, message: expect.stringContaining('https') as string })
    expect(plain.arrivals).toEqual([])
  })
})
