import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createEmail } from '../../src/connectors/email/index.ts'
import { sftp } from '../../src/connectors/sftp/index.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { startExim, startProFtpd, type Exim, type ProFtpd } from '../support/file-and-mail-servers.ts'
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

describe('Exim', () => {
  const email = createEmail()
  const to = Array.from({ length: 12 }, (_, index) => `r${index}@acme.example`)
  const target = ({ port }: Exim, config: object = {}) => ({
    config: email.config.parse({ host: '127.0.0.1', port, tls: 'none', from: 'relay@acme.example', to, ...config }),
    credentials: email.credentials.parse({}),
  })

  test('that takes ten recipients at a time gets each of twelve once', async () => {
    await using server = await startExim(['recipients_max = 10'])
    await email.probe(target(server), contextOf(outbound))
    expect(await server.accepted()).toEqual([])
    await email.deliver(payloadOf(Buffer.from('x')), target(server), contextOf(outbound))
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
    expect(await failure(email.probe(target(server, { helo_name: 'other.acme.example' }), contextOf(outbound)))).toMatchObject({
      code: 'helo_refused',
      permanent: true,
    })
    await email.deliver(payloadOf(Buffer.from('x')), target(server, { helo_name: 'relay.acme.example' }), contextOf(outbound))
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
    const error = await failure(email.deliver(payloadOf(Buffer.alloc(20_000)), target(server), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'message_too_large', permanent: true })
  })
})
