import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { Agent, request } from 'undici'

export interface SourceAnswer {
  status: number
  reason: string
  /** Keyed by name in lower case. */
  headers: Record<string, string>
  body: Buffer
}

export interface PartToSend {
  /** Sent exactly as they are. */
  headers: Record<string, string | number>
  body: string | Buffer
}

/** Random bytes that begin as a PDF. Others may begin as JSON or XML by chance, and are then shown redacted. */
export const opaqueBytes = (size: number) => Buffer.concat([Buffer.from('%PDF'), randomBytes(size)]).subarray(0, size)

/** Returns a multipart body in the format of the examples in the interface's documentation. */
export const multipartBody = (boundary: string, parts: PartToSend[], { line, afterBody } = { line: '\r\n', afterBody: '\r\n' }): Buffer => {
  const pieces = parts.flatMap(({ headers, body }) => {
    const headerLines = Object.entries(headers).map(([name, value]) => `${name}: ${value}${line}`)
    return [`--${boundary}${line}${headerLines.join('')}${line}`, body, afterBody]
  })
  const start = pieces.length > 0 ? [] : [`--${boundary}${line}`]
  return Buffer.concat([...start, ...pieces, `--${boundary}--${line}`].map((piece) => Buffer.from(piece)))
}

/** Returns a part with the headers that the source system sends. */
export const part = (compId: string, body: string | Buffer, contentType = 'application/octet-stream'): PartToSend => ({
  headers: { 'X-compId': compId, 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) },
  body,
})

/** Returns a part of an mCreate request, which creates several documents. */
export const partOf = (docId: string, ...component: Parameters<typeof part>): PartToSend => {
  const { headers, body } = part(...component)
  return { headers: { 'X-docId': docId, ...headers }, body }
}

export interface CallOptions {
  method?: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  headers?: Record<string, string>
  body?: string | Buffer | Readable
}

/**
 * Creates a client of the content-server protocol that does not sign. `receiverUrl` is the address that an administrator enters as the
 * HTTP script in the source system.
 */
export const createSourceSystem = (receiverUrl: string, { repoId = 'Z1', pVersion = '0045' } = {}) => {
  const agent = new Agent({ connections: 20, headersTimeout: 100_000, bodyTimeout: 100_000 })

  /** Sends a query without encoding it. */
  const call = async (query: string, { method = 'GET', headers = {}, body }: CallOptions = {}): Promise<SourceAnswer> => {
    const answer = await request(`${receiverUrl}?${query}`, { dispatcher: agent, method, headers, body: body ?? null })
    return {
      status: answer.statusCode,
      reason: answer.statusText,
      headers: Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, String(value)])),
      body: Buffer.from(await answer.body.arrayBuffer()),
    }
  }

  const queryOf = (command: string, docId: string, more = '') => `${command}&pVersion=${pVersion}&contRep=${repoId}&docId=${docId}${more}`

  return {
    call,

    create: (docId: string, body: string | Buffer | Readable, options: { compId?: string; headers?: Record<string, string> } = {}) =>
      call(queryOf('create', docId, `&compId=${options.compId ?? 'data'}`), {
        method: 'PUT',
        headers: { 'content-type': 'application/octet-stream', ...options.headers },
        body,
      }),

    createParts: (docId: string, parts: PartToSend[], headers: Record<string, string> = {}) =>
      call(queryOf('create', docId), {
        method: 'POST',
        headers: { 'content-type': 'multipart/form-data; boundary=KoZbnd01', ...headers },
        body: multipartBody('KoZbnd01', parts),
      }),

    append: (docId: string, body: string | Buffer | Readable, compId = 'data') =>
      call(queryOf('append', docId, `&compId=${compId}`), { method: 'PUT', body }),

    /** Sends parts with an X-docId each. The URL contains the docId of the first. */
    mCreate: (docId: string, parts: PartToSend[], more = '') =>
      call(queryOf('mCreate', docId, more), {
        method: 'POST',
        headers: { 'content-type': 'multipart/form-data; boundary=MB7' },
        body: multipartBody('MB7', parts),
      }),

    update: (docId: string, body: string | Buffer | Readable, options: { compId?: string; headers?: Record<string, string> } = {}) =>
      call(queryOf('update', docId, `&compId=${options.compId ?? 'data'}`), { method: 'PUT', headers: options.headers ?? {}, body }),

    updateParts: (docId: string, parts: PartToSend[]) =>
      call(queryOf('update', docId), {
        method: 'POST',
        headers: { 'content-type': 'multipart/form-data; boundary=KoZbnd01' },
        body: multipartBody('KoZbnd01', parts),
      }),

    delete: (docId: string, more = '', method: 'GET' | 'DELETE' = 'GET') => call(queryOf('delete', docId, more), { method }),

    get: (docId: string, more = '') => call(queryOf('get', docId, more)),
    head: (docId: string, more = '') => call(queryOf('get', docId, more), { method: 'HEAD' }),
    info: (docId: string, more = '') => call(queryOf('info', docId, more)),
    docGet: (docId: string, more = '') => call(queryOf('docGet', docId, more)),
    search: (docId: string, more: string) => call(queryOf('search', docId, more)),
    serverInfo: (more = '') => call(`serverInfo&pVersion=${pVersion}${more}`),

    close: () => agent.close(),
  }
}

/** Opens a TCP connection, for bytes that no HTTP client would send. */
export const openSocket = async (port: number) => {
  const socket: Socket = connect(port, '127.0.0.1')
  const received: Buffer[] = []
  socket.on('data', (data) => received.push(data))
  // A reset is one of the ways in which a server closes a connection.
  socket.on('error', () => {})
  // once() would reject on a reset.
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await once(socket, 'connect')
  return {
    socket,
    send: (text: string | Buffer) =>
      new Promise<void>((resolve) => {
        socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text, () => resolve())
      }),
    /** Returns the bytes received so far, one character per byte. */
    received: () => Buffer.concat(received).toString('latin1'),
    /** Waits until the server closes the connection. @returns everything that it sent */
    untilClosed: async (): Promise<string> => {
      await closed
      return Buffer.concat(received).toString('latin1')
    },
  }
}
