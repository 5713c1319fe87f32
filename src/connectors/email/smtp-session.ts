import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import { Transform, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { plainText } from '../../base/text.ts'
import { DeliveryError, type AttemptContext } from '../connector.ts'
import { parseObject } from '../shared/cloud-api.ts'
import { during } from '../shared/operation.ts'
import { isRecipientTooMany, isTemporary, smtpError } from './errors.ts'
import { base64, plainResponse, xoauth2Response, type Login } from './login.ts'
import { portOf, type EmailConfig } from './schema.ts'
import { createReplies, type Reply } from './smtp-replies.ts'

/** An authenticated connection to a mail server. Every call ends with its answer, a timeout or the signal. */
export interface SmtpSession {
  /** The longest message that the server announces to accept. */
  sizeMaxBytes: number | undefined
  /**
   * Sends the envelope, with as many recipients as the server takes at a time.
   * @returns the recipients that need another envelope
   * @throws DeliveryError if the sender or one recipient is refused; then no recipient of this envelope receives the message
   */
  address(from: string, recipients: string[], sizeBytes: number): Promise<string[]>
  /**
   * Sends the message to the recipients of the envelope.
   * @returns the server's reply after it has accepted the message
   */
  send(message: Readable): Promise<Reply>
  /** Discards the envelope. */
  reset(): Promise<void>
  end(): void
}

/**
 * Connects, switches to TLS and logs in as configured.
 * @throws DeliveryError if the server refuses the connection or the login
 */
export const openSmtpSession = async (config: EmailConfig, login: Login | undefined, context: AttemptContext): Promise<SmtpSession> => {
  const { connectTimeoutMs: timeoutMs, idleTimeoutMs, outbound, signal } = context
  const { host, tls, ca_certificate: caCertificate } = config
  const port = portOf(config)
  // The parameters of a login are secret.
  const at = <Result>(operation: string, act: () => Promise<Result>) => during(`${operation} at ${host}:${port}`, act)
  let socket = await at('connection', () => outbound.connect({ host, port, timeoutMs, signal }))
  const stop = () => socket.destroy(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  const end = () => {
    signal.removeEventListener('abort', stop)
    if (socket.writable) socket.end('QUIT\r\n')
    socket.setTimeout(quitTimeoutMs, () => socket.destroy())
  }
  const secure = async () => {
    socket.setTimeout(0)
    socket = await at('TLS', () => outbound.secure(socket, { host, timeoutMs, caCertificate, signal }))
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
      const name = config.helo_name ?? ownName(socket)
      const reply = await ask(`EHLO ${name}`)
      if (isPositive(reply)) return reply.lines.map((line) => line.toUpperCase())
      // A server of RFC 821 knows HELO only (RFC 5321, 3.2). A server that refuses the name refuses it again, or closes the connection.
      const older = reply.code >= 500 ? await ask(`HELO ${name}`).catch(() => reply) : reply
      if (isPositive(older)) return []
      throw smtpError('connection', reply).reworded(undefined, (message) => `${message}; the relay names itself ${name}`)
    }

    await at('connection', async () => {
      const greeting = await replies.next()
      if (greeting.code !== 220) throw smtpError('connection', greeting)
    })
    let extensions = await at('EHLO', greet)
    if (tls === 'starttls') {
      if (!extensions.includes('STARTTLS')) {
        throw new DeliveryError(
          'tls_unsupported',
          'the server does not offer STARTTLS; set tls to implicit if it accepts TLS on another port',
        )
      }
      await at('STARTTLS', async () => {
        const reply = await ask('STARTTLS')
        if (reply.code !== 220) throw smtpError('connection', reply)
      })
      // Text that arrives before TLS is established may come from an attacker in the network.
      if (replies.release() !== '') throw new DeliveryError('tls_failed', 'the server sent more than its agreement to STARTTLS')
      await secure()
      replies = createReplies(socket)
      extensions = await at('EHLO', greet)
    }
    if (login) await at('login', () => logIn(ask, extensions, login))

    const sendData = async (message: Readable): Promise<Reply> => {
      const ready = await ask('DATA')
      if (ready.code !== 354) throw smtpError('message', ready)
      try {
        await pipeline(message, dotStuffed(), socket, { end: false, signal })
      } catch (thrown) {
        // A server that stops reading first sends the reason, then closes the connection.
        const early = replies.early()
        // Nothing may be sent any more: the server would take it for a part of the message.
        socket.destroy()
        throw early ? smtpError('message', early) : thrown
      }
      socket.setTimeout(Math.max(idleTimeoutMs, acceptTimeoutMs))
      const reply = await replies.next()
      if (!isPositive(reply)) throw smtpError('message', reply)
      return reply
    }
    const reset = () => at('RSET', async () => void (await ask('RSET')))
    const size = extensions.find((extension) => /^SIZE( |$)/.test(extension))
    // RFC 9422.
    const limits = extensions.find((extension) => extension.startsWith('LIMITS '))
    const recipientsMax = Number(/ RCPTMAX=(\d+)/.exec(limits ?? '')?.[1]) || Infinity
    return {
      sizeMaxBytes: Number(size?.slice(5)) || undefined,
      end,
      reset,
      address: async (from, recipients, sizeBytes) => {
        await at(`MAIL FROM:<${from}>`, async () => {
          const sender = await ask(`MAIL FROM:<${from}>${size === undefined ? '' : ` SIZE=${sizeBytes}`}`)
          if (!isPositive(sender)) throw smtpError('sender', sender, from)
        })
        const refused: { recipient: string; reply: Reply }[] = []
        let taken = 0
        for (const recipient of recipients.slice(0, recipientsMax)) {
          const reply = await at(`RCPT TO:<${recipient}>`, () => ask(`RCPT TO:<${recipient}>`))
          if (!isPositive(reply) && taken > 0 && isRecipientTooMany(reply)) break
          taken += 1
          if (!isPositive(reply)) refused.push({ recipient, reply })
        }
        // A permanent refusal, if there is one, decides whether the delivery is retried.
        const worst = refused.find(({ reply }) => !isTemporary('recipient', reply)) ?? refused[0]
        if (!worst) return recipients.slice(taken)
        // A server that hangs up after the refusal has said why.
        await reset().catch(() => {})
        const addresses = refused.map(({ recipient, reply }) => `${recipient} (${reply.code} ${reply.text})`).join(', ')
        return at('RCPT TO', () => Promise.reject(smtpError('recipient', worst.reply, addresses)))
      },
      send: (message) => at('DATA', () => sendData(message)),
    }
  } catch (thrown) {
    end()
    throw thrown
  }
}

// A client goes by the first digit of a code that it does not know (RFC 5321, 4.3.2).
const isPositive = ({ code }: Reply) => code >= 200 && code <= 299

// The time for an orderly end of the connection.
const quitTimeoutMs = 1_000
// A server may scan a message for viruses before it accepts it. A client that does not wait sends it twice (RFC 5321,
// 4.5.3.2.6).
const acceptTimeoutMs = 600_000

const endWhenIdle = (socket: Socket, idleTimeoutMs: number) => {
  // An unhandled 'error' event, after the last call has ended, would end the process.
  socket.on('error', () => {})
  socket.setTimeout(idleTimeoutMs, () => {
    socket.destroy(Object.assign(new Error(`no data for ${idleTimeoutMs} ms`), { code: 'ETIMEDOUT' }))
  })
}

/** Returns the name for EHLO: the qualified host name, or the address if there is none (RFC 5321, 4.1.4). */
const ownName = ({ localAddress = '127.0.0.1', localFamily }: Socket) => {
  const name = hostname()
  if (/^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/.test(name)) return name
  return localFamily === 'IPv6' ? `[IPv6:${localAddress}]` : `[${localAddress}]`
}

type Ask = (line: string) => Promise<Reply>

const logIn = async (ask: Ask, extensions: string[], login: Login) => {
  const methods =
    extensions
      .find((extension) => extension.startsWith('AUTH '))
      ?.split(' ')
      .slice(1) ?? []
  const unsupported = (wanted: string) => {
    const offered = methods.length > 0 ? `; it offers ${methods.join(', ')}` : ''
    return new DeliveryError('login_unsupported', `the server does not accept ${wanted}${offered}`)
  }
  if ('token' in login) {
    if (!methods.includes('XOAUTH2')) throw unsupported('a token (XOAUTH2)')
    return offerToken(ask, login)
  }
  let reply: Reply
  if (methods.includes('PLAIN')) reply = await ask(`AUTH PLAIN ${plainResponse(login)}`)
  else if (methods.includes('LOGIN')) {
    reply = await ask('AUTH LOGIN')
    for (const answer of [login.username, login.password]) if (reply.code === 334) reply = await ask(base64(answer))
  } else throw unsupported('a user name and password')
  if (reply.code !== 235) throw smtpError('login', reply)
}

// RFC 5321, 4.5.3.1.4. Includes CR LF.
const commandMaxCharacters = 512

const offerToken = async (ask: Ask, login: { username: string; token: string }) => {
  const response = xoauth2Response(login)
  const command = `AUTH XOAUTH2 ${response}`
  let reply = await ask(command.length + 2 <= commandMaxCharacters ? command : 'AUTH XOAUTH2')
  // The limit of a command does not apply to a response that follows it (RFC 4954, 4).
  if (reply.code === 334 && command.length + 2 > commandMaxCharacters) reply = await ask(response)
  if (reply.code === 235) return
  // The reason comes as a challenge. The server sends the refusal itself after an empty response.
  const reason = reply.code === 334 ? challengeOf(reply) : ''
  if (reply.code === 334) reply = await ask('')
  if (reply.code === 235) throw new DeliveryError('smtp_failure', 'the server accepted an empty response as a login')
  const error = smtpError('login', reply)
  throw error.reworded(undefined, (message) => `${message}; it refuses the token for ${login.username}${reason && ` (${reason})`}`)
}

const challengeMaxCharacters = 300

/** Returns the reason in a challenge: base64 of JSON such as `{"status":"401","schemes":"bearer","scope":"https://mail.google.com/"}`. */
const challengeOf = ({ text }: Reply): string => {
  const { status, schemes, scope } = parseObject(Buffer.from(text, 'base64').toString())
  const reason = Object.entries({ status, schemes, scope })
    .filter(([, value]) => typeof value === 'string' || typeof value === 'number')
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ')
  return plainText(reason, challengeMaxCharacters)
}

const [dot, lineFeed] = [0x2e, 0x0a]

/**
 * Doubles a dot at the beginning of a line and appends the end of the message (RFC 5321, 4.5.2). Lines must end with CR
 * LF.
 */
const dotStuffed = () => {
  let atLineStart = true
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      const stuffed: Buffer[] = []
      let from = 0
      for (let at = chunk.indexOf(dot); at >= 0; at = chunk.indexOf(dot, at + 1)) {
        if (at === 0 ? !atLineStart : chunk[at - 1] !== lineFeed) continue
        stuffed.push(chunk.subarray(from, at), Buffer.from('.'))
        from = at
      }
      if (chunk.length > 0) atLineStart = chunk.at(-1) === lineFeed
      done(null, stuffed.length > 0 ? Buffer.concat([...stuffed, chunk.subarray(from)]) : chunk)
    },
    flush: (done) => done(null, `${atLineStart ? '' : '\r\n'}.\r\n`),
  })
}
