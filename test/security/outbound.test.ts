import { once } from 'node:events'
import http from 'node:http'
import type { LookupFunction } from 'node:net'
import { Worker } from 'node:worker_threads'
import { request } from 'undici'
import { DeliveryError } from '../../src/connectors/connector.ts'
import { createWebhook } from '../../src/connectors/webhook/index.ts'
import { createAddressFilter } from '../../src/security/address-filter.ts'
import { BlockedAddressError } from '../../src/security/dial.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, payloadOf } from '../connectors/payloads.ts'
import { blockedByDefaultHosts, alwaysBlockedHosts } from '../support/addresses.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'

const webhook = createWebhook()

const everyPrivateRange = ['127.0.0.0/8', '::1/128', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7']

// No test waits for this timeout. It only has to be longer than a connection to this machine takes.
const timeoutMs = 10_000

const attempt = async (url: string, allowedCidrs: string[]): Promise<unknown> => {
  const outbound = createOutboundGuard({ allowedCidrs })
  const target = { config: webhook.config.parse({ url }), credentials: {} }
  const context = contextOf(outbound, { connectTimeoutMs: timeoutMs, idleTimeoutMs: timeoutMs })
  try {
    return await webhook.deliver(payloadOf(Buffer.from('x')), target, context)
  } catch (thrown) {
    return thrown
  } finally {
    await outbound.close()
  }
}

describe('the outbound guard', () => {
  let server: HttpTarget
  beforeAll(async () => {
    server = await startHttpTarget()
  })
  afterAll(() => server.stop())

  test.each(alwaysBlockedHosts)('blocks %s even if every private range is allowed', async (host) => {
    for (const cidrs of [[], everyPrivateRange]) {
      const error = await attempt(`http://${host}/`, cidrs)
      expect(error).toBeInstanceOf(DeliveryError)
      expect(error).toMatchObject({ code: 'blocked_address', permanent: true, answer: undefined })
    }
  })

  test.each(blockedByDefaultHosts)('allows %s only if its range is allowed', async (host) => {
    const before = server.connections()
    expect(await attempt(`http://${host}:${server.port}/`, [])).toMatchObject({ code: 'blocked_address' })
    expect(server.connections()).toBe(before)
  })

  test('blocks localhost by its absolute name', async () => {
    const before = server.connections()
    // Some systems do not resolve this name.
    const { code } = (await attempt(`http://localhost.:${server.port}/`, [])) as DeliveryError
    expect(['blocked_address', 'host_not_found']).toContain(code)
    expect(server.connections()).toBe(before)
  })

  test('a target that resets connections at once has lost them, and is not blocked', async () => {
    // In a thread of its own, the target resets a connection while this thread still looks at it.
    const target = new Worker(
      `const { parentPort } = require('node:worker_threads')
       const server = require('node:net').createServer((socket) => socket.resetAndDestroy())
       server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`,
      { eval: true },
    )
    const [port] = (await once(target, 'message')) as [number]
    const outbound = createOutboundGuard({ allowedCidrs: everyPrivateRange })
    const codes = new Set<unknown>()
    for (let connection = 0; connection < 500; connection += 1) {
      try {
        const socket = await outbound.connect({ host: '127.0.0.1', port, timeoutMs })
        socket.on('error', () => {}).destroy()
      } catch (thrown) {
        codes.add((thrown as { code?: string }).code)
      }
    }
    expect([...codes].filter((code) => code !== 'ECONNRESET')).toEqual([])
    await outbound.close()
    await target.terminate()
  })

  test.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '169.253.1.1', '2606:4700::1', '2a00:1450:4001::1'])(
    'allows %s',
    (address) => {
      expect(createAddressFilter([]).isAllowed(address)).toBe(true)
    },
  )

  test('an allowed range allows only its own addresses', () => {
    const { isAllowed } = createAddressFilter(['10.1.0.0/16', '192.168.7.7', 'fd12::/16'])
    expect(['10.1.2.3', '192.168.7.7', 'fd12::5'].map(isAllowed)).toEqual([true, true, true])
    expect(['10.2.0.1', '192.168.7.8', '127.0.0.1', 'fd13::5', '::ffff:10.1.2.3'].map(isAllowed)).toEqual([
      false,
      false,
      false,
      false,
      false,
    ])
  })

  test.each(['0.0.0.0/0', '::/0', '169.254.0.0/16', '8.8.8.0/24', '10.0.0.0/7', 'office', '10.0.0.0/33'])(
    'refuses %s as an allowed range',
    (entry) => {
      expect(() => createAddressFilter([entry])).toThrow('RELAY_ALLOWED_PRIVATE_CIDRS')
    },
  )

  test('allows an address both as a literal and by name', async () => {
    for (const host of ['127.0.0.1', 'localhost', '127.1']) {
      expect(await attempt(`http://${host}:${server.port}/`, ['127.0.0.0/8'])).toMatchObject({ answer: { status: 200 } })
    }
  })

  test('connects to the checked address even if the name then resolves to another address', async () => {
    const answers = ['127.0.0.2', '127.0.0.1']
    let lookups = 0
    const rebinding: LookupFunction = (_host, _options, done) => done(null, [{ address: answers[lookups++ % 2]!, family: 4 }])
    const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.2/32'], lookup: rebinding })
    const otherServer = http.createServer((_, response) => response.end('the checked address')).listen(server.port, '127.0.0.2')
    await once(otherServer, 'listening')
    const before = server.connections()

    const socket = await outbound.connect({ host: 'rebinding.example', port: server.port, timeoutMs })
    expect(socket.remoteAddress).toBe('127.0.0.2')
    socket.destroy()
    await expect(outbound.connect({ host: 'rebinding.example', port: server.port, timeoutMs })).rejects.toBeInstanceOf(BlockedAddressError)

    expect(lookups).toBe(2)
    expect(server.connections()).toBe(before)
    await outbound.close()
    otherServer.close()
  })

  test('skips blocked addresses if a name has several', async () => {
    const mixed: LookupFunction = (_host, _options, done) =>
      done(null, [
        { address: '169.254.169.254', family: 4 },
        { address: '10.0.0.1', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ])
    const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'], lookup: mixed })
    const socket = await outbound.connect({ host: 'mixed.example', port: server.port, timeoutMs })
    expect(socket.remoteAddress).toBe('127.0.0.1')
    socket.destroy()
    await outbound.close()
  })

  test('blocks addresses for sockets, dispatchers and agents', async () => {
    const outbound = createOutboundGuard({ allowedCidrs: [] })
    const options = { connectTimeoutMs: timeoutMs }
    for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
      const address = host.replace(/[[\]]/g, '')
      await expect(outbound.connect({ host: address, port: server.port, timeoutMs })).rejects.toMatchObject({
        code: 'blocked_address',
      })
      for (const scheme of ['http', 'https']) {
        const url = `${scheme}://${host}:${server.port}/`
        await expect(request(url, { dispatcher: outbound.dispatcher(options) })).rejects.toMatchObject({ code: 'blocked_address' })
        const agent = outbound.agents(options)[scheme as 'http' | 'https']
        const client = scheme === 'http' ? http.get(url, { agent }) : (await import('node:https')).get(url, { agent })
        const [error] = (await once(client, 'error')) as [Error]
        expect(error).toMatchObject({ code: 'blocked_address' })
      }
    }
    await outbound.close()
  })

  test('rejects after the timeout, and immediately when aborted', async () => {
    const never: LookupFunction = () => {}
    const outbound = createOutboundGuard({ allowedCidrs: [], lookup: never })
    await expect(outbound.connect({ host: 'silent.example', port: 1, timeoutMs: 100 })).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('aborted by the test')), 50)
    await expect(outbound.connect({ host: 'silent.example', port: 1, timeoutMs: 10_000, signal: controller.signal })).rejects.toThrow(
      'aborted by the test',
    )
    await outbound.close()
  })
})
