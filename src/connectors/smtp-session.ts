import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import { Transform, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { DeliveryError, type AttemptContext, type Target } from './connector.ts'
import { portOf, type EmailConfig, type EmailCredentials } from './email-target.ts'
import { isPassing, refusal } from './smtp-refusal.ts'
import { createReplies, type Reply } from './smtp-replies.ts'

/** A connection on which we may send. Every wait in it ends: by the answer, the clock or the signal. */
export interface SmtpSession {
  /** The longest message that the server says it takes. */
  sizeMaxBytes: number | undefined
  /** Names sender and recipients. @throws DeliveryError where one of them is refused: then nobody is to get the message */
  address(from: string, recipients: string[], sizeBytes: number): Promise<void>
  /** Sends to those addressed. @returns what the server said when it took the message over */
  send(message: Readable): Promise<Reply>
  /** Takes back what was addressed. */
  reset(): Promise<void>
  end(): void
}

/** @throws DeliveryError where a password would go over a line that anybody can read, or the server refuses us */
export const openSmtpSession = async (
  { config, credentials }: Target<EmailConfig, EmailCredentials>,
  context: AttemptContext,
): Promise<SmtpSession> => {
  const { connectTimeoutMs: timeoutMs, idleTimeoutMs, outbound, signal } = context
  const { host, tls, ca_certificate: caCertificate } = config
  if (tls === 'none' && credentials.password !== undefined) {
    throw new DeliveryError('tls_required', 'a password is not sent without TLS: set tls to starttls or implicit', { permanent: true })
  }
  let socket = await outbound.connect({ host, port: portOf(config), timeoutMs, signal })
  const stop = () => socket.destroy(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  const end = () => {
    signal.removeEventListener('abort', stop)
    if (socket.writable) socket.end('QUIT\r\n')
    // long enough to say goodbye
    socket.setTimeout(farewellMs, () => socket.destroy())
  }
  const secure = async () => {
    socket.setTimeout(0)
    socket = await outbound.secure(socket, { host, timeoutMs, caCertificate, signal })
    endWhenIdle(socket, idleTimeoutMs)
  }
  try {
    endWhenIdle(socket, idleTimeoutMs)
    if (tls === 'implicit') await secure()
    let replies = createReplies(socket)
    const ask = async (line: string): Promise<Reply> => {
      socket.write(`${line}\r\n`)
      return replies.next()
    }
    const greet = async () => {
      const reply = await ask(`EHLO ${ownName(socket)}`)
      if (reply.code !== 250) throw refusal('connection', reply)
      return reply.lines.map((line) => line.toUpperCase())
    }

    const greeting = await replies.next()
    if (greeting.code !== 220) throw refusal('connection', greeting)
    let abilities = await greet()
    if (tls === 'starttls') {
      if (!abilities.includes('STARTTLS')) {
        throw new DeliveryError(
          'tls_unsupported',
          'the server offers no STARTTLS: set tls to implicit if it listens for TLS on another port',
        )
      }
      const reply = await ask('STARTTLS')
      if (reply.code !== 220) throw refusal('connection', reply)
      // what was said before the change-over anybody may have said
      if (replies.release() !== '') throw new DeliveryError('tls_failed', 'there was more on the line than the change-over to TLS')
      await secure()
      replies = createReplies(socket)
      abilities = await greet()
    }
    if (credentials.username !== undefined && credentials.password !== undefined) {
      await logIn(ask, abilities, credentials.username, credentials.password)
    }

    const reset = async () => void (await ask('RSET'))
    const size = abilities.find((ability) => /^SIZE( |$)/.test(ability))
    return {
      sizeMaxBytes: Number(size?.slice(5)) || undefined,
      end,
      reset,
      address: async (from, recipients, sizeBytes) => {
        const sender = await ask(`MAIL FROM:<${from}>${size === undefined ? '' : ` SIZE=${sizeBytes}`}`)
        if (sender.code !== 250) throw refusal('sender', sender, from)
        const refused: { recipient: string; reply: Reply }[] = []
        for (const recipient of recipients) {
          const reply = await ask(`RCPT TO:<${recipient}>`)
          if (reply.code < 200 || reply.code > 299) refused.push({ recipient, reply })
        }
        // the one that no repetition can mend, where there is one
        const gravest = refused.find(({ reply }) => !isPassing(reply)) ?? refused[0]
        if (!gravest) return
        await reset()
        throw refusal(
          'recipient',
          gravest.reply,
          refused.map(({ recipient, reply }) => `${recipient} (${reply.code} ${reply.text})`).join(', '),
        )
      },
      send: async (message) => {
        const ready = await ask('DATA')
        if (ready.code !== 354) throw refusal('message', ready)
        try {
          await pipeline(message, dotStuffed(), socket, { end: false, signal })
        } catch (thrown) {
          // a server that has had enough says why, and hangs up
          const early = replies.early()
          // not another word: whatever follows would belong to the message
          socket.destroy()
          throw early ? refusal('message', early) : thrown
        }
        socket.setTimeout(Math.max(idleTimeoutMs, takeOverTimeoutMs))
        const reply = await replies.next()
        if (reply.code !== 250) throw refusal('message', reply)
        return reply
      },
    }
  } catch (thrown) {
    end()
    throw thrown
  }
}

const farewellMs = 1_000
// A server may look for viruses before it takes a message over. Whoever does not wait sends it twice (RFC 5321, 4.5.3.2.6).
const takeOverTimeoutMs = 600_000

const endWhenIdle = (socket: Socket, idleTimeoutMs: number) => {
  // an error that nobody waits for any more
  socket.on('error', () => {})
  socket.setTimeout(idleTimeoutMs, () => {
    socket.destroy(Object.assign(new Error(`not a byte in ${idleTimeoutMs} ms`), { code: 'ETIMEDOUT' }))
  })
}

/** How we introduce ourselves: by a full name, or by our address where we have none (RFC 5321, 4.1.4). */
const ownName = ({ localAddress = '127.0.0.1', localFamily }: Socket) => {
  const name = hostname()
  if (/^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/.test(name)) return name
  return localFamily === 'IPv6' ? `[IPv6:${localAddress}]` : `[${localAddress}]`
}

const logIn = async (ask: (line: string) => Promise<Reply>, abilities: string[], username: string, password: string) => {
  const ways = abilities.find((ability) => ability.startsWith('AUTH '))?.split(' ') ?? []
  const encoded = (text: string) => Buffer.from(text).toString('base64')
  let reply: Reply
  if (ways.includes('PLAIN')) reply = await ask(`AUTH PLAIN ${encoded(`\0${username}\0${password}`)}`)
  else if (ways.includes('LOGIN')) {
    reply = await ask('AUTH LOGIN')
    for (const answer of [username, password]) if (reply.code === 334) reply = await ask(encoded(answer))
  } else {
    throw new DeliveryError('login_unsupported', `the server takes no password${ways[1] ? `, but ${ways.slice(1).join(', ')}` : ''}`, {
      permanent: true,
    })
  }
  if (reply.code !== 235) throw refusal('login', reply)
}

const [dot, lineFeed] = [0x2e, 0x0a]

/** A line that begins with a dot gets a second one, and the message its end (RFC 5321, 4.5.2). Takes lines that end with CR LF. */
const dotStuffed = () => {
  let atLineStart = true
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      const pieces: Buffer[] = []
      let from = 0
      for (let at = chunk.indexOf(dot); at >= 0; at = chunk.indexOf(dot, at + 1)) {
        if (at === 0 ? !atLineStart : chunk[at - 1] !== lineFeed) continue
        pieces.push(chunk.subarray(from, at), Buffer.from('.'))
        from = at
      }
      if (chunk.length > 0) atLineStart = chunk.at(-1) === lineFeed
      done(null, pieces.length > 0 ? Buffer.concat([...pieces, chunk.subarray(from)]) : chunk)
    },
    flush: (done) => done(null, `${atLineStart ? '' : '\r\n'}.\r\n`),
  })
}
