import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

/** A mail that the server has accepted. */
export interface Mail {
  from: string
  to: string[]
  /** Digest and length of the attachment, computed while it was received. */
  attachment: { sha256: string; sizeBytes: number } | undefined
  /** The message as it was received, or its beginning if it is long. */
  raw: Buffer
  parsed: Email
}

export interface MailServer extends AsyncDisposable {
  port: number
  mails: Mail[]
  /** Returns the number of connections since the start. */
  sessions(): number
  /** Sets the answers to all following commands. */
  answerWith(handlers: Pick<SMTPServerOptions, 'onMailFrom' | 'onRcptTo' | 'onData'>): void
  stop(): Promise<void>
}

const keptMaxBytes = 1024 * 1024

/** Starts an SMTP server that keeps the mails it receives. */
export const startMailServer = async (options: SMTPServerOptions = {}): Promise<MailServer> => {
  const mails: Mail[] = []
  let handlers: Parameters<MailServer['answerWith']>[0] = {}
  let sessions = 0
  const server = new SMTPServer({
    disableReverseLookup: true,
    logger: false,
    closeTimeout: 500,
    onConnect: (_session, done) => {
      sessions += 1
      done()
    },
    onMailFrom: (address, session, done) => (handlers.onMailFrom ? handlers.onMailFrom(address, session, done) : done()),
    onRcptTo: (address, session, done) => (handlers.onRcptTo ? handlers.onRcptTo(address, session, done) : done()),
    onData: (stream, session, done) => {
      if (handlers.onData) return handlers.onData(stream, session, done)
      const { mailFrom, rcptTo } = session.envelope
      readMail(stream).then(
        (mail) => {
          mails.push({ ...mail, from: mailFrom ? mailFrom.address : '', to: rcptTo.map(({ address }) => address) })
          done(null, 'queued as 4711')
        },
        // The client has disconnected.
        () => {},
      )
    },
    ...options,
  })
  // Some tests disconnect during the TLS handshake.
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const stop = () => new Promise<void>((resolve) => server.close(() => resolve()))
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    sessions: () => sessions,
    answerWith: (next) => {
      handlers = next
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/**
 * Decodes the attachment while it is received: a message of hundreds of MiB must not be in the memory of a test that
 * measures memory.
 */
const readMail = async (stream: Readable): Promise<Omit<Mail, 'from' | 'to'>> => {
  const kept: Buffer[] = []
  let keptBytes = 0
  let head = ''
  let state: 'head' | 'attachment' | 'tail' = 'head'
  let encoded = ''
  const hash = createHash('sha256')
  let sizeBytes = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (keptBytes < keptMaxBytes) kept.push(chunk)
    keptBytes += chunk.length
    let text = chunk.toString('latin1')
    if (state === 'head') {
      head += text
      const start = /\r\nContent-Disposition: attachment[^]*?\r\n\r\n/i.exec(head)
      if (!start) continue
      state = 'attachment'
      text = head.slice(start.index + start[0].length)
    }
    if (state === 'tail') continue
    // Base64 has no hyphen, with which the next boundary begins.
    const end = text.indexOf('-')
    if (end >= 0) state = 'tail'
    encoded += end < 0 ? text : text.slice(0, end)
    // A complete line encodes complete bytes.
    const whole = encoded.lastIndexOf('\n') + 1
    const bytes = Buffer.from(encoded.slice(0, whole), 'base64')
    encoded = encoded.slice(whole)
    hash.update(bytes)
    sizeBytes += bytes.length
  }
  const raw = Buffer.concat(kept)
  return {
    attachment: state === 'head' ? undefined : { sha256: hash.digest('hex'), sizeBytes },
    raw,
    parsed: await PostalMime.parse(raw),
  }
}
