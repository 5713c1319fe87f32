import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/**
 * What happens to the next COMMIT: PostgreSQL gets it and its answer is lost; it never gets it, because both connections are reset; or the
 * client's connection is reset, and PostgreSQL gets the COMMIT when `deliver` is called.
 */
type CommitFault = 'answer lost' | 'never sent' | 'delayed'

export interface CommitFaults extends AsyncDisposable {
  port: number
  /** Applies to the next COMMIT of any connection. */
  cutNext(fault: CommitFault): void
  /** Lets the delayed COMMIT through. */
  deliver(): void
}

/** Starts a proxy in front of PostgreSQL that cuts a connection during a COMMIT. */
export const startCommitFaults = async (targetPort: number): Promise<CommitFaults> => {
  const sockets = new Set<Socket>()
  let next: CommitFault | undefined
  let deliver = () => {}
  const server = createServer((client) => {
    const upstream = connect(targetPort, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    let isCut = false
    client.on('close', () => isCut || upstream.destroy())
    upstream.on('close', () => client.destroy())
    upstream.on('data', (chunk) => client.destroyed || client.write(chunk))
    client.on('data', (chunk) => {
      if (next === undefined || !/\bcommit\b/i.test(chunk.toString('latin1'))) {
        upstream.write(chunk)
        return
      }
      isCut = next !== 'never sent'
      if (next === 'answer lost') upstream.write(chunk)
      if (next === 'delayed') deliver = () => upstream.write(chunk)
      next = undefined
      client.resetAndDestroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    cutNext: (fault) => {
      next = fault
    },
    deliver: () => deliver(),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
