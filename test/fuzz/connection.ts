import { connect } from 'node:net'

const quietMs = 100
const timeoutMs = 60_000

/**
 * Sends bytes on a connection of their own.
 * @param options.isComplete false if the bytes may be less than a request: the client then closes its side once the relay is silent
 * @returns everything that the relay sent until it closed the connection
 */
export const exchangeBytes = (port: number, bytes: Buffer, { isComplete }: { isComplete: boolean }): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const received: Buffer[] = []
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const timeout = setTimeout(() => {
      socket.destroy()
      reject(new Error(`the connection was not closed within ${timeoutMs} ms`))
    }, timeoutMs)
    const closeOurSide = isComplete ? undefined : setTimeout(() => socket.end(), quietMs)
    socket.on('data', (data) => received.push(data))
    socket.on('end', () => socket.end())
    // A reset is one of the ways in which the relay closes a connection.
    socket.on('error', () => {})
    socket.once('close', () => {
      clearTimeout(timeout)
      clearTimeout(closeOurSide)
      resolve(Buffer.concat(received))
    })
    socket.write(bytes)
  })

export interface RawAnswer {
  status: number
  /** Keyed by name in lower case. */
  headers: Record<string, string>
  body: Buffer
}

/**
 * Splits what a server has sent into its answers.
 * @param isHead true if the first answer has no body whatever its headers say
 * @param isCut true if the last one may be incomplete, and is then left out
 */
export const parseAnswers = (bytes: Buffer, isHead: boolean, isCut = false): RawAnswer[] => {
  const answers: RawAnswer[] = []
  let rest = bytes
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n')
    const [statusLine = '', ...lines] = rest
      .subarray(0, end < 0 ? rest.length : end)
      .toString('latin1')
      .split('\r\n')
    if (isCut && end < 0) return answers
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1])
    if (end < 0 || Number.isNaN(status)) throw new Error(`not an answer: ${JSON.stringify(rest.subarray(0, 300).toString('latin1'))}`)
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    )
    rest = rest.subarray(end + 4)
    if (status < 200) continue
    const hasBody = !(isHead && answers.length === 0) && status !== 204 && status !== 304
    const { body, length } = hasBody ? bodyOf(rest, headers) : { body: Buffer.alloc(0), length: 0 }
    if (isCut && body.length < Number(headers['content-length'] ?? 0) && hasBody) return answers
    answers.push({ status, headers, body })
    rest = rest.subarray(length)
  }
  return answers
}

const bodyOf = (rest: Buffer, headers: Record<string, string>): { body: Buffer; length: number } => {
  if (headers['transfer-encoding'] !== 'chunked') {
    const length = Number(headers['content-length'] ?? rest.length)
    return { body: rest.subarray(0, length), length }
  }
  const chunks: Buffer[] = []
  for (let at = 0; ;) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size = Number.parseInt(rest.subarray(at, lineEnd).toString('latin1'), 16)
    if (lineEnd < 0 || Number.isNaN(size)) return { body: Buffer.concat(chunks), length: rest.length }
    at = lineEnd + 2 + size + 2
    if (size === 0) return { body: Buffer.concat(chunks), length: at }
    chunks.push(rest.subarray(lineEnd + 2, lineEnd + 2 + size))
  }
}
