import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo, LookupFunction, Socket } from 'node:net'
import { request } from 'undici'
import { messageOf } from '../../src/base/errors.ts'
import type { Route } from '../../src/security/dial.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { disposable } from '../support/disposable.ts'
import { share } from '../support/share.ts'

const connectTimeoutMs = 10_000

const names: Record<string, string[]> = {
  'old.example': ['2001:4860:4860::8888', '8.8.8.8'],
  'six.example': ['2001:4860:4860::8888'],
  'mixed.example': ['8.8.8.8', '10.0.0.1'],
  'here.example': ['127.0.0.1'],
  'outgoing.example': ['10.9.9.9'],
  'public.example': ['8.8.4.4'],
}
const lookup: LookupFunction = (host, _options, done) => {
  const found = names[host]?.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  if (found) done(null, found)
  else done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' }), [])
}

/** A proxy that says which targets it was asked for, and connects to none. */
const asked: string[] = []
const server = createServer().on('connect', ({ url }: IncomingMessage, socket: Socket) => {
  asked.push(url!)
  socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
afterAll(() => void server.close())
const proxyUrl = `http://relay:canary@127.0.0.1:${(server.address() as AddressInfo).port}`

const privateCidrs = ['127.0.0.0/8', '10.9.0.0/16']
const guard = (more: Partial<Parameters<typeof createOutboundGuard>[0]> = {}) =>
  share(disposable(createOutboundGuard({ allowedCidrs: privateCidrs, lookup, ...more }), (each) => each.close()))
const outbound = guard()

/** Asks a target. @returns why there is no answer, and what the proxy was asked for */
const ask = async (host: string, route: Route, from = outbound) => {
  asked.length = 0
  const dispatcher = from.dispatcher({ connectTimeoutMs, route })
  const failure = await request(`http://${host}:8080/`, { dispatcher }).then(() => 'answered', messageOf)
  expect(failure).not.toContain('canary')
  return { failure, asked: [...asked] }
}

test.each([
  ['old.example', '8.8.8.8:8080'],
  ['six.example', '[2001:4860:4860::8888]:8080'],
  ['mixed.example', '8.8.8.8:8080'],
  ['here.example', '127.0.0.1:8080'],
])('the proxy of a route is asked for the address of %s that was checked, and its failure tells the name only', async (host, target) => {
  expect(await ask(host, { proxyUrl })).toEqual({
    failure: `the proxy of proxy_url does not allow connections to ${host}:8080 (403)`,
    asked: [target],
  })
})

test.each<[string, string, Route]>([
  ['10.0.0.1', 'RELAY_ALLOWED_PRIVATE_CIDRS', { proxyUrl }],
  ['unknown.example', 'ENOTFOUND', { proxyUrl }],
  ['old.example', 'outside of allowed_cidrs', { proxyUrl, allowedCidrs: ['127.0.0.0/8', '2001:db8::/32'] }],
  ['here.example', 'that address is another machine', { proxyUrl: 'http://outgoing.example:3128' }],
  ['old.example', 'the proxy of proxy_url is at an address that targets must not have', { proxyUrl: 'http://10.0.0.1:3128' }],
  ['old.example', 'the proxy of proxy_url is at an address that targets must not have', { proxyUrl: 'http://169.254.169.254' }],
  [
    'old.example',
    'the proxy of proxy_url would get its user and password without TLS',
    { proxyUrl: 'http://relay:canary@public.example:3128' },
  ],
  ['old.example', 'the proxy of proxy_url cannot be reached (ENOTFOUND)', { proxyUrl: 'http://unknown.example:3128' }],
])('no proxy is asked for %s if it fails with: %s', async (host, failure, route) => {
  expect(await ask(host, route)).toEqual({ failure: expect.stringContaining(failure), asked: [] })
})

test.each<[host: string, noProxy: string[], outcome: string[] | string]>([
  ['here.example', ['127.0.0.0/8'], ['127.0.0.1:8080']],
  ['mixed.example', ['127.0.0.0/8', 'mixed.example'], ['8.8.8.8:8080']],
  ['old.example', ['127.0.0.0/8', '2001:4860::/32'], ['[2001:4860:4860::8888]:8080']],
  ['old.example', ['127.0.0.0/8'], 'adds old.example to RELAY_OUTBOUND_NO_PROXY'],
  ['8.8.8.8', ['127.0.0.0/8'], 'adds 8.8.8.8 to RELAY_OUTBOUND_NO_PROXY'],
  ['old.example', ['old.example'], 'adds its name to RELAY_OUTBOUND_NO_PROXY'],
])(
  'beside the proxy of the operator, the proxy of a route is asked for %s, where %j are reached directly: %j',
  async (host, noProxy, outcome) => {
    const strict = guard({ proxyUrl: 'http://127.0.0.1:9', noProxy })
    const { failure, asked: targets } = await ask(host, { proxyUrl }, strict)
    const isRefused = typeof outcome === 'string'
    expect(targets).toEqual(isRefused ? [] : outcome)
    expect(failure).toContain(isRefused ? outcome : 'does not allow connections')
    expect(await strict.refusalOfProxy(proxyUrl, host, connectTimeoutMs)).toEqual(isRefused ? expect.stringContaining(outcome) : undefined)
  },
)

test('the proxy of the operator is asked for the name, also if the addresses are restricted, which is checked before', async () => {
  const strict = guard({ proxyUrl, noProxy: ['none.invalid'] })
  expect((await ask('old.example', {}, strict)).asked).toEqual(['old.example:8080'])
  expect((await ask('old.example', { allowedCidrs: ['8.8.8.0/24'] }, strict)).asked).toEqual(['old.example:8080'])
  expect(await ask('old.example', { allowedCidrs: ['10.0.0.0/8'] }, strict)).toEqual({
    failure: expect.stringContaining('outside of allowed_cidrs'),
    asked: [],
  })
})

test('names that cannot be resolved now are no reason to refuse a proxy', async () => {
  expect(await outbound.refusalOfProxy('http://unknown.example:3128', 'old.example', connectTimeoutMs)).toBeUndefined()
  const strict = guard({ proxyUrl: 'http://127.0.0.1:9', noProxy: ['127.0.0.0/8'] })
  expect(await strict.refusalOfProxy(proxyUrl, 'unknown.example', connectTimeoutMs)).toBeUndefined()
})
