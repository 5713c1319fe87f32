import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

const withLine = (head: string, line: string) => head.replace('\r\n', `\r\n${line}\r\n`)

/** What servers in use make of the head of an answer, which ends with a blank line. */
export const oddHeads: Record<string, (head: string) => string> = {
  'a 100 Continue that nobody asked for': (head) => `HTTP/1.1 100 Continue\r\n\r\n${head}`,
  'a 100 Continue with a header': (head) => `HTTP/1.1 100 Continue\r\nServer: Microsoft-IIS/8.5\r\n\r\n${head}`,
  'a 100 Continue whose lines end with LF': (head) => `HTTP/1.1 100 Continue\n\n${head}`,
  'three 100 Continue': (head) => `${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(3)}${head}`,
  'a 102 Processing': (head) => `HTTP/1.1 102 Processing\r\n\r\n${head}`,
  'a 103 Early Hints': (head) => `HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n${head}`,
  'a 199 without a reason': (head) => `HTTP/1.1 199\r\n\r\n${head}`,
  'lines that end with LF': (head) => head.replaceAll('\r\n', '\n'),
  'one line that ends with LF': (head) => withLine(head, 'X-One: 1\nX-Two: 2'),
  'a header that is folded with blanks': (head) => withLine(head, "Content-Security-Policy: default-src 'self';\r\n    img-src *"),
  'a header that is folded with a tab': (head) => withLine(head, 'X-Folded: a\r\n\tb'),
  'a header that is folded with LF': (head) => withLine(head, 'X-Folded: a\n b'),
  'a blank before a colon': (head) => withLine(head, 'X-Blank : 1').replace('Content-Length:', 'Content-Length \t:'),
  'a control character in a header': (head) => withLine(head, 'X-Control: a\x01b\x7f'),
  'a zero byte in a header': (head) => withLine(head, 'X-Zero: a\0b'),
  'bytes above 127 in a header': (head) => withLine(head, 'X-Latin: \xfcber \xff'),
  'an empty header': (head) => withLine(head, 'X-Empty:'),
  'one header of 20 KB': (head) => withLine(head, `Set-Cookie: a=${'x'.repeat(20_000)}`),
  'headers of 60 KB': (head) => withLine(head, Array.from({ length: 60 }, (_, index) => `X-${index}: ${'x'.repeat(990)}`).join('\r\n')),
  'no reason': (head) => head.replace(/^(HTTP\/1\.1 \d{3})[^\r]*/, '$1'),
  'a long reason with bytes above 127': (head) => head.replace(/^(HTTP\/1\.1 \d{3})[^\r]*/, `$1 \xe4${'y'.repeat(500)}`),
}

export interface OddServer extends AsyncDisposable {
  port: number
  /** Number of connections since the start. */
  connections(): number
  /** Changes the heads of all following answers. */
  change(how: (head: string) => string): void
}

/** Starts a proxy that changes the heads of the answers of a server. The server must send each of them at the start of a piece. */
export const startOddServer = async (port: number): Promise<OddServer> => {
  let how = (head: string) => head
  let connections = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    connections += 1
    const upstream = connect(port, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => void (client.destroy(), upstream.destroy(), sockets.delete(socket)))
    }
    client.pipe(upstream)
    upstream.on('data', (bytes: Buffer) => {
      const text = bytes.toString('latin1')
      const end = text.startsWith('HTTP/1.1 ') ? text.indexOf('\r\n\r\n') + 4 : 0
      client.write(Buffer.from(`${end > 0 ? how(text.slice(0, end)) : ''}${text.slice(end)}`, 'latin1'))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    change: (next) => void (how = next),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** What is left, after its status line, of a head that breaks off or is unreadable. */
export const cutHeads: Record<string, (head: string) => string> = {
  'headers of 70 KB': (head) => withLine(head, `Set-Cookie: a=${'x'.repeat(70_000)}`),
  'a line without a colon': (head) => withLine(head, 'this is no header'),
  'two lengths that differ': (head) => withLine(head, 'Content-Length: 1\r\nContent-Length: 2'),
  'a length that is no number': (head) => withLine(head, 'Content-Length: many'),
}
