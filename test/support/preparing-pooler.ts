import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

// A double of a pooler that prepares the statements of its clients in its sessions, as PgBouncer 1.21 and later do: it gives them names of its
// own. Debian's PgBouncer is older. It has no pool: each connection has one session. test/pgbouncer.release.test.ts runs with a real one.

const ownName = (name: string): string => (name === '' ? '' : `POOLER ${name}`)

/** Reads a text that ends with a zero byte. @returns the text, and the position behind it */
const readText = (body: Buffer, from: number): [string, number] => {
  const end = body.indexOf(0, from)
  return [body.toString('utf8', from, end), end + 1]
}

/** Replaces the name of the statement in the body of a message of a client. */
const renamed = (type: string, body: Buffer): Buffer => {
  const [portal, afterPortal] = type === 'B' ? readText(body, 0) : ['', 0]
  const isOfStatement = type === 'P' || type === 'B' || ((type === 'D' || type === 'C') && body[0] === 'S'.charCodeAt(0))
  if (!isOfStatement) return body
  const head = type === 'B' ? `${portal}\0` : type === 'P' ? '' : 'S'
  const [name, rest] = readText(body, type === 'B' ? afterPortal : head.length)
  return Buffer.concat([Buffer.from(`${head}${ownName(name)}\0`), body.subarray(rest)])
}

/** Passes the messages of a client on, the first of which has no type. */
const passMessages = (client: Socket, session: Socket): void => {
  let received = Buffer.alloc(0)
  let hasBegun = false
  client.on('data', (data: Buffer) => {
    received = Buffer.concat([received, data])
    for (;;) {
      const at = hasBegun ? 1 : 0
      if (received.length < at + 4) return
      const end = at + received.readInt32BE(at)
      if (received.length < end) return
      const type = hasBegun ? String.fromCharCode(received[0]!) : ''
      const body = renamed(type, received.subarray(at + 4, end))
      const length = Buffer.alloc(4)
      length.writeInt32BE(body.length + 4)
      session.write(Buffer.concat([Buffer.from(type), length, body]))
      received = received.subarray(end)
      hasBegun = true
    }
  })
}

/** Starts a pooler in front of a database. */
export const startPreparingPooler = async (databaseUrl: string) => {
  const url = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const session = connect(Number(url.port), url.hostname)
    for (const [one, other] of [
      [client, session],
      [session, client],
    ] as const) {
      sockets.add(one)
      one
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(one)
          other.destroy()
        })
    }
    session.pipe(client)
    passMessages(client, session)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const pooled = new URL(databaseUrl)
  pooled.hostname = '127.0.0.1'
  pooled.port = String((server.address() as AddressInfo).port)
  return {
    url: pooled.href,
    stop: async () => {
      for (const each of sockets) each.destroy()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}
