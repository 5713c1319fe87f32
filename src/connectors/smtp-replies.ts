import type { Socket } from 'node:net'

export interface Reply {
  code: number
  /** Its lines without their codes, joined by a blank. */
  text: string
  lines: string[]
}

const replyMaxBytes = 64 * 1024
const wholeReply = /^(?:\d{3}-[^\n]*\n)*\d{3}(?: [^\n]*)?\n/

/** What a server says, one reply after the other. What ends the connection ends the waiting for a reply. */
export const createReplies = (socket: Socket) => {
  let received = ''
  let failure: Error | undefined
  let waiting: { resolve: (reply: Reply) => void; reject: (error: Error) => void } | undefined

  const settle = () => {
    const [reply] = wholeReply.exec(received) ?? []
    if (waiting === undefined) return
    if (reply !== undefined) {
      received = received.slice(reply.length)
      waiting.resolve(parse(reply))
    } else if (failure) waiting.reject(failure)
    else return
    waiting = undefined
  }
  const listen = (chunk: Buffer) => {
    received += chunk.toString('latin1')
    if (received.length > replyMaxBytes) socket.destroy(new Error('the server says more than any SMTP server would'))
    else settle()
  }
  const fail = (error: Error) => {
    failure ??= error
    settle()
  }
  const close = () => fail(Object.assign(new Error('the server closed the connection'), { code: 'ECONNRESET' }))
  socket.on('data', listen).on('error', fail).on('close', close).on('end', close)

  return {
    next: (): Promise<Reply> =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        settle()
      }),
    /** A reply that nobody has waited for yet. */
    early: (): Reply | undefined => {
      const [reply] = wholeReply.exec(received) ?? []
      return reply === undefined ? undefined : parse(reply)
    },
    /** Stops listening. @returns what came and was never asked for */
    release: (): string => {
      socket.off('data', listen).off('error', fail).off('close', close).off('end', close)
      return received
    },
  }
}

const parse = (reply: string): Reply => {
  const lines = Buffer.from(reply, 'latin1').toString().trimEnd().split(/\r?\n/)
  const texts = lines.map((line) =>
    line
      .slice(4)
      .replaceAll(/\p{Cc}+/gu, ' ')
      .trim(),
  )
  return { code: Number(reply.slice(0, 3)), text: texts.join(' '), lines: texts }
}
