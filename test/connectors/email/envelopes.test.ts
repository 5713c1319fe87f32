import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { createEmail } from '../../../src/connectors/email/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { disposable } from '../../support/disposable.ts'
import { share } from '../../support/share.ts'
import { contextOf, failure, payloadOf } from '../payloads.ts'

const outbound = share(disposable(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }), (each) => each.close()))
const email = createEmail()

/**
 * Starts a mail server that answers each command as `reply` says, or accepts it.
 * @param reply gets the command, and the recipients of the envelope
 */
const start = async (reply: (line: string, recipients: string[]) => string | undefined) => {
  const mails: string[][] = []
  const commands: string[] = []
  const server = createServer((socket) => {
    let isMessage = false
    let received = ''
    let recipients: string[] = []
    socket.on('error', () => {}).write('220 ready\r\n')
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1')
      for (;;) {
        const end = isMessage ? '\r\n.\r\n' : '\r\n'
        const at = received.indexOf(end)
        if (at < 0) return
        const line = received.slice(0, at)
        received = received.slice(at + end.length)
        if (isMessage) {
          isMessage = false
          const answer = reply('.', recipients)
          if (answer === undefined) mails.push(recipients)
          socket.write(`${answer ?? '250 queued'}\r\n`)
          continue
        }
        commands.push(line)
        const answer = reply(line, recipients)
        if (/^(MAIL|RSET)/.test(line)) recipients = []
        if (line.startsWith('RCPT') && answer === undefined) recipients.push(line.slice('RCPT TO:<'.length, -1))
        if (line === 'DATA' && answer === undefined) isMessage = true
        socket.write(`${answer ?? (line === 'DATA' ? '354 go' : '250 ok')}\r\n`)
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const target = (config: object) => ({
    config: email.config.parse({ host: '127.0.0.1', port, tls: 'none', from: 'relay@acme.example', to: 'a@acme.example', ...config }),
    credentials: email.credentials.parse({}),
  })
  return {
    mails,
    commands,
    deliver: (config: object = {}, overrides: Parameters<typeof contextOf>[1] = {}) =>
      email.deliver(payloadOf(Buffer.from('x')), target(config), contextOf(outbound, overrides)),
    probe: (config: object = {}) => email.probe(target(config), contextOf(outbound)),
    [Symbol.asyncDispose]: async () => {
      server.close()
      await once(server, 'close')
    },
  }
}

const to = Array.from({ length: 12 }, (_, index) => `r${index}@acme.example`)

describe('a server that takes fewer recipients at a time', () => {
  test.each([
    '452 too many recipients',
    '452 4.5.3 Error: too many recipients',
    '552 too many',
    '452',
    '550 5.5.3 enough',
    '451 4.5.3 enough',
  ])('gets the others in further transactions, each recipient once: %s', async (answer) => {
    await using server = await start((line, { length }) => (line.startsWith('RCPT') && length === 5 ? answer : undefined))
    await server.deliver({ to })
    expect(server.mails.map(({ length }) => length)).toEqual([5, 5, 2])
    expect(server.mails.flat()).toEqual(to)
    expect(await server.probe({ to })).toContain('all recipients')
    expect(server.mails).toHaveLength(3)
  })

  test('is asked for no more if it announces the number', async () => {
    await using server = await start((line) => (line.startsWith('EHLO') ? '250-me\r\n250 LIMITS RCPTMAX=7' : undefined))
    await server.deliver({ to })
    expect(server.mails.map(({ length }) => length)).toEqual([7, 5])
  })

  test('gets no mail if it refuses one of the others, or takes nobody', async () => {
    for (const answer of ['550 5.1.1 no such user', '452 4.2.2 mailbox full', '452 too many recipients']) {
      await using server = await start((line, { length }) => {
        if (!line.startsWith('RCPT')) return undefined
        if (line.includes('r11@')) return answer
        return length === 5 ? '452 too many recipients' : undefined
      })
      const error = failure(server.deliver({ to: to.slice(0, 5).concat(to.slice(11)) }))
      expect(await error).toMatchObject({ code: answer.startsWith('550') ? 'recipient_refused' : 'smtp_452' })
      expect(server.mails).toEqual([])
    }
  })

  test('one recipient at a time costs one transaction, and a second one is opened only then', async () => {
    await using server = await start(() => undefined)
    await server.deliver({ to })
    expect(server.commands.filter((line) => /^(MAIL|RSET)/.test(line))).toEqual(['MAIL FROM:<relay@acme.example>'])
  })

  test('a run after a lost worker sends to those who have not got the mail', async () => {
    let isBroken = true
    await using server = await start((line, { length }) => {
      if (line.startsWith('RCPT') && length === 5) return '452 too many recipients'
      return line === '.' && isBroken && length < 5 ? '451 4.3.0 later' : undefined
    })
    let saved: unknown
    await failure(server.deliver({ to }, { save: (state) => (saved = state) }))
    expect(server.mails.flat()).toEqual(to.slice(0, 10))
    isBroken = false
    await server.deliver({ to }, { saved })
    expect(server.mails.flat()).toEqual(to)
    await server.deliver({ to: to.slice(1) }, { saved })
    expect(server.mails.slice(3).flat()).toEqual(to.slice(1))
  })
})

describe('the name of the relay', () => {
  test('is the one of the destination', async () => {
    await using server = await start(() => undefined)
    await server.deliver({ helo_name: 'relay.acme.example' })
    expect(server.commands[0]).toBe('EHLO relay.acme.example')
  })

  test.each([['a b'], ['x\r\nQUIT'], ['-a.example'], [''], ['[1.2.3.4'], ['a'.repeat(256)]])('is not %j', (helo_name) => {
    const config = { host: 'mail.example', from: 'a@acme.example', to: 'b@acme.example' }
    expect(email.config.safeParse({ ...config, helo_name: '[IPv6:fd00::1]' }).success).toBe(true)
    expect(email.config.safeParse({ ...config, helo_name }).success).toBe(false)
  })

  test.each(['500 what?', '502 5.5.1 not implemented', '504 no', '550 no'])('goes to a server that knows HELO only: %s', async (answer) => {
    await using server = await start((line) => (line.startsWith('EHLO') ? answer : undefined))
    await server.deliver()
    expect(server.mails).toEqual([['a@acme.example']])
  })

  test.each([
    ['421 4.7.0 Try again later, closing connection. (EHLO)', 'smtp_421', false],
    ['501 Syntactically invalid EHLO argument(s)', 'helo_refused', true],
    ['550 5.7.1 bad name', 'smtp_550', false],
  ])('that is refused is in the error: %s', async (answer, code, permanent) => {
    await using server = await start((line) => (/^(EHLO|HELO)/.test(line) ? answer : undefined))
    const error = await failure(server.deliver({ helo_name: 'relay.acme.example' }))
    expect(error).toMatchObject({
      code,
      permanent,
      message: expect.stringContaining('the relay names itself relay.acme.example') as string,
    })
  })
})
