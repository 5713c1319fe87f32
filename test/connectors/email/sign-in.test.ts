import { inspect } from 'node:util'
import type { SMTPServerOptions } from 'smtp-server'
import { createEmail } from '../../../src/connectors/email/index.ts'
import { createTokenCache } from '../../../src/connectors/shared/access-tokens.ts'
import { createWebhook } from '../../../src/connectors/webhook/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startDouble } from '../../support/double.ts'
import { createEntraDouble } from '../../support/entra-double.ts'
import { startForwardProxy } from '../../support/forward-proxy.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { startOAuthServer } from '../../support/oauth-server.ts'
import { startMailServer, type MailServer } from '../../support/smtp-server.ts'
import { contextOf, failure, payloadOf, watched } from '../payloads.ts'

const authority = await createAuthority()
const certificate = await authority.issue('IP:127.0.0.1')
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
const oauth = await startOAuthServer(certificate, [
  { id: 'relay', secret: 'client-secret' },
  { id: 'posting', secret: 'client-secret', authMethod: 'client_secret_post' },
])
const application = {
  tenantId: 'contoso.example',
  clientId: '11111111-2222-3333-4444-555555555555',
  clientSecret: 'entra~secret',
  scope: 'https://outlook.office365.com/.default',
}
const entra = createEntraDouble(application)
const entraServer = await startDouble(certificate, async (request) => (await entra.answer(request)) ?? { status: 404, json: {} })
const servers: MailServer[] = []
afterAll(async () => {
  await outbound.close()
  for (const each of [oauth, entraServer, ...servers]) await each.stop()
  await authority.remove()
})

interface Offer {
  username: string
  token: string
}

/** Starts a mail server that accepts tokens, and keeps those that it was offered. */
const startServer = async (accepts: (authorization: string) => Promise<boolean> | boolean, options: SMTPServerOptions = {}) => {
  const offers: Offer[] = []
  const server = await startMailServer({
    ...certificate,
    authMethods: ['PLAIN', 'XOAUTH2'],
    onAuth: ({ username = '', accessToken = '' }, _session, done) => {
      offers.push({ username, token: accessToken })
      // Without a user, the library sends the data as the challenge 334, and 535 after the client has answered it.
      const refused = { data: { status: '401', schemes: 'bearer', scope: 'https://mail.example/' } }
      void Promise.resolve(accepts(`Bearer ${accessToken}`)).then((isAccepted) => done(null, isAccepted ? { user: username } : refused))
    },
    ...options,
  })
  servers.push(server)
  return { server, offers }
}

const tokenCredentials = {
  username: 'invoices@acme.example',
  token_url: oauth.tokenUrl,
  client_id: 'relay',
  client_secret: 'client-secret',
  scope: 'documents',
  token_ca_certificate: authority.certificate,
}
const entraCredentials = {
  username: 'invoices@acme.example',
  tenant_id: application.tenantId,
  client_id: application.clientId,
  client_secret: application.clientSecret,
  token_ca_certificate: authority.certificate,
}

const connector = () => createEmail(createTokenCache(), undefined, `https://127.0.0.1:${entraServer.port}`)
const targetOf = (server: MailServer, credentials: object, config: object = {}) => {
  const email = connector()
  return {
    config: email.config.parse({
      host: '127.0.0.1',
      port: server.port,
      from: 'invoices@acme.example',
      to: 'archive@acme.example',
      ca_certificate: authority.certificate,
      ...config,
    }),
    credentials: email.credentials.parse(credentials),
  }
}
const document = () => payloadOf(Buffer.from('x'))

beforeEach(() => {
  oauth.requests.length = 0
  entraServer.requests.length = 0
})

describe('a mail server that wants tokens of an OAuth2 server', () => {
  test.each([
    ['in the header', {}],
    ['in the form', { client_id: 'posting', token_auth_method: 'client_secret_post' }],
  ])('gets one, for which the client has identified itself %s, and many mails cost one request', async (_how, more) => {
    const { server, offers } = await startServer(oauth.accepts)
    const email = connector()
    const target = targetOf(server, { ...tokenCredentials, ...more })
    await Promise.all(Array.from({ length: 10 }, () => email.deliver(document(), target, contextOf(outbound))))

    expect(server.mails).toHaveLength(10)
    expect(oauth.requests).toHaveLength(1)
    expect(new Set(offers.map(({ username }) => username))).toEqual(new Set(['invoices@acme.example']))
  })

  test('is sent notices in the same way', async () => {
    const { server } = await startServer(oauth.accepts)
    const notice = {
      id: 'notice-1',
      workspace: 'acme/invoices',
      subject: 'It fails',
      text: 'It fails.',
      event: { type: 'x', timestamp: '', data: {} },
    }
    await connector().sendNotice!(notice, targetOf(server, tokenCredentials), contextOf(outbound))
    expect(server.mails[0]?.parsed.subject).toBe('It fails')
  })

  test('gets a new token in the same attempt if it refuses the one that it was offered', async () => {
    const { server, offers } = await startServer(oauth.accepts)
    const email = connector()
    const target = targetOf(server, tokenCredentials)
    await email.deliver(document(), target, contextOf(outbound))
    await oauth.revoke(`Bearer ${offers[0]?.token}`)

    await email.deliver(document(), target, contextOf(outbound))
    expect(server.mails).toHaveLength(2)
    expect(oauth.requests).toHaveLength(2)
    expect(offers.map(({ token }) => offers.findIndex((each) => each.token === token))).toEqual([0, 0, 2])
  })

  test('that refuses a new token, too, is not asked again, and its reason is told without the token', async () => {
    const { server, offers } = await startServer(() => false)
    const { payload, starts } = watched(document())
    const error = await failure(connector().deliver(payload, targetOf(server, tokenCredentials), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true, answer: { status: 535 } })
    expect(error.message).toContain('refuses the token for invoices@acme.example (status 401, schemes bearer, scope https://mail.example/)')
    expect(offers).toHaveLength(2)
    expect(oauth.requests).toHaveLength(2)
    expect(starts).toEqual([])
    for (const { token } of offers) expect(inspect(error)).not.toContain(token)
  })

  test('may refuse without a challenge, and quote the token', async () => {
    const { server, offers } = await startServer(() => false, {
      onAuth: ({ accessToken = '' }, _session, done) => {
        offers.push({ username: '', token: accessToken })
        done(Object.assign(new Error(`5.7.3 no ${accessToken}`), { responseCode: 535 }))
      },
    })
    const error = await failure(connector().deliver(document(), targetOf(server, tokenCredentials), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'credentials_refused', answer: { status: 535, body: '5.7.3 no [REDACTED]' } })
    expect(error.message).toContain('535 5.7.3 no [REDACTED]; it refuses the token')
  })

  test.each([undefined, 'no object', { status: 'x\u0000y'.repeat(1_000) }])('may send the challenge %j', async (data) => {
    const { server } = await startServer(() => false, {
      onAuth: (_auth, _session, done) => done(null, { data } as never),
    })
    const { code, message } = await failure(connector().deliver(document(), targetOf(server, tokenCredentials), contextOf(outbound)))
    expect(code).toBe('credentials_refused')
    expect(message.length).toBeLessThan(600)
    expect(message).not.toMatch(/\p{Cc}|dXNlcj/u)
  })

  test('that cannot check tokens now is tried again later, with the same token', async () => {
    const { server } = await startServer(() => false, {
      onAuth: (_auth, _session, done) => done(Object.assign(new Error('4.7.0 later'), { responseCode: 454 })),
    })
    const error = await failure(connector().deliver(document(), targetOf(server, tokenCredentials), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'smtp_454', permanent: false })
    expect(oauth.requests).toHaveLength(1)
  })

  test('that offers no XOAUTH2 is reported with what it offers, and gets no token', async () => {
    const { server, offers } = await startServer(oauth.accepts, { authMethods: ['PLAIN', 'LOGIN'] })
    const error = await failure(connector().deliver(document(), targetOf(server, tokenCredentials), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'login_unsupported', permanent: true, message: expect.stringContaining('PLAIN, LOGIN') as string })
    expect(offers).toEqual([])
  })

  test('gets a short token in the command and a long one in a line of its own', async () => {
    const commands: string[] = []
    for (const length of [10, 1_000, 8_000]) {
      const token = 't'.repeat(length)
      const issuer = await startDouble(certificate, async () => ({ status: 200, json: { access_token: token, token_type: 'bearer' } }))
      const { server, offers } = await startServer(() => true, {
        logger: {
          ...Object.fromEntries(['level', 'trace', 'info', 'warn', 'error', 'fatal'].map((level) => [level, () => {}])),
          debug: (...entry: unknown[]) => commands.push(entry.map(String).join(' ')),
        } as never,
      })
      const credentials = { ...tokenCredentials, token_url: `https://127.0.0.1:${issuer.port}/token` }
      await connector().deliver(document(), targetOf(server, credentials), contextOf(outbound))
      await issuer.stop()
      expect(offers).toEqual([{ username: 'invoices@acme.example', token }])
    }
    // The library hides what it logs of a response.
    const sent = commands.flatMap((command) => /C: (AUTH.*|.*secured.*)/.exec(command)?.[1] ?? [])
    const [hidden] = /\/\*.*/.exec(sent[0] ?? '') ?? []
    expect(sent).toEqual([`AUTH XOAUTH2 ${hidden}`, 'AUTH XOAUTH2', hidden, 'AUTH XOAUTH2', hidden])
  })

  test('is not contacted without a token, and no secret is shown', async () => {
    const { server } = await startServer(oauth.accepts)
    const wrong = targetOf(server, { ...tokenCredentials, client_secret: 'wrong-secret' })
    for (const attempt of [
      () => connector().deliver(document(), wrong, contextOf(outbound)),
      () => connector().probe(wrong, contextOf(outbound)),
    ]) {
      const error = await failure(attempt())
      expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
      expect(error.message).toContain('invalid_client')
      expect(inspect(error)).not.toMatch(/wrong-secret|cmVsYXk6d3Jvbmctc2VjcmV0/)
    }
    expect(oauth.requests).toHaveLength(2)
    expect(server.sessions()).toBe(0)
  })

  test('gets its token, and the mail, through the proxy of the operator', async () => {
    const { server } = await startServer(oauth.accepts)
    const proxy = await startForwardProxy()
    const through = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'], proxyUrl: proxy.urlWithLogin })
    await connector().deliver(document(), targetOf(server, tokenCredentials), contextOf(through))
    expect(server.mails).toHaveLength(1)
    expect(proxy.targets).toEqual([new URL(oauth.tokenUrl).host, `127.0.0.1:${server.port}`])
    await through.close()
    await proxy.stop()
  })

  test('is tested with a new token instead of one that was issued earlier', async () => {
    const { server, offers } = await startServer(oauth.accepts)
    const email = connector()
    const target = targetOf(server, tokenCredentials)
    await email.deliver(document(), target, contextOf(outbound))
    expect(await email.probe(target, contextOf(outbound))).toContain('the login')
    expect(offers[1]?.token).not.toBe(offers[0]?.token)
    expect(oauth.requests).toHaveLength(2)
  })

  test('shares the tokens of webhooks with the same credentials', async () => {
    const { server } = await startServer(oauth.accepts)
    const cache = createTokenCache()
    const { username: _, ...credentials } = tokenCredentials
    const hook = await startHttpTarget()
    const webhook = createWebhook(cache)
    const hooked = { config: webhook.config.parse({ url: hook.origin }), credentials: webhook.credentials.parse(credentials) }
    await webhook.deliver(document(), hooked, contextOf(outbound))
    await createEmail(cache).deliver(document(), targetOf(server, tokenCredentials), contextOf(outbound))
    await hook.stop()
    expect(oauth.requests).toHaveLength(1)
    expect(server.mails).toHaveLength(1)
  })
})

describe('a mail server that wants tokens of Microsoft Entra, which is a double', () => {
  test('gets one for Exchange Online, and a new one after it was revoked', async () => {
    const { server, offers } = await startServer(entra.accepts)
    const email = connector()
    const target = targetOf(server, entraCredentials)
    await email.deliver(document(), target, contextOf(outbound))
    entra.revoke()
    await email.deliver(document(), target, contextOf(outbound))
    expect(server.mails).toHaveLength(2)
    expect(offers).toHaveLength(3)
    expect(entraServer.requests).toEqual(Array.from({ length: 2 }, () => 'POST /contoso.example/oauth2/v2.0/token'))
  })

  test('is not contacted if Entra issues none, and the message says what to correct', async () => {
    const { server } = await startServer(entra.accepts)
    const wrong = targetOf(server, { ...entraCredentials, client_secret: 'wrong-secret' })
    const error = await failure(connector().deliver(document(), wrong, contextOf(outbound)))
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
    expect(error.message).toContain('client_secret is wrong')
    expect(inspect(error)).not.toContain('wrong-secret')
    expect(server.sessions()).toBe(0)
  })
})

describe('the credentials of email', () => {
  const { credentials } = createEmail()
  const { token_ca_certificate: _, ...entraOnly } = entraCredentials
  const issuesOf = (value: object) => credentials.safeParse(value).error?.issues.map(({ path }) => path.join('.')) ?? []

  test.each<[string, object]>([
    ['nothing', {}],
    ['a password', { username: 'a', password: 'b' }],
    ['a client of an OAuth2 server', tokenCredentials],
    ['an application of Entra', entraOnly],
    ['an application of Entra behind an authority of its own', entraCredentials],
  ])('may contain %s', (_what, value) => expect(issuesOf(value)).toEqual([]))

  test.each<[string, object, string[]]>([
    ['a user name alone', { username: 'a' }, ['']],
    ['a client without an issuer', { username: 'a', client_id: 'c', client_secret: 's' }, ['']],
    ['two issuers', { ...tokenCredentials, tenant_id: 'contoso.example' }, ['']],
    ['a password and a client', { ...tokenCredentials, password: 'b' }, ['']],
    ['a client without a user name', { ...tokenCredentials, username: undefined }, ['username']],
    ['an issuer without a client', { ...tokenCredentials, client_secret: undefined, client_id: undefined }, ['client_id', 'client_secret']],
    ['an application without a user name', { ...entraOnly, username: undefined }, ['username']],
    ['an application with another scope', { ...entraOnly, scope: 'https://graph.microsoft.com/.default' }, ['scope']],
    ['a password with an audience', { username: 'a', password: 'b', audience: 'x' }, ['audience']],
    ['an issuer without TLS', { ...tokenCredentials, token_url: 'http://tokens.example/' }, ['token_url']],
    ['no certain tenant', { ...entraOnly, tenant_id: 'common' }, ['tenant_id']],
  ])('must not contain %s', (_what, value, paths) => expect(issuesOf(value)).toEqual(paths))
})
