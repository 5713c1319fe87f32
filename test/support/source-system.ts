import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { Agent, request } from 'undici'

export interface SourceAnswer {
  status: number
  reason: string
  /** Names in lower case. */
  headers: Record<string, string>
  body: Buffer
}

export interface PartToSend {
  /** As they shall stand on the wire. */
  headers: Record<string, string | number>
  body: string | Buffer
}

/** The bytes of a multipart body, as the interface's own examples have it. */
export const multipartBody = (boundary: string, parts: PartToSend[]): Buffer => {
  const pieces = parts.flatMap(({ headers, body }) => {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    return [`--${boundary}\r\n${lines.join('')}\r\n`, body, '\r\n']
  })
  const start = pieces.length > 0 ? [] : [`--${boundary}\r\n`]
  return Buffer.concat([...start, ...pieces, `--${boundary}--\r\n`].map((piece) => Buffer.from(piece)))
}

/** A part with the headers that the source system writes. */
export const part = (compId: string, body: string | Buffer, contentType = 'application/octet-stream'): PartToSend => ({
  headers: { 'X-compId': compId, 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) },
  body,
})

/** The same in an mCreate, which brings several documents. */
export const partOf = (docId: string, ...given: Parameters<typeof part>): PartToSend => {
  const { headers, body } = part(...given)
  return { headers: { 'X-docId': docId, ...headers }, body }
}

export interface CallOptions {
  method?: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  headers?: Record<string, string>
  body?: string | Buffer | Readable
}

/**
 * The caller's side of the content-server protocol, unsigned. `receiverUrl` is what an administrator would enter as the HTTP
 * script; `close` ends its connections.
 */
export const createSourceSystem = (receiverUrl: string, { repoId = 'Z1', pVersion = '0045' } = {}) => {
  const agent = new Agent({ connections: 20, headersTimeout: 100_000, bodyTimeout: 100_000 })

  /** Sends a query exactly as given: nothing is encoded. */
  const call = async (query: string, { method = 'GET', headers = {}, body }: CallOptions = {}): Promise<SourceAnswer> => {
    const answer = await request(`${receiverUrl}?${query}`, { dispatcher: agent, method, headers, body: body ?? null })
    return {
      status: answer.statusCode,
      reason: answer.statusText,
      headers: Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, String(value)])),
      body: Buffer.from(await answer.body.arrayBuffer()),
    }
  }

  const on = (command: string, docId: string, more = '') => `${command}&pVersion=${pVersion}&contRep=${repoId}&docId=${docId}${more}`

  return {
    call,

    create: (docId: string, body: string | Buffer | Readable, options: { compId?: string; headers?: Record<string, string> } = {}) =>
      call(on('create', docId, `&compId=${options.compId ?? 'data'}`), {
        method: 'PUT',
        headers: { 'content-type': 'application/octet-stream', ...options.headers },
        body,
      }),

    createParts: (docId: string, parts: PartToSend[], headers: Record<string, string> = {}) =>
      call(on('create', docId), {
        method: 'POST',
        headers: { 'content-type': 'multipart/form-data; boundary=KoZbnd01', ...headers },
        body: multipartBody('KoZbnd01', parts),
      }),

    /** Parts with an X-docId each; the first one's stands in the URL. */
    append: (docId: string, body: string | Buffer | Readable, compId = 'data') =>
      call(on('append', docId, `&compId=${compId}`), { method: 'PUT', body }),

    mCreate: (docId: string, parts: PartToSend[], more = '') =>
      call(on('mCreate', docId, more), {
        method: 'POST',
        headers: { 'content-type': 'multipart/form-data; boundary=MB7' },
        body: multipartBody('MB7', parts),
      }),

    update: (docId: string, body: string | Buffer | Readable, options: { compId?: string; headers?: Record<string, string> } = {}) =>
      call(on('update', docId, `&compId=${options.compId ?? 'data'}`), { method: 'PUT', headers: options.headers ?? {}, body }),

    updateParts: (docId: string, parts: PartToSend[]) =>
      call(on('update', docId), {
        method: 'POST',
        headers: { 'content-type': 'multipart/form-data; boundary=KoZbnd01' },
        body: multipartBody('KoZbnd01', parts),
      }),

    delete: (docId: string, more = '', method: 'GET' | 'DELETE' = 'GET') => call(on('delete', docId, more), { method }),

    get: (docId: string, more = '') => call(on('get', docId, more)),
    head: (docId: string, more = '') => call(on('get', docId, more), { method: 'HEAD' }),
    info: (docId: string, more = '') => call(on('info', docId, more)),
    docGet: (docId: string, more = '') => call(on('docGet', docId, more)),
    search: (docId: string, more: string) => call(on('search', docId, more)),
    serverInfo: (more = '') => call(`serverInfo&pVersion=${pVersion}${more}`),

    close: () => agent.close(),
  }
}

export type SourceSystem = ReturnType<typeof createSourceSystem>

/** A bare connection, for what no HTTP client would send. */
export const openSocket = async (port: number) => {
  const socket: Socket = connect(port, '127.0.0.1')
  const received: Buffer[] = []
  socket.on('data', (data) => received.push(data))
  // a reset is one of the ways in which a server ends a connection
  socket.on('error', () => {})
  // not by once(): that takes the reset for a failure
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await once(socket, 'connect')
  return {
    socket,
    send: (text: string | Buffer) =>
      new Promise<void>((resolve) => {
        socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text, () => resolve())
      }),
    /** What has come so far, one character a byte. */
    received: () => Buffer.concat(received).toString('latin1'),
    /** Everything that came until the server closed the connection. */
    untilClosed: async (): Promise<string> => {
      await closed
      return Buffer.concat(received).toString('latin1')
    },
  }
}
