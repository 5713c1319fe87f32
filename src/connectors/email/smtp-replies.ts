import type { Socket } from 'node:net'
import { plainText } from '../../base/text.ts'

export interface Reply {
  code: number
  /** The lines without their codes, joined by blanks. */
  text: string
  lines: string[]
}

const replyMaxBytes = 64 * 1024
// The lines of a reply have the same code (RFC 5321, 4.2.1), so the first one tells the outcome.
const begunReply = /^\d{3}[ \t\r\n-]/
// A code may stand alone (RFC 5321, 4.2).
const completeReply = /^(?:\d{3}-[^\n]*\n)*\d{3}(?:[ \t\r][^\n]*)?\n/

/**
 * Reads a server's replies from a socket, one after the other. The end of the connection ends a pending read: a reply that breaks off counts as
 * far as it has come, because a message that was accepted must not be sent again.
 */
export const createReplies = (socket: Socket) => {
  let received = ''
  let failure: Error | undefined
  let waiting: { resolve: (reply: Reply) => void; reject: (error: Error) => void } | undefined

  const completeRead = () => {
    const [reply] = completeReply.exec(received) ?? []
    if (waiting === undefined) return
    if (reply !== undefined) {
      received = received.slice(reply.length)
      waiting.resolve(parseReply(reply))
    } else if (failure && begunReply.test(received)) {
      waiting.resolve(parseReply(received))
      received = ''
    } else if (failure) waiting.reject(failure)
    else return
    waiting = undefined
  }
  const onData = (chunk: Buffer) => {
    received += chunk.toString('latin1')
    if (received.length > replyMaxBytes) socket.destroy(new Error(`the reply exceeds ${replyMaxBytes} bytes, which no SMTP server sends`))
    else completeRead()
  }
  const onError = (error: Error) => {
    failure ??= error
    completeRead()
  }
  const onClose = () => onError(Object.assign(new Error('the server closed the connection'), { code: 'ECONNRESET' }))
  socket.on('data', onData).on('error', onError).on('close', onClose).on('end', onClose)

  return {
    next: (): Promise<Reply> =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        completeRead()
      }),
    /** Returns a reply that has arrived before it is waited for. */
    early: (): Reply | undefined => {
      const [reply] = completeReply.exec(received) ?? []
      return reply === undefined ? undefined : parseReply(reply)
    },
    /** Stops reading. @returns bytes that have arrived and were not read */
    release: (): string => {
      socket.off('data', onData).off('error', onError).off('close', onClose).off('end', onClose)
      return received
    },
  }
}

const parseReply = (reply: string): Reply => {
  const lines = Buffer.from(reply, 'latin1').toString().trimEnd().split(/\r?\n/)
  // A challenge in base64 is longer than a message.
  const texts = lines.map((line) => plainText(line.slice(4), Number.POSITIVE_INFINITY))
  return { code: Number(reply.slice(0, 3)), text: texts.join(' '), lines: texts }
}
