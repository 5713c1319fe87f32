import { once } from 'node:events'
import http from 'node:http'
import type { LookupFunction } from 'node:net'
import { request } from 'undici'
import { DeliveryError } from '../../src/connectors/connector.ts'
import { webhook } from '../../src/connectors/webhook.ts'
import { createAddressJudge } from '../../src/security/address.ts'
import { BlockedAddressError, createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, parcelOf } from '../connectors/parcels.ts'
import { guardedHosts, shutHosts } from '../support/addresses.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'

const everyPrivateRange = ['127.0.0.0/8', '::1/128', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7']

const attempt = async (url: string, allowedCidrs: string[]): Promise<unknown> => {
  const outbound = createOutboundGuard({ allowedCidrs })
  const target = { config: webhook.config.parse({ url }), credentials: {} }
  const context = contextOf(outbound, { connectTimeoutMs: 300, idleTimeoutMs: 300 })
  try {
    return await webhook.deliver(parcelOf(Buffer.from('x')), target, context)
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

  test.each(shutHosts)('never reaches %s, not even where every private range is allowed', async (host) => {
    for (const cidrs of [[], everyPrivateRange]) {
      const error = await attempt(`http://${host}/`, cidrs)
      expect(error).toBeInstanceOf(DeliveryError)
      expect(error).toMatchObject({ code: 'blocked_address', permanent: true, answer: undefined })
    }
  })

  test.each(guardedHosts)('reaches %s by the allow-list only', async (host) => {
    const before = server.connections()
    expect(await attempt(`http://${host}:${server.port}/`, [])).toMatchObject({ code: 'blocked_address' })
    expect(server.connections()).toBe(before)
  })

  test('does not reach localhost by its absolute name either', async () => {
    const before = server.connections()
    // some systems know no such name
    const { code } = (await attempt(`http://localhost.:${server.port}/`, [])) as DeliveryError
    expect(['blocked_address', 'host_not_found']).toContain(code)
    expect(server.connections()).toBe(before)
  })

  test.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '169.253.1.1', '2606:4700::1', '2a00:1450:4001::1'])(
    'lets %s pass',
    (address) => {
      expect(createAddressJudge([])(address)).toBe(true)
    },
  )

  test('an allowed range opens itself and nothing beside it', () => {
    const mayReach = createAddressJudge(['10.1.0.0/16', '192.168.7.7', 'fd12::/16'])
    expect(['10.1.2.3', '192.168.7.7', 'fd12::5'].map(mayReach)).toEqual([true, true, true])
    expect(['10.2.0.1', '192.168.7.8', '127.0.0.1', 'fd13::5', '::ffff:10.1.2.3'].map(mayReach)).toEqual([
      false,
      false,
      false,
      false,
      false,
    ])
  })

  test.each(['0.0.0.0/0', '::/0', '169.254.0.0/16', '8.8.8.0/24', '10.0.0.0/7', 'office', '10.0.0.0/33'])(
    'refuses %s as an entry',
    (entry) => {
      expect(() => createAddressJudge([entry])).toThrow('RELAY_ALLOWED_PRIVATE_CIDRS')
    },
  )

  test('reaches what is allowed, by literal and by name', async () => {
    for (const host of ['127.0.0.1', 'localhost', '127.1']) {
      expect(await attempt(`http://${host}:${server.port}/`, ['127.0.0.0/8'])).toMatchObject({ answer: { status: 200 } })
    }
  })

  test('dials the address it judged, though the name leads elsewhere a moment later', async () => {
    const answers = ['127.0.0.2', '127.0.0.1']
    let asked = 0
    const rebinding: LookupFunction = (_host, _options, done) => done(null, [{ address: answers[asked++ % 2]!, family: 4 }])
    const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.2/32'], lookup: rebinding })
    const elsewhere = http.createServer((_, response) => response.end('the one that was judged')).listen(server.port, '127.0.0.2')
    await once(elsewhere, 'listening')
    const before = server.connections()

    const socket = await outbound.connect({ host: 'rebinding.example', port: server.port, timeoutMs: 1_000 })
    expect(socket.remoteAddress).toBe('127.0.0.2')
    socket.destroy()
    await expect(outbound.connect({ host: 'rebinding.example', port: server.port, timeoutMs: 1_000 })).rejects.toBeInstanceOf(
      BlockedAddressError,
    )

    expect(asked).toBe(2)
    expect(server.connections()).toBe(before)
    await outbound.close()
    elsewhere.close()
  })

  test('leaves out the forbidden ones among the addresses of a name', async () => {
    const mixed: LookupFunction = (_host, _options, done) =>
      done(null, [
        { address: '169.254.169.254', family: 4 },
        { address: '10.0.0.1', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ])
    const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'], lookup: mixed })
    const socket = await outbound.connect({ host: 'mixed.example', port: server.port, timeoutMs: 1_000 })
    expect(socket.remoteAddress).toBe('127.0.0.1')
    socket.destroy()
    await outbound.close()
  })

  test('guards all three ways out', async () => {
    const outbound = createOutboundGuard({ allowedCidrs: [] })
    const options = { connectTimeoutMs: 1_000 }
    for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
      const bare = host.replace(/[[\]]/g, '')
      await expect(outbound.connect({ host: bare, port: server.port, timeoutMs: 1_000 })).rejects.toMatchObject({ code: 'blocked_address' })
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

  test('gives up on time, and at once when told to', async () => {
    const never: LookupFunction = () => {}
    const outbound = createOutboundGuard({ allowedCidrs: [], lookup: never })
    await expect(outbound.connect({ host: 'silent.example', port: 1, timeoutMs: 100 })).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('told to')), 50)
    await expect(outbound.connect({ host: 'silent.example', port: 1, timeoutMs: 10_000, signal: controller.signal })).rejects.toThrow(
      'told to',
    )
    await outbound.close()
  })
})
