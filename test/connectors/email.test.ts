import { email } from '../../src/connectors/email.ts'
import { createAuthority } from '../support/certificates.ts'
import { startMailServer, type Mail } from '../support/smtp-server.ts'
import { describeConnector } from './conformance.ts'
import { MiB } from './parcels.ts'

describeConnector('email', async () => {
  const authority = await createAuthority()
  const server = await startMailServer({
    ...(await authority.issue('IP:127.0.0.1')),
    onAuth: ({ username, password }, _session, done) =>
      username === 'relay' && password === 'right-password' ? done(null, { user: 'relay' }) : done(new Error(`${password} is not it`)),
  })
  const answersByRule = {
    onRcptTo: ({ address }, _session, done) =>
      address.startsWith('nobody') ? done(Object.assign(new Error('5.1.1 no such mailbox'), { responseCode: 550 })) : done(),
  } satisfies Parameters<typeof server.answerWith>[0]
  server.answerWith(answersByRule)
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
  // a mailbox that knows a repetition by its Message-ID, as docs/connectors/email.md has it
  const documents = () => new Map(server.mails.map((mail): [string, Mail] => [mail.parsed.messageId ?? '', mail]))
  return {
    connector: email,
    port: server.port,
    target,
    wrongCredentials: target(server.port, {}, { password: 'wrong-password' }),
    busy: async (load) => {
      const responseCode = { throttled: 451, overloaded: 421 }[load]
      const answer = Object.assign(new Error('4.7.0 try again later'), { responseCode })
      server.answerWith({ ...answersByRule, onMailFrom: (_address, _session, done) => done(answer) })
      return { port: server.port, code: `smtp_${responseCode}`, stop: async () => server.answerWith(answersByRule) }
    },
    neverSaysUntilWhen: true,
    missingPlace: { target: target(server.port, { to: ['invoices@acme.example', 'nobody@acme.example'] }), code: 'recipient_refused' },
    secrets: ['right-password', 'wrong-password', Buffer.from('\0relay\0wrong-password').toString('base64')],
    keepsContentType: true,
    read: async (_parcel, { path }) => {
      const mail = documents().get(new URL(path).searchParams.get('message-id') ?? '')
      const [attachment] = mail?.parsed.attachments ?? []
      return mail?.attachment && { ...mail.attachment, contentType: attachment && typeOf(mail) }
    },
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
})

/** With its parameters, which the parser leaves out. */
const typeOf = ({ raw }: Mail) => {
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
