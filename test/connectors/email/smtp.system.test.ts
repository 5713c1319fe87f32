import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import type { Payload } from '../../../src/connectors/connector.ts'
import { createEmail } from '../../../src/connectors/email/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { createAuthority, type Authority } from '../../support/certificates.ts'
import { fullOr } from '../../support/full-run.ts'
import { startMailServer, type MailServer } from '../../support/smtp-server.ts'
import { contextOf, failure, largePayload, MiB, payloadOf } from '../payloads.ts'

const email = createEmail()
const server = await startMailServer({ authOptional: true, hideSTARTTLS: true, size: 4 * MiB })
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
beforeEach(() => {
  server.mails.length = 0
  server.answerWith({})
})
afterAll(async () => {
  await outbound.close()
  await server.stop()
})

const target = (config: object = {}, credentials: object = {}) => ({
  config: email.config.parse({
    host: '127.0.0.1',
    port: server.port,
    tls: 'none',
    from: 'relay@acme.example',
    to: 'invoices@acme.example',
    ...config,
  }),
  credentials: email.credentials.parse(credentials),
})
const deliver = (payload: Payload, config: object = {}, credentials: object = {}, overrides: Parameters<typeof contextOf>[1] = {}) =>
  email.deliver(payload, target(config, credentials), contextOf(outbound, overrides))
const only = () => {
  expect(server.mails).toHaveLength(1)
  return server.mails[0]!
}
const refusing = (code: number, message: string) => Object.assign(new Error(message), { responseCode: code })

describe('a mail', () => {
  test('goes to every recipient, describes the document, and has the same Message-ID when repeated', async () => {
    const payload = payloadOf(randomBytes(5_000), { docId: 'D 1', path: 'R1/D 1/data', erpObjectId: '1000 1900004711 2026' })
    const result = await deliver(payload, { to: ['a@acme.example', 'b@acme.example'], cc: ['c@acme.example', 'a@acme.example'] })
    await deliver(payload, { to: ['a@acme.example', 'b@acme.example'], cc: ['c@acme.example', 'a@acme.example'] })

    const [first, second] = server.mails
    expect(first).toMatchObject({ from: 'relay@acme.example', to: ['a@acme.example', 'b@acme.example', 'c@acme.example'] })
    expect(first?.parsed.subject).toBe('Document D 1 (data) from R1')
    expect(first?.parsed.text).toContain(`SHA-256:    ${payload.sha256}`)
    expect(first?.parsed.attachments[0]).toMatchObject({ filename: 'data.pdf', mimeType: 'application/pdf', disposition: 'attachment' })
    const headers = Object.fromEntries(first?.parsed.headers.map(({ key, value }) => [key, value]) ?? [])
    expect(headers).toMatchObject({
      'auto-submitted': 'auto-generated',
      'x-relay-delivery-id': payload.deliveryId,
      'x-relay-event-type': 'document',
      'x-relay-workspace': payload.workspace,
      'x-relay-connection-id': payload.connectionId,
      'x-relay-attempt': '1',
      'x-relay-doc-id': 'D 1',
      'x-relay-object-id': '1000 1900004711 2026',
      'x-relay-file-name': 'data.pdf',
      'x-relay-content-type': 'application/pdf',
      'x-relay-sha256': payload.sha256,
    })
    expect(first?.parsed.messageId).toBe(`<${payload.messageId}@acme.example>`)
    expect(second?.parsed.messageId).toBe(first?.parsed.messageId)
    expect(result).toMatchObject({
      bytesSent: 5_000,
      answer: { status: 250, enclosed: 'attachment', reply: expect.stringContaining('4711') as string },
    })
  })

  test('has another Message-ID after the document was appended to, so that a mailbox keeps both', async () => {
    const payload = payloadOf(Buffer.from('short'))
    await deliver(payload)
    await deliver({ ...payloadOf(Buffer.from('longer')), deliveryId: payload.deliveryId })
    expect(new Set(server.mails.map(({ parsed }) => parsed.messageId)).size).toBe(2)
  })

  test('has the subject of its template', async () => {
    const payload = payloadOf(Buffer.from('x'), { docId: 'Ä', path: 'R1/Rechnung', arObject: 'ZINVOICE' })
    await deliver(payload, {
      subject_template: '{yyyy}-{mm}-{dd} {ar_object}: {file_name} {ext} {repo_id}/{doc_id}/{comp_id} {x}'.replace(' {x}', ''),
    })
    expect(only().parsed.subject).toBe('2026-11-21 ZINVOICE: Rechnung.pdf pdf R1/Ä/data')
  })

  test.each(['a\r\nBcc: evil@acme.example', 'a\nSubject: x', 'a\u0000b', 'invoice\u202Efdp.exe', 'a\u2028b', 'long '.repeat(900)])(
    'contains no name that ends a line or looks like another one: %j',
    async (docId) => {
      await deliver(payloadOf(Buffer.from('x'), { docId, compId: docId, repoId: docId, contentType: `application/pdf\r\nX-Evil: 1` }))
      const { raw, parsed, to } = only()
      expect(to).toEqual(['invoices@acme.example'])
      expect(parsed.bcc).toBeUndefined()
      expect(parsed.subject).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u)
      expect(parsed.headers.filter(({ key }) => key === 'subject')).toHaveLength(1)
      expect(raw.toString('latin1')).not.toMatch(/^(X-Evil|Bcc):/im)
      // Neither a bare CR nor a bare LF, and no line longer than a server must accept.
      expect(raw.toString('latin1')).not.toMatch(/\r(?!\n)|(?<!\r)\n/)
      expect(
        Math.max(
          ...raw
            .toString('latin1')
            .split('\r\n')
            .map((line) => line.length),
        ),
      ).toBeLessThanOrEqual(998)
    },
  )

  test.each(['message/rfc822', 'multipart/mixed; boundary=x'])('has an attachment even for a document of type %s', async (contentType) => {
    const payload = payloadOf(Buffer.from('Subject: inner\r\n\r\n.\r\nbody'), { contentType, path: 'R1/mail.eml' })
    await deliver(payload)
    expect(only().attachment).toMatchObject({ sha256: payload.sha256 })
    expect(only().parsed.attachments[0]).toMatchObject({ filename: 'mail.eml', mimeType: 'application/octet-stream' })
  })

  test('keeps a line that begins with a dot', async () => {
    await deliver(payloadOf(Buffer.from('x'), { docId: '.\r\n.\r\nQUIT', repoId: '.hidden' }), { subject_template: '.' })
    expect(only().parsed).toMatchObject({ subject: '.', text: expect.stringContaining('Repository: .hidden') as string })
  })
})

describe('a document that is too large', () => {
  const link = 'https://relay.example/download/W/D?expires=1&signature=s'

  test.each([
    ['for the destination', { max_attachment_bytes: 999 }, 1_000],
    ['for the server', {}, 3.5 * MiB],
  ])('%s is sent as a link', async (_why, config, sizeBytes) => {
    const payload = largePayload(sizeBytes, { downloadUrl: () => link })
    const opened: number[] = []
    const result = await deliver({ ...payload, open: (start) => payload.open(start).on('newListener', () => opened.push(1)) }, config)
    expect(only().attachment).toBeUndefined()
    expect(only().parsed.text).toContain(link)
    expect(result).toMatchObject({ bytesSent: 0, answer: { enclosed: 'link' } })
    // Not everybody who may read the history of a delivery may read the document.
    expect(JSON.stringify(result)).not.toContain('signature=s')
    expect(opened).toEqual([])
  })

  test('fails permanently if there is no link, before the envelope is sent', async () => {
    let senders = 0
    server.answerWith({
      onMailFrom: (_address, _session, done) => {
        senders += 1
        done()
      },
    })
    const error = await failure(deliver(largePayload(1_000), { max_attachment_bytes: 999 }))
    expect(error).toMatchObject({ code: 'link_unavailable', permanent: true, message: expect.stringContaining('RELAY_BASE_URL') as string })
    expect(senders).toBe(0)
  })
})

describe('a server that refuses', () => {
  test('one of several recipients: nobody receives the mail, and the message names the refused one', async () => {
    server.answerWith({
      onRcptTo: ({ address }, _session, done) => done(address.startsWith('gone') ? refusing(550, '5.1.1 no such user') : null),
    })
    const error = await failure(deliver(payloadOf(Buffer.from('x')), { to: ['a@acme.example', 'gone@acme.example'] }))
    expect(error).toMatchObject({ code: 'recipient_refused', permanent: true, answer: { status: 550 } })
    expect(error.message).toContain('gone@acme.example (550 5.1.1 no such user)')
    expect(error.message).not.toContain('a@acme.example (')
    expect(server.mails).toEqual([])
  })

  test('a recipient temporarily: the mail is sent to all later', async () => {
    server.answerWith({
      onRcptTo: ({ address }, _session, done) => done(address.startsWith('grey') ? refusing(451, '4.7.1 greylisted') : null),
    })
    const error = await failure(deliver(payloadOf(Buffer.from('x')), { to: ['a@acme.example', 'grey@acme.example'] }))
    expect(error).toMatchObject({ code: 'smtp_451', permanent: false })
    expect(server.mails).toEqual([])
  })

  test('a full mailbox: the delivery is retried although the code begins with 5', async () => {
    server.answerWith({ onRcptTo: (_address, _session, done) => done(refusing(552, '5.2.2 mailbox full')) })
    expect(await failure(deliver(payloadOf(Buffer.from('x'))))).toMatchObject({ code: 'smtp_552', permanent: false })
  })

  test.each([
    ['onMailFrom', 550, '5.7.1 not you', 'sender_refused', true],
    ['onMailFrom', 530, '5.7.0 authentication required', 'credentials_refused', true],
    ['onMailFrom', 451, '4.3.0 later', 'smtp_451', false],
    ['onMailFrom', 421, '4.7.0 too many connections', 'smtp_421', false],
    ['onData', 554, '5.7.1 looks like spam', 'message_refused', true],
    ['onData', 552, '5.3.4 too big', 'message_too_large', true],
    ['onData', 451, '4.3.0 later', 'smtp_451', false],
  ] as const)('at %s with %i %s becomes %s, permanent: %s', async (stage, status, text, code, permanent) => {
    server.answerWith({
      [stage]: (input: { resume?: () => void }, _session: unknown, done: (error: Error) => void) => {
        input.resume?.()
        done(refusing(status, text))
      },
    })
    expect(await failure(deliver(payloadOf(Buffer.from('x'))))).toMatchObject({ code, permanent, answer: { status } })
  })
})

test('the probe sends the envelope and no message', async () => {
  const named: string[] = []
  server.answerWith({
    onRcptTo: ({ address }, _session, done) => {
      named.push(address)
      done()
    },
    onData: () => {
      throw new Error('a probe sends no message')
    },
  })
  await email.probe(target({ to: ['a@acme.example', 'b@acme.example'] }), contextOf(outbound))
  expect(named).toEqual(['a@acme.example', 'b@acme.example'])
})

describe('TLS', () => {
  let authority: Authority
  const servers: MailServer[] = []
  beforeAll(async () => {
    authority = await createAuthority()
  })
  afterAll(async () => {
    for (const each of servers) await each.stop()
    await authority.remove()
  })
  const start = async (options: Parameters<typeof startMailServer>[0] = {}, name = 'IP:127.0.0.1') => {
    const started = await startMailServer({ authOptional: true, ...(await authority.issue(name)), ...options })
    servers.push(started)
    return started
  }
  const to = (port: number, config: object = {}, credentials: object = {}) =>
    deliver(payloadOf(Buffer.from('x')), { port, tls: 'starttls', ca_certificate: authority.certificate, ...config }, credentials)

  test('can start with the first byte', async () => {
    const secure = await start({ secure: true })
    await to(secure.port, { tls: 'implicit' })
    expect(secure.mails).toHaveLength(1)
  })

  test.each(['PLAIN', 'LOGIN'])('protects a password sent by AUTH %s', async (method) => {
    const users: unknown[] = []
    const secure = await start({
      authOptional: false,
      authMethods: [method],
      onAuth: ({ username, password }, _session, done) => {
        users.push([username, password])
        done(null, { user: 'u' })
      },
    })
    await to(secure.port, {}, { username: 'relay@acme', password: 'pässword' })
    expect(users).toEqual([['relay@acme', 'pässword']])
    expect(secure.mails).toHaveLength(1)
  })

  test('the reply to the message is kept up to the limit, without the password', async () => {
    const talking = await start({
      authOptional: false,
      onAuth: (_auth, _session, done) => done(null, { user: 'u' }),
    })
    talking.answerWith({
      onData: (stream, _session, done) => {
        stream.resume()
        // The library's way to set the text of the reply 250.
        stream.on('end', () => (done as (error: null, message: string) => void)(null, `accepted with canary-2f7a, ${'x'.repeat(20_000)}`))
      },
    })
    const { answer } = await to(talking.port, {}, { username: 'u', password: 'canary-2f7a' })
    expect(answer).toMatchObject({ status: 250, reply: expect.stringMatching(/^accepted with \[REDACTED\], x+$/) as string })
    expect(Buffer.byteLength(String(answer!['reply']))).toBe(contextOf(outbound).answerMaxBytes)
  })

  test('a server without a supported login method is reported with its methods', async () => {
    const secure = await start({ authOptional: false, authMethods: ['XOAUTH2'] })
    expect(await failure(to(secure.port, {}, { username: 'u', password: 'p' }))).toMatchObject({
      code: 'login_unsupported',
      message: expect.stringContaining('XOAUTH2') as string,
    })
  })

  test('nothing is sent to a server without STARTTLS', async () => {
    expect(await failure(deliver(payloadOf(Buffer.from('x')), { tls: 'starttls' }))).toMatchObject({
      code: 'tls_unsupported',
      permanent: false,
    })
    expect(server.mails).toEqual([])
  })

  test('a server that reads slowly, and accepts the message late, is waited for', async () => {
    const [sizeBytes, pauseMs, idleTimeoutMs] = [fullOr(4, 1) * MiB, fullOr(20, 50), 3_000]
    const slow = await start()
    let readBytes = 0
    slow.answerWith({
      onData: (stream, _session, done) => {
        stream.on('data', (chunk: Buffer) => {
          readBytes += chunk.length
          stream.pause()
          setTimeout(() => stream.resume(), pauseMs)
        })
        stream.on('end', () => done())
      },
    })
    const startedAt = Date.now()
    await email.deliver(
      largePayload(sizeBytes),
      target({ port: slow.port, tls: 'starttls', ca_certificate: authority.certificate }),
      contextOf(outbound, { idleTimeoutMs }),
    )
    expect(readBytes).toBeGreaterThan(sizeBytes)
    // Longer than the idle timeout before the message is accepted.
    expect(Date.now() - startedAt).toBeGreaterThan(idleTimeoutMs)
  })

  test('an unknown authority and another name are not trusted, even if NODE_TLS_REJECT_UNAUTHORIZED is 0', async () => {
    const [unknown, other] = [await start(), await start({}, 'DNS:other.example')]
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      expect(await failure(to(unknown.port, { ca_certificate: undefined }))).toMatchObject({ code: 'certificate_refused' })
      expect(await failure(to(other.port))).toMatchObject({ code: 'certificate_refused' })
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    }
    expect([...unknown.mails, ...other.mails]).toEqual([])
  })
})

describe('a server that does not follow the protocol', () => {
  const servers: Server[] = []
  afterEach(() => servers.splice(0).forEach((each) => each.close()))
  const startScripted = async (...lines: string[]) => {
    const odd = createServer((socket) => {
      socket.on('error', () => {}).write(lines[0] ?? '')
      let replies = 0
      socket.on('data', () => socket.write(lines[(replies += 1)] ?? ''))
    }).listen(0, '127.0.0.1')
    servers.push(odd)
    await once(odd, 'listening')
    return (odd.address() as AddressInfo).port
  }
  const errorAfter = async (config: object, lines: string[], overrides: Parameters<typeof contextOf>[1] = {}) =>
    failure(deliver(payloadOf(Buffer.from('x')), { port: await startScripted(...lines), ...config }, {}, overrides))

  test('a refusal as greeting is retried', async () => {
    expect(await errorAfter({}, ['421 4.3.2 too busy\r\n'])).toMatchObject({ code: 'smtp_421', permanent: false })
    expect(await errorAfter({}, ['554 5.7.1 go away\r\n'])).toMatchObject({ code: 'smtp_554', permanent: false })
  })

  test('a refused recipient is named although the server does not answer any more', async () => {
    const lines = ['220 ready\r\n', '250 hello\r\n', '250 sender ok\r\n', '550 5.1.1 no such user\r\n']
    const error = await errorAfter({ tls: 'none' }, lines, { idleTimeoutMs: 5_000 })
    expect(error).toMatchObject({ code: 'recipient_refused', permanent: true })
  })

  test('a reply that never ends fails', async () => {
    expect(await errorAfter({}, [`220-${'x'.repeat(100_000)}`])).toMatchObject({ code: 'smtp_failure', permanent: false })
  })

  test('another protocol times out', async () => {
    const error = await errorAfter({}, ['SSH-2.0-OpenSSH_9.2\r\n'], { idleTimeoutMs: 500 })
    expect(error).toMatchObject({ code: 'timeout', permanent: false })
  })

  test('a reply that was injected before TLS fails', async () => {
    const error = await errorAfter({ tls: 'starttls' }, ['220 hello\r\n', '250-me\r\n250 STARTTLS\r\n', '220 go\r\n250 INJECTED\r\n'])
    expect(error).toMatchObject({ code: 'tls_failed' })
  })
})

describe('the schema of email', () => {
  test.each([
    [{ host: 'smtp://mail.example' }],
    [{ host: 'mail.example/x' }],
    [{ port: 0 }],
    [{ tls: 'optional' }],
    [{ from: 'a@x.example\r\nBcc: evil@x.example' }],
    [{ from: 'Relay <a@x.example>' }],
    [{ to: [] }],
    [{ to: 'a@x.example, b@x.example' }],
    [{ to: ['a@x.example>\r\nRCPT TO:<evil@x.example'] }],
    [{ to: Array.from({ length: 101 }, (_, index) => `a${index}@x.example`) }],
    [{ cc: 'nobody' }],
    [{ subject_template: '{unknown}' }],
    [{ subject_template: 'a\r\nBcc: evil@x.example' }],
    [{ max_attachment_bytes: -1 }],
    [{ ca_certificate: 'no PEM' }],
    [{ unknown: 1 }],
  ])('refuses the config %j', (config) => {
    const good = { host: 'mail.example', from: 'a@x.example', to: 'b@x.example' }
    expect(email.config.safeParse(good).success).toBe(true)
    expect(email.config.safeParse({ ...good, ...config }).success).toBe(false)
  })

  test.each([[{ username: 'a' }], [{ password: 'b' }], [{ username: 'a\r\nQUIT', password: 'b' }]])(
    'refuses the credentials %j',
    (credentials) => {
      expect(email.credentials.safeParse({}).success).toBe(true)
      expect(email.credentials.safeParse(credentials).success).toBe(false)
    },
  )
})
