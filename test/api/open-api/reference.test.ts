import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { request } from 'undici'
import { describeApi } from '../../../src/api/open-api/document.ts'
import { createReference } from '../../../src/api/open-api/reference.ts'
import { errorStatus } from '../../../src/base/errors.ts'
import { errorCodes } from '../../../src/connectors/error-codes.ts'
import { refusals } from '../../../src/domain/refusal-codes.ts'

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
  expect((await fetch(`${url}/docs`)).headers.get('content-security-policy')).toContain("connect-src 'self' https://relay.example;")
})

test('the page loads everything from the relay and has no inline script or style', async () => {
  const url = await start()
  const response = await fetch(`${url}/docs`)
  const html = await response.text()
  expect(response.headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  )
  expect(html).not.toMatch(/<style|<script>|style=|onload|https?:\/\//)

  const linked = [...html.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map((match) => match[1]!)
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

test('the page of errors has a row for each code, at the address that doc_url of an error names', async () => {
  const url = await start()
  const response = await fetch(`${url}/docs/errors`)
  const html = await response.text()
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(html).not.toMatch(/<style|<script|style=|https?:\/\//)
  const ids = [...html.matchAll(/<tr id="([^"]+)">/g)].map((match) => match[1]!)
  expect(ids.filter((id) => !/^(?:delivery|source)-/.test(id)).toSorted()).toEqual(
    [...Object.keys(errorStatus), 'internal_error'].toSorted(),
  )
  expect(ids).toEqual(expect.arrayContaining(Object.keys(errorCodes).map((code) => `delivery-${code}`)))
  expect(ids).toEqual(expect.arrayContaining(Object.keys(refusals).map((code) => `source-${code}`)))
  expect(new Set(ids).size).toBe(ids.length)
  expect((await fetch(`${url}/docs/errors.css`)).headers.get('content-type')).toBe('text/css; charset=utf-8')
})

test('an unchanged asset is answered with 304', async () => {
  const url = await start()
  const first = await fetch(`${url}/docs/swagger-ui.css`, { method: 'HEAD' })
  // fetch() would add `cache-control: no-cache` to a request with this header.
  const again = await request(`${url}/docs/swagger-ui.css`, { headers: { 'if-modified-since': first.headers.get('last-modified')! } })
  expect({ status: again.statusCode, body: (await again.body.text()).length }).toEqual({ status: 304, body: 0 })
})

test.each(['/docs/package.json', '/docs/..%2fpackage.json', '/docs/swagger-ui.js', '/docs/', '/openapi.json/x'])(
  'no other file is served: %s',
  async (path) => {
    expect((await fetch((await start()) + path)).status).toBe(404)
  },
)
