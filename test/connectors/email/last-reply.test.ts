import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createEmail } from '../../../src/connectors/email/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { disposable } from '../../support/disposable.ts'
import { share } from '../../support/share.ts'
import { contextOf, failure, payloadOf } from '../payloads.ts'

const outbound = share(disposable(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }), (each) => each.close()))
const email = createEmail()

/** Starts a mail server that ends a message with this reply. @param text follows the codes of the others */
const start = async (reply: (socket: Socket) => void, text = ' fine') => {
  let mails = 0
  const server = createServer((socket) => {
    let isMessage = false
    let received = ''
    socket.on('error', () => {}).write(`220${text}\r\n`)
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
          mails += 1
          reply(socket)
        } else if (line === 'DATA') {
          isMessage = true
          socket.write(`354${text}\r\n`)
        } else if (line === 'QUIT') socket.end('221 bye\r\n')
        else socket.write(`250${text}\r\n`)
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const config = { host: '127.0.0.1', port, tls: 'none', from: 'relay@acme.example', to: 'archive@acme.example' }
  const target = { config: email.config.parse(config), credentials: email.credentials.parse({}) }
  return {
    deliver: () => email.deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound)),
    mails: () => mails,
    [Symbol.asyncDispose]: async () => {
      server.close()
      await once(server, 'close')
    },
  }
}

describe('a mail is delivered once its acceptance has begun to arrive', () => {
  test.each<[string, (socket: Socket) => void]>([
    ['250 and the end of the connection', (socket) => socket.end('250 queued\r\n')],
    ['250 and a reset', (socket) => socket.write('250 queued\r\n', () => socket.resetAndDestroy())],
    ['a line without its end', (socket) => socket.end('250 queued')],
    ['a line that ends with CR', (socket) => socket.end('250\r')],
    ['the first of several lines', (socket) => socket.end('250-queued\r\n')],
    ['several lines, the last of which breaks off', (socket) => socket.end('250-queued\r\n250-as 4711\r\n250 th')],
    ['another code that accepts', (socket) => socket.write('252 queued\r\n')],
    ['200', (socket) => socket.write('200 queued\r\n')],
    ['a code alone', (socket) => socket.write('250\r\n')],
    ['a code alone after a line', (socket) => socket.write('250-queued\r\n250\r\n')],
    ['a code and a tab', (socket) => socket.write('250\tqueued\r\n')],
    ['a line end without CR', (socket) => socket.write('250\n')],
  ])('%s', async (_, reply) => {
    await using server = await start(reply)
    expect(await server.deliver()).toMatchObject({ answer: { status: expect.any(Number) as number } })
    expect(server.mails()).toBe(1)
  })

  test.each<[string, (socket: Socket) => void, object]>([
    ['nothing', (socket) => socket.end(), { code: 'connection_lost', permanent: false }],
    ['a half code', (socket) => socket.end('25'), { code: 'connection_lost', permanent: false }],
    ['a code of four digits', (socket) => socket.end('2500'), { code: 'connection_lost', permanent: false }],
    ['the beginning of a refusal that passes', (socket) => socket.end('451-later'), { permanent: false }],
    ['the beginning of a refusal', (socket) => socket.end('554-no'), { permanent: true }],
  ])('and not before: %s', async (_, reply, error) => {
    await using server = await start(reply)
    expect(await failure(server.deliver())).toMatchObject(error)
  })
})

test('a server may send codes without a text', async () => {
  await using server = await start((socket) => socket.write('250\r\n'), '')
  expect(await server.deliver()).toMatchObject({ answer: { status: 250 } })
})
