import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { request } from 'undici'
import { describeApi } from '../../../src/api/open-api/document.ts'
import { createReference } from '../../../src/api/open-api/reference.ts'

const servers: Server[] = []

const start = async (baseUrl?: string) => {
  const app = new Koa()
  app.use(createReference({ RELAY_BASE_URL: baseUrl }))
  const server = app.listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

afterAll(() => {
  for (const server of servers) server.close()
})

test('openapi.json lists the requested address as the server', async () => {
  const url = await start()
  const response = await fetch(`${url}/openapi.json`)
  const document = (await response.json()) as ReturnType<typeof describeApi>
  expect(response.headers.get('content-type')).toContain('application/json')
  expect(document.servers[0]!.url).toBe(`${url}/api/{userSlug}/{workspaceSlug}`)
  expect({ ...document, servers: [] }).toEqual({ ...describeApi(), servers: [] })
})

test('openapi.json lists RELAY_BASE_URL as the server if it is set', async () => {
  const url = await start('https://relay.example/')
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as ReturnType<typeof describeApi>
  expect(document.servers[0]!.url).toBe('https://relay.example/api/{userSlug}/{workspaceSlug}')
  expect((await fetch(`${url}/docs/reference`)).headers.get('content-security-policy')).toContain(
    "connect-src 'self' https://relay.example;",
  )
})

test('the page loads everything from the relay and has no inline script or style', async () => {
  const url = await start()
  const response = await fetch(`${url}/docs/reference`)
  const html = await response.text()
  expect(response.headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  )
  expect(html).not.toMatch(/<style|<script>|style=|onload|https?:\/\//)

  const linked = [...html.matchAll(/(?:src|href)="([a-z0-9.-]+)"/g)].map((match) => `docs/${match[1]!}`)
  expect(linked).toHaveLength(5)
  for (const path of linked) {
    const asset = await fetch(`${url}/${path}`)
    const bytes = await asset.arrayBuffer()
    expect({ path, status: asset.status, cached: asset.headers.get('cache-control') }).toEqual({
      path,
      status: 200,
      cached: 'public, max-age=86400',
    })
    expect(bytes.byteLength).toBe(Number(asset.headers.get('content-length')))
  }
})

test('the page that doc_url of an error names has the code', async () => {
  const html = await (await fetch(`${await start()}/docs/errors`)).text()
  expect(html).toContain('<a id="validation_failed"')
})

test('an unchanged asset is answered with 304', async () => {
  const url = await start()
  const first = await fetch(`${url}/docs/swagger-ui.css`, { method: 'HEAD' })
  // fetch() would add `cache-control: no-cache` to a request with this header.
  const again = await request(`${url}/docs/swagger-ui.css`, { headers: { 'if-modified-since': first.headers.get('last-modified')! } })
  expect({ status: again.statusCode, body: (await again.body.text()).length }).toEqual({ status: 304, body: 0 })
})

test.each(['/docs/package.json', '/docs/..%2fpackage.json', '/docs/swagger-ui.js', '/docs/nothing', '/openapi.json/x'])(
  'no other file is served: %s',
  async (path) => {
    expect((await fetch((await start()) + path)).status).toBe(404)
  },
)
