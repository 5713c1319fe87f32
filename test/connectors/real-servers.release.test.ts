import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createEmail } from '../../src/connectors/email/index.ts'
import { sftp } from '../../src/connectors/sftp/index.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { startExim, startPostfix, startProFtpd, type KeepingMailServer, type ProFtpd } from '../support/file-and-mail-servers.ts'
import { contextOf, failure, payloadOf } from './payloads.ts'

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
afterAll(() => outbound.close())

describe('ProFTPD', () => {
  const target = ({ port, password }: ProFtpd, config: object = {}) => ({
    config: sftp.config.parse({ host: '127.0.0.1', port, ...config }),
    credentials: sftp.credentials.parse({ username: 'relay', password }),
  })
  const limit = (commands: string) => [`<Limit ${commands}>`, 'DenyAll', '</Limit>']
  const payload = payloadOf(Buffer.from('content'), { path: 'new/deep/a.pdf' })
  const deliverTwice = async (server: ProFtpd, config: object = {}) => {
    for (const attempt of [1, 2]) await sftp.deliver({ ...payload, attempt }, target(server, config), contextOf(outbound))
    expect(await readFile(join(server.home, 'new/deep/a.pdf'), 'utf8')).toBe('content')
    expect(await readdir(join(server.home, 'new/deep'))).toEqual(['a.pdf'])
  }

  test.each<[string, string[]]>([
    ['as it comes', []],
    ['without overwriting', ['AllowOverwrite off']],
    ['with hidden stores', ['HiddenStores on']],
    ['that does not say what exists', limit('STAT LIST MLST')],
  ])('%s gets documents, and its test succeeds', async (_, directives) => {
    await using server = await startProFtpd(directives)
    expect(await sftp.probe(target(server), contextOf(outbound))).toContain('wrote a file')
    await deliverTwice(server)
  })

  test.each<[string, string[]]>([
    ['permits no rename', limit('RNFR RNTO')],
    ['permits no name that begins with a dot', ['PathDenyFilter "(^|/)[.][^/]+$"']],
  ])('that %s fails its test, and gets documents in place', async (_, directives) => {
    await using server = await startProFtpd(directives)
    expect(await failure(sftp.probe(target(server), contextOf(outbound)))).toMatchObject({ permanent: true })
    const inPlace = { write: 'in_place' }
    expect(await sftp.probe(target(server, inPlace), contextOf(outbound))).toContain('wrote a file')
    await deliverTwice(server, inPlace)
  })

  test('that permits no folder fails its test', async () => {
    await using server = await startProFtpd(limit('MKD XMKD'))
    const error = await failure(sftp.probe(target(server), contextOf(outbound)))
    expect(error.message).toContain('creation of the folder .relay-')
    expect(await failure(sftp.deliver(payload, target(server), contextOf(outbound)))).toMatchObject({ code: error.code })
  })
})

const email = createEmail()
const to = Array.from({ length: 12 }, (_, index) => `r${index}@acme.example`)
const mailTarget = ({ port }: KeepingMailServer, config: object = {}) => ({
  config: email.config.parse({ host: '127.0.0.1', port, tls: 'none', from: 'relay@acme.example', to, ...config }),
  credentials: email.credentials.parse({}),
})

describe('Exim', () => {
  test('that takes ten recipients at a time gets each of twelve once', async () => {
    await using server = await startExim(['recipients_max = 10'])
    await email.probe(mailTarget(server), contextOf(outbound))
    expect(await server.accepted()).toEqual([])
    await email.deliver(payloadOf(Buffer.from('x')), mailTarget(server), contextOf(outbound))
    const envelopes = await server.accepted()
    expect(envelopes.map(({ length }) => length).toSorted((one, other) => other - one)).toEqual([10, 2])
    expect(envelopes.flat().toSorted()).toEqual(to.toSorted())
  })

  test('that demands a name gets the one of the destination', async () => {
    const acls = [
      'name:',
      '  deny message = HELO name is not known',
      '       condition = ${if !eq{$sender_helo_name}{relay.acme.example}}',
      '  accept',
    ]
    await using server = await startExim(['acl_smtp_helo = name'], acls)
    expect(await failure(email.probe(mailTarget(server, { helo_name: 'other.acme.example' }), contextOf(outbound)))).toMatchObject({
      code: 'helo_refused',
      permanent: true,
    })
    await email.deliver(payloadOf(Buffer.from('x')), mailTarget(server, { helo_name: 'relay.acme.example' }), contextOf(outbound))
    expect(await server.accepted()).toHaveLength(1)
  })

  test('that takes short messages only says so after the message, without a further status', async () => {
    const acls = [
      'short:',
      '  deny message = 552 Message size exceeds maximum permitted',
      '       condition = ${if >{$message_size}{2K}}',
      '  accept',
    ]
    await using server = await startExim(['acl_smtp_data = short'], acls)
    const error = await failure(email.deliver(payloadOf(Buffer.alloc(20_000)), mailTarget(server), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'message_too_large', permanent: true })
  })
})

describe('Postfix', () => {
  const document = payloadOf(Buffer.alloc(20_000))
  const reject = (text: string) => [`smtpd_recipient_restrictions = check_client_access static:{${text}}, permit_mynetworks, reject`]
  const deliverTo = (server: KeepingMailServer, config: object = {}) =>
    email.deliver(document, mailTarget(server, config), contextOf(outbound))

  test('that takes ten recipients at a time gets each of twelve once', async () => {
    await using server = await startPostfix(['smtpd_recipient_limit = 10'])
    await email.probe(mailTarget(server), contextOf(outbound))
    expect(await server.accepted()).toEqual([])
    await deliverTo(server)
    const envelopes = await server.accepted()
    expect(envelopes.map(({ length }) => length).toSorted((one, other) => other - one)).toEqual([10, 2])
    expect(envelopes.flat().toSorted()).toEqual(to.toSorted())
  })

  test('that demands a qualified name says so at the first recipient, and gets the one of the destination', async () => {
    await using server = await startPostfix(['smtpd_helo_required = yes', 'smtpd_helo_restrictions = reject_non_fqdn_helo_hostname'])
    for (const attempt of [
      email.probe(mailTarget(server, { helo_name: 'relay' }), contextOf(outbound)),
      deliverTo(server, { helo_name: 'relay' }),
    ]) {
      expect(await failure(attempt)).toMatchObject({ code: 'helo_refused', permanent: true })
    }
    await deliverTo(server, { helo_name: 'relay.acme.example' })
    expect(await server.accepted()).toEqual([expect.arrayContaining(to)])
  })

  test.each<[string, string[], { code: string; permanent: boolean }]>([
    ['announces that it takes short messages only', ['message_size_limit = 10000'], { code: 'link_unavailable', permanent: true }],
    [
      'takes short messages only, and does not announce it',
      ['message_size_limit = 10000', 'smtpd_discard_ehlo_keywords = size'],
      { code: 'message_too_large', permanent: true },
    ],
    ['has no room for another message', ['queue_minfree = 1000000000000000'], { code: 'smtp_452', permanent: false }],
    ['lists the sender as gray', reject('450 4.7.1 Greylisted, see http://postgrey.example'), { code: 'smtp_450', permanent: false }],
    ['has a limit of a day', reject('550 5.4.5 Daily user sending quota exceeded'), { code: 'smtp_550', permanent: false }],
    ['has a limit of a policy', reject('554 5.7.1 Rate limit of 100 messages/hour exceeded'), { code: 'smtp_554', permanent: false }],
    [
      'has blocked the client',
      reject('554 5.7.1 Service unavailable; Client host blocked using zen.example'),
      { code: 'recipient_refused', permanent: true },
    ],
    ['demands a login', reject('530 5.7.0 Authentication required'), { code: 'credentials_refused', permanent: true }],
  ])('that %s', async (_, parameters, expected) => {
    await using server = await startPostfix(parameters)
    const error = await failure(deliverTo(server))
    expect(error).toMatchObject(expected)
    expect(await server.accepted()).toEqual([])
  })

  test('that permits one message a minute gets the next one later', async () => {
    await using server = await startPostfix(['smtpd_client_message_rate_limit = 1', 'smtpd_client_event_limit_exceptions ='])
    await deliverTo(server)
    expect(await failure(deliverTo(server))).toMatchObject({ code: 'smtp_450', permanent: false })
    expect(await server.accepted()).toHaveLength(1)
  })
})
