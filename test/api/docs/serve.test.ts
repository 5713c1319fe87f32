import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import Koa from 'koa'
import { request } from 'undici'
import { createDocs } from '../../../src/api/docs/serve.ts'

const files: Record<string, string> = {
  'index.html': '<p>index</p>',
  'install.html': `<p>${'install '.repeat(200)}</p>`,
  'connectors/README.html': '<p>connectors</p>',
  'connectors/webhook.html': '<p>webhook</p>',
  'deploy/haproxy/haproxy.cfg': '# a proxy',
  'relay.schema.json': '{}',
  'llms.txt': '- [Install](docs/install.md)\n',
}
let reads = 0
let server: Server
let url: string
beforeAll(async () => {
  const app = new Koa()
  app.use(
    createDocs(async () => async (place) => {
      reads++
      return Object.hasOwn(files, place) ? Buffer.from(files[place]!) : undefined
    }),
  )
  server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => server.close())

test.each([
  ['/docs/', 'index.html'],
  ['/docs/install', 'install.html'],
  ['/docs/install.html?query', 'install.html'],
  ['/docs/install.md', 'install.html'],
  ['/docs/README.md', 'index.html'],
  ['/docs/connectors/', 'connectors/README.html'],
  ['/docs/connectors/webhook', 'connectors/webhook.html'],
])('%s is the page %s', async (path, place) => {
  const response = await fetch(url + path)
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(await response.text()).toBe(files[place])
})

test('/docs leads to the folder by a relative address, so that a proxy may add a path', async () => {
  const { statusCode, headers, body } = await request(`${url}/docs`)
  await body.dump()
  expect([statusCode, headers['location']]).toEqual([302, 'docs/'])
})

test('a file has its own type, and a configuration is text', async () => {
  expect((await fetch(`${url}/docs/relay.schema.json`)).headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect((await fetch(`${url}/docs/deploy/haproxy/haproxy.cfg`)).headers.get('content-type')).toBe('text/plain; charset=utf-8')
})

test('/llms.txt is served where programs look for it, as text', async () => {
  const response = await fetch(`${url}/llms.txt`)
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(await response.text()).toBe(files['llms.txt'])
})

test('a page may load from the relay only, and runs no inline script', async () => {
  const { headers } = await fetch(`${url}/docs/install`)
  expect(headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  )
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('x-relay-request-id')).toMatch(/^\w{26}$/)
})

test.each([
  ['br', brotliDecompressSync],
  ['gzip', gunzipSync],
] as const)('a client that takes %s gets it, with a tag of its own, and 304 while the page is the same', async (encoding, decompress) => {
  const headers = { 'accept-encoding': encoding }
  const first = await request(`${url}/docs/install`, { headers })
  expect(first.headers['content-encoding']).toBe(encoding)
  expect(first.headers['vary']).toMatch(/accept-encoding/i)
  expect(decompress(Buffer.from(await first.body.arrayBuffer())).toString()).toBe(files['install.html'])
  const before = reads
  const again = await request(`${url}/docs/install`, { headers: { ...headers, 'if-none-match': String(first.headers['etag']) } })
  expect([again.statusCode, await again.body.text()]).toEqual([304, ''])
  expect(reads).toBe(before)
  const plain = await request(`${url}/docs/install`)
  await plain.body.dump()
  expect(plain.headers['etag']).not.toBe(first.headers['etag'])
})

test.each([
  '/docs/package.json',
  '/docs/..%2fpackage.json',
  '/docs/%2e%2e/package.json',
  '/docs/__proto__',
  '/docs//',
  '/docs/nothing/',
  '/docsx',
])('no other file is served: %s', async (path) => {
  const { statusCode, body } = await request(url + path)
  await body.dump()
  expect(statusCode).toBe(404)
})

test('other methods are not answered', async () => {
  for (const method of ['POST', 'PUT', 'DELETE'] as const) {
    const { statusCode, body } = await request(`${url}/docs/install`, { method })
    await body.dump()
    expect(statusCode).toBe(404)
  }
  const head = await request(`${url}/docs/install`, { method: 'HEAD' })
  expect([head.statusCode, await head.body.text()]).toEqual([200, ''])
})
