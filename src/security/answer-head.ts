import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

// Headers of an answer that need more are an error. Node's own limit is 16 KiB, and servers with long policies and cookies send more.
const headMaxBytes = 64 * 1024

/** What is known of the head of an answer, before or instead of what the parser says of it. */
export interface AnswerHead {
  /** The status, once its line has arrived. Informational answers (1xx) do not count. */
  status(): number | undefined
}

// Options of the parser in a request of Node's http module. The constructor of the request sets them.
interface ParserOptions {
  maxHeaderSize?: number
  insecureHTTPParser?: boolean
}

const heads = new WeakMap<ClientRequest, AnswerHead>()

/** Returns the head of the answer to a request that `acceptAnyHead` was called for. */
export const headOf = (request: ClientRequest): AnswerHead | undefined => heads.get(request)

/**
 * Makes a request accept heads of answers that servers in use send against the rules: line ends without CR, folded lines, a blank before the
 * colon, control characters, both forms of a length, and long ones. After such an answer, its connection is closed: a server or a proxy
 * that has read the head otherwise might see its end elsewhere, and the rest would be taken for the answer to the next request, perhaps of
 * another tenant. Call it before the request has a socket.
 */
export const acceptAnyHead = (request: ClientRequest): void => {
  Object.assign(request, { maxHeaderSize: headMaxBytes, insecureHTTPParser: true } satisfies ParserOptions)
  let text = ''
  let isStrict = true
  const read = (chunk: Buffer) => {
    let chunkAt = text.length
    text += chunk.toString('latin1', 0, Math.max(0, 2 * headMaxBytes - text.length))
    for (;;) {
      const end = endOfHead(text)
      moveColons(text.slice(0, end), chunk, chunkAt)
      if (end === undefined || !informationStart.test(text)) return
      isStrict &&= strictHead.test(text.slice(0, end))
      text = text.slice(end)
      chunkAt -= end
    }
  }
  heads.set(request, { status: () => statusIn(text) })
  request.once('socket', (socket: Socket) => {
    // Before the listener that parses the chunk, which may end the answer.
    socket.prependListener('data', read)
    const stop = () => void socket.off('data', read)
    request.once('close', stop).prependOnceListener('response', ({ statusCode = 0 }: IncomingMessage) => {
      // 101: the parser takes it for the answer, and reads no further. The answer itself may follow.
      if (statusCode < 200) return
      stop()
      const head = text.slice(0, endOfHead(text))
      if (!isStrict || !strictHead.test(head) || hasTwoLengths(head)) request.shouldKeepAlive = false
      text = ''
    })
  })
}

const statusLine = /^\s*HTTP\/\d(?:\.\d)?[ \t]+(\d{3})(?:[ \t][^\r\n]*)?[\r\n]/i
// RFC 9112: a status line, and fields of a token, a colon and a value.
const strictHead = /^HTTP\/1\.[01] \d{3}(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n$/

const statusIn = (text: string): number | undefined => {
  const status = Number(statusLine.exec(text)?.[1] ?? 0)
  return status >= 200 ? status : undefined
}

const informationStart = /^[\r\n]*HTTP\/\d\.\d +1\d\d\D/

const endOfHead = (text: string): number | undefined => {
  const end = /\n\r?\n/.exec(text)
  return end ? end.index + end[0].length : undefined
}

/** Moves colons before the blanks in front of them, the only one of these that the parser never accepts. The chunk begins in the head. */
const moveColons = (head: string, chunk: Buffer, chunkAt: number) => {
  for (const { index, 0: line, 1: blanks = '' } of head.matchAll(/\n[!#$%&'*+.^_`|~0-9A-Za-z-]+([ \t]+):/g)) {
    const at = index + line.length - 1 - blanks.length - chunkAt
    if (at >= 0) chunk.fill(' ', at, at + blanks.length + 1).write(':', at)
  }
}

const hasTwoLengths = (head: string): boolean => (head.match(/\r\n(?:content-length|transfer-encoding):/gi) ?? []).length > 1
