import type { Random } from './random.ts'

type Surface = 'receiver' | 'api' | 'bridge' | 'download' | 'reference' | 'probes' | 'elsewhere'

/** A request that is well-formed HTTP. Its texts are latin1: one character per byte. */
export interface FuzzRequest {
  surface: Surface
  method: string
  /** Path and query. */
  target: string
  headers: [name: string, value: string][]
  body?: Buffer
  isChunked?: boolean
}

/** Returns the bytes of a request. @param isLast the relay closes the connection after its answer */
export const serialize = ({ method, target, headers, body, isChunked }: FuzzRequest, isLast = true): Buffer => {
  const length: [string, string][] =
    body === undefined ? [] : isChunked ? [['Transfer-Encoding', 'chunked']] : [['Content-Length', String(body.length)]]
  const lines = [...headers, ...length, ...(isLast ? [['Connection', 'close']] : [])].map(([name, value]) => `${name}: ${value}\r\n`)
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1')
  if (body === undefined) return head
  return Buffer.concat([head, isChunked ? chunked(body) : body])
}

const chunked = (body: Buffer, sizeBytes = 700): Buffer => {
  const chunks: (Buffer | string)[] = []
  for (let at = 0; at < body.length; at += sizeBytes) {
    const data = body.subarray(at, at + sizeBytes)
    chunks.push(`${data.length.toString(16)}\r\n`, data, '\r\n')
  }
  return Buffer.concat([...chunks, '0\r\n\r\n'].map((chunk) => Buffer.from(chunk)))
}

/** Returns a text as it may stand in a URL: sometimes encoded more or less than necessary, or wrongly. */
export const encoded = (random: Random, text: string): string => {
  if (random.chance(0.95)) return encodeURIComponent(text.toWellFormed())
  return random.pick([
    () => Buffer.from(text).reduce((all, byte) => `${all}%${byte.toString(16).padStart(2, '0')}`, ''),
    () => encodeURIComponent(encodeURIComponent(text.toWellFormed())),
    () => `${encodeURIComponent(text.toWellFormed())}${random.pick(brokenEncodings)}`,
    () => Buffer.from(text.replaceAll(/[\s#\0]/g, '_')).toString('latin1'),
  ])()
}

const brokenEncodings = ['%', '%0', '%zz', '%00', '%ff', '%C3', '%ed%a0%80', '%u0041', '+', '%2e%2e%2f', '\xe4', '%0d%0aX-Injected:%201']
