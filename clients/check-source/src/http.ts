import type { Readable } from 'node:stream'
import { Agent } from 'undici'
import { isUntrustedCertificate, messageOf } from '../../../src/base/errors.ts'
import { Deviation } from './outcome.ts'

export interface Answer {
  /** The command and its method, for messages: `create by PUT`. */
  asked: string
  status: number
  reason: string
  /** Keyed by name in lower case. A value has one character per byte. */
  headers: Record<string, string>
  body: Buffer
}

export interface Sent {
  method?: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  headers?: Record<string, string>
  body?: string | Buffer | Readable
}

export interface HttpOptions {
  /** Wait for the answer, and for each next piece of it. */
  timeoutMs: number
  /** Ends a request that is running. */
  signal: AbortSignal
}

// More than the largest component of a check (64 MiB) with its headers.
const answerMaxBytes = 80 * 1024 * 1024
// A request that is neither stuck nor finished after this time fails. 64 MiB need it at 1.8 Mbit/s.
const requestMaxMs = 300_000
// The check of concurrent creates sends this many at a time.
const maxConnections = 8

const lost = 'Check the address (server, port, HTTP script), that the server runs, and the network and proxies between.'
const untrusted =
  'Let the server send a certificate that names this host, with the certificates of intermediate authorities. If its authority is private, ' +
  'set NODE_EXTRA_CA_CERTS to the PEM file of the authority.'

/** The server did not answer. */
export class NoAnswer extends Deviation {
  constructor(asked: string, thrown: unknown) {
    const { code } = thrown as { code?: unknown }
    super(
      `${asked} was not answered as a whole: ${messageOf(thrown)}`,
      typeof code === 'string' && isUntrustedCertificate(code) ? untrusted : lost,
    )
    this.name = 'NoAnswer'
  }
}

/** The name under which every request of a check comes. A server can tell them from those of source systems by it. */
export const checkAgent = 'content-server-check'

/** Creates an HTTP client that sends a query as it is written: a signature covers its bytes. */
export const createHttp = (address: URL, { timeoutMs, signal }: HttpOptions) => {
  const agent = new Agent({
    connections: maxConnections,
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  })

  return {
    /** @throws `NoAnswer` if no whole answer arrives */
    send: async (query: string, { method = 'GET', headers = {}, body }: Sent = {}, until = signal): Promise<Answer> => {
      const command = query.split('&', 1)[0]!
      const asked = method === 'GET' ? command : `${command} by ${method}`
      const bounded = AbortSignal.any([until, AbortSignal.timeout(requestMaxMs)])
      try {
        const path = `${address.pathname}?${query}`
        const { origin } = address
        const answer = await agent.request({
          origin,
          path,
          method,
          headers: { 'user-agent': checkAgent, ...headers },
          body: body ?? null,
          signal: bounded,
        })
        return {
          asked,
          status: answer.statusCode,
          reason: answer.statusText,
          headers: Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, String(value)])),
          body: await readAll(answer.body),
        }
      } catch (thrown) {
        until.throwIfAborted()
        if (thrown instanceof Deviation) throw thrown
        throw new NoAnswer(asked, thrown)
      }
    },

    close: () => agent.destroy(),
  }
}

const readAll = async (body: Readable): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += (chunk as Buffer).length
    if (bytes > answerMaxBytes) throw new Deviation(`an answer has more than ${answerMaxBytes} bytes`)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}
