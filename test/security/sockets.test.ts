import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { Worker } from 'node:worker_threads'
import { openSocket, timeLimit } from '../../src/security/sockets.ts'

const listen = async (address: string, port = 0) => {
  const server = createServer((socket) => socket.on('error', () => {})).listen(port, address)
  await once(server, 'listening')
  return server
}

const portOf = (server: Server) => (server.address() as AddressInfo).port

/** Starts a server that accepts no connection until `release`: its queue of one is full, so the network drops further ones, and they come again. */
const listenSlowly = async (address: string) => {
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(
    `const { workerData, parentPort } = require('node:worker_threads')
     const server = require('node:net').createServer((socket) => socket.on('error', () => {}))
     server.listen({ host: workerData.address, port: 0, backlog: 1 }, () => {
       parentPort.postMessage(server.address().port)
       setTimeout(() => Atomics.wait(workerData.gate, 0, 0))
     })`,
    { eval: true, workerData: { gate, address } },
  )
  const [port] = (await once(worker, 'message')) as [number]
  await new Promise((done) => setTimeout(done, 100))
  const limit = AbortSignal.timeout(60_000)
  const queued = await Promise.all([1, 2].map(() => openSocket(address, port, [address], limit)))
  return {
    port,
    release: () => {
      Atomics.store(gate, 0, 1)
      Atomics.notify(gate, 0)
    },
    stop: async () => {
      queued.forEach((socket) => socket.destroy())
      Atomics.store(gate, 0, 1)
      Atomics.notify(gate, 0)
      await worker.terminate()
    },
  }
}

describe('a host with several addresses', () => {
  test('is reached at the first one if that is slow and the second one refuses', async () => {
    const slow = await listenSlowly('127.0.0.1')
    const opening = openSocket('two.example', slow.port, ['127.0.0.1', '127.0.0.2'], AbortSignal.timeout(60_000))
    setTimeout(slow.release, 600)
    const socket = await opening
    expect(socket.remoteAddress).toBe('127.0.0.1')
    socket.destroy()
    await slow.stop()
  })

  test('is reached at the last one while the others are silent', async () => {
    const slow = await listenSlowly('127.0.0.1')
    const server = await listen('127.0.0.3', slow.port)
    const socket = await openSocket('three.example', slow.port, ['127.0.0.1', '127.0.0.2', '127.0.0.3'], AbortSignal.timeout(60_000))
    expect(socket.remoteAddress).toBe('127.0.0.3')
    socket.destroy()
    server.close()
    await slow.stop()
  })

  test('opens one connection if the first one answers', async () => {
    const first = await listen('127.0.0.1')
    const second = await listen('127.0.0.2', portOf(first))
    let connections = 0
    second.on('connection', () => (connections += 1))
    const socket = await openSocket('two.example', portOf(first), ['127.0.0.1', '127.0.0.2'], AbortSignal.timeout(60_000))
    expect([socket.remoteAddress, connections]).toEqual(['127.0.0.1', 0])
    socket.destroy()
    first.close()
    second.close()
  })

  test('fails with the error of every address, or with the limit', async () => {
    const server = await listen('127.0.0.9')
    const port = portOf(server)
    const refused = openSocket('two.example', port, ['127.0.0.1', '127.0.0.2'], AbortSignal.timeout(60_000))
    await expect(refused).rejects.toMatchObject({
      code: 'ECONNREFUSED',
      message: expect.stringMatching(/127\.0\.0\.1.*127\.0\.0\.2/) as string,
    })
    server.close()

    const slow = await listenSlowly('127.0.0.1')
    const limit = timeLimit('no connection', 700)
    await expect(openSocket('two.example', slow.port, ['127.0.0.1', '127.0.0.2'], limit)).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    limit.stop()
    const over = AbortSignal.abort(new Error('over'))
    await expect(openSocket('two.example', slow.port, ['127.0.0.1'], over)).rejects.toThrow('over')
    await slow.stop()
  })

  test('is looked up if its addresses are not known', async () => {
    const server = await listen('127.0.0.1')
    const socket = await openSocket('127.0.0.1', portOf(server), undefined, AbortSignal.timeout(60_000))
    expect(socket.remoteAddress).toBe('127.0.0.1')
    socket.destroy()
    server.close()
    await expect(openSocket('not-there.invalid', 1, undefined, AbortSignal.timeout(60_000))).rejects.toMatchObject({
      code: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/) as string,
    })
  })
})
