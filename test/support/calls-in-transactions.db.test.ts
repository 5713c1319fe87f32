import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { createTestDatabase } from './database.ts'

const server = createServer((_, response) => void response.end('ok')).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const calls: Record<string, () => Promise<unknown>> = {
  fetch: async () => (await fetch(`http://127.0.0.1:${port}`)).text(),
  request: async () => {
    const [response] = await once(request({ port, host: '127.0.0.1' }).end(), 'response')
    response.resume()
  },
  socket: async () => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.destroy()
  },
}

test.each(Object.keys(calls))('a call by %s between begin and commit fails the test, and one after the commit does not', async (name) => {
  const call = calls[name]!
  const clean = await createTestDatabase()
  await clean.db.transaction(async (trx) => {
    await trx.raw('select 1')
    // Another connection of the pool.
    await clean.db.raw('select 1')
  })
  await call()
  let later: Promise<unknown> | undefined
  const committed = Promise.withResolvers<void>()
  await clean.db.transaction(async () => {
    later = committed.promise.then(call)
  })
  committed.resolve()
  await later
  await expect(clean.drop()).resolves.toBeUndefined()

  const { db, drop } = await createTestDatabase()
  await db.transaction(async (trx) => {
    await trx.raw('select 1')
    await call()
  })
  await expect(drop()).rejects.toThrow(/between begin and commit/)
})
