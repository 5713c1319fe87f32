import { createEmail } from '../../../src/connectors/email/index.ts'
import { findFreePort } from '../../../src/programs/ports.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startMailServer, type Mail } from '../../support/smtp-server.ts'
import { MiB } from '../payloads.ts'
import type { Destination, Rig, RunningTarget, TlsCase } from '../rig.ts'

const email = createEmail()

const at = (port: number, config: object): Destination => ({
  connector: email,
  config: { host: '127.0.0.1', port, from: 'relay@acme.example', to: 'archive@acme.example', ...config },
  credentials: {},
})

const tlsCase = (name: string, tls: 'implicit' | 'starttls'): TlsCase => ({
  name,
  destination: (port) => at(port, { tls }),
  listen: (options) => startMailServer({ ...options, secure: tls === 'implicit', authOptional: true }),
  isHttp: false,
})

const refusal = (responseCode: number, message: string) => Object.assign(new Error(message), { responseCode })

export const rig: Rig = {
  kind: 'email',
  usesNetwork: true,
  connectorIn: () => email,

  start: async (): Promise<RunningTarget> => {
    const authority = await createAuthority()
    const server = await startMailServer({
      ...(await authority.issue('IP:127.0.0.1')),
      onAuth: ({ username, password }, _session, done) =>
        username === 'relay' && password === 'right-password' ? done(null, { user: 'relay' }) : done(new Error(`${password} is wrong`)),
    })
    const usualAnswers = {
      onRcptTo: ({ address }, _session, done) => (address.startsWith('nobody') ? done(refusal(550, '5.1.1 no such mailbox')) : done()),
    } satisfies Parameters<typeof server.answerWith>[0]
    server.answerWith(usualAnswers)
    const target = (port = server.port, config: object = {}, credentials: object = {}) => ({
      config: email.config.parse({
        host: '127.0.0.1',
        port,
        from: 'relay@acme.example',
        to: 'invoices@acme.example',
        max_attachment_bytes: 512 * MiB,
        ca_certificate: authority.certificate,
        ...config,
      }),
      credentials: email.credentials.parse({ username: 'relay', password: 'right-password', ...credentials }),
    })
    // A mailbox that recognises a repetition by its Message-ID, as docs/connectors/email.md describes.
    const documents = () => new Map(server.mails.map((mail): [string, Mail] => [mail.parsed.messageId ?? '', mail]))
    return {
      connector: email,
      target,
      network: {
        port: server.port,
        wrongCredentials: target(server.port, {}, { password: 'wrong-password' }),
        secrets: ['right-password', 'wrong-password', Buffer.from('\0relay\0wrong-password').toString('base64')],
        busy: async (load) => {
          const responseCode = { throttled: 451, overloaded: 421 }[load]
          const answer = refusal(responseCode, '4.7.0 try again later')
          server.answerWith({ ...usualAnswers, onMailFrom: (_address, _session, done) => done(answer) })
          return { port: server.port, code: `smtp_${responseCode}`, stop: async () => server.answerWith(usualAnswers) }
        },
        hasNoRetryAfter: true,
      },
      refusing: {
        steps: {
          'the sender': { operation: /^MAIL FROM:<relay@acme\.example> at 127\.0\.0\.1:\d+: / },
          'a recipient': { operation: /^RCPT TO at 127\.0\.0\.1:\d+: / },
          // A test that sends a mail would be seen.
          'the message': { operation: /^DATA at 127\.0\.0\.1:\d+: /, untried: /No mail was sent, so/ },
        },
        start: async (step) => {
          const refused = refusal(554, '5.7.1 not for you')
          server.answerWith({
            ...usualAnswers,
            ...(step === 'the sender' && { onMailFrom: (_address, _session, done) => done(refused) }),
            ...(step === 'a recipient' && { onRcptTo: (_address, _session, done) => done(refused) }),
            ...(step === 'the message' && { onData: (stream, _session, done) => stream.resume().on('end', () => done(refused)) }),
          } satisfies Parameters<typeof server.answerWith>[0])
          return { target: target(), stop: async () => server.answerWith(usualAnswers) }
        },
      },
      missingLocation: { target: target(server.port, { to: ['invoices@acme.example', 'nobody@acme.example'] }), code: 'recipient_refused' },
      keepsContentType: true,
      read: async (_payload, { path }) => {
        const mail = documents().get(new URL(path).searchParams.get('message-id') ?? '')
        const [attachment] = mail?.parsed.attachments ?? []
        return mail?.attachment && { ...mail.attachment, contentType: attachment && contentTypeOf(mail) }
      },
      readByNames: async ({ message_id: id, reply }) => (reply === undefined ? undefined : documents().get(String(id))?.attachment),
      documents: async () => [...documents().keys()],
      leftovers: async () => [],
      reset: async () => {
        server.mails.length = 0
      },
      stop: async () => {
        await server.stop()
        await authority.remove()
      },
    }
  },

  hostSettings: [{ name: 'the host of email', destination: (host, port) => at(port, { host: host.replace(/^\[|\]$/g, ''), tls: 'none' }) }],
  addressField: {
    key: 'host',
    form: 'host',
    config: { from: 'relay@acme.example', to: 'archive@acme.example' },
    connector: email,
  },
  tlsCases: [tlsCase('email with implicit TLS', 'implicit'), tlsCase('email with STARTTLS', 'starttls')],

  startProbeTarget: async () => {
    const server = await startMailServer({
      disabledCommands: ['STARTTLS'],
      authOptional: true,
    })
    server.answerWith({
      onMailFrom: ({ address }, _session, done) => (address.startsWith('stranger') ? done(refusal(550, '5.7.1 not you')) : done()),
      onRcptTo: ({ address }, _session, done) => (address.startsWith('nobody') ? done(refusal(550, '5.1.1 no such mailbox')) : done()),
    })
    return {
      ...at(server.port, { tls: 'none' }),
      mistakes: [
        ['an unknown recipient', { to: 'nobody@acme.example' }, {}, /refused nobody@acme\.example/],
        ['a sender that is refused', { from: 'stranger@acme.example' }, {}, /stranger@acme\.example/],
        ['STARTTLS at a server without TLS', { tls: 'starttls' }, {}, /TLS/],
        ['implicit TLS at a server without TLS', { tls: 'implicit' }, {}, /TLS/],
        ['another port', { port: await findFreePort() }, {}, /nothing listens/],
      ],
      stop: server.stop,
    }
  },

  secretSamples: [
    [{ username: 'relay', password: 'canary' }, ['canary']],
    [{ username: 'relay', tenant_id: 'contoso.example', client_id: 'relay', client_secret: 'canary-2' }, ['canary-2']],
  ],
}

/** Returns the content type of the attachment with its parameters, which the parser drops. */
const contentTypeOf = ({ raw }: Mail) => {
  const headers =
    raw
      .toString('latin1')
      .split('\r\n\r\n')
      .find((part) => /^Content-Disposition: attachment/im.test(part)) ?? ''
  return /^Content-Type: ([^\r]*(?:\r\n[ \t][^\r]*)*)/im
    .exec(headers)?.[1]
    ?.replace(/;\s*name\*?[^;]*=[^;]*/gi, '')
    .trim()
}
