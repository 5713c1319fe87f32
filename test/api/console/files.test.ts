import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync, gzipSync } from 'node:zlib'
import Koa from 'koa'
import { createConsole, leadToConsole } from '../../../src/api/console/console.ts'
import { loadConsoleFiles, toJavaScript } from '../../../src/api/console/files.ts'
import { readConfig } from '../../../src/config/config.ts'
import { dispatch } from '../../../src/http/server.ts'
import { createAuthenticator } from '../../../src/security/api-keys.ts'
import { createKeyRing } from '../../../src/security/seal.ts'
import { disposable } from '../../support/disposable.ts'
import { logsTo } from '../../support/logs.ts'
import { share } from '../../support/share.ts'
import { until } from '../../support/until.ts'

const firstLoadMaxBytes = 100_000

const start = async (variables: Record<string, string> = {}) => {
  const app = new Koa()
  const config = readConfig(variables)
  const authenticator = createAuthenticator({
    findKey: async () => undefined,
    recordUse: async () => {},
    wrongKeys: { count: () => 0, wait: () => 0 },
  })
  const keyRing = createKeyRing([`first:${Buffer.alloc(32, 7).toString('base64')}`])
  app.use(
    dispatch({
      '': leadToConsole({ config, ...logsTo(lines) }),
      console: createConsole({
        config,
        authenticator,
        keyRing,
        eventStreams: { open: async () => {} },
        workspaceStates: { list: async () => [] },
        ...logsTo(lines),
      }),
    }),
  )
  app.use((context) => {
    context.body = 'not the console'
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, stop: () => server.close() }
}

const lines: string[] = []
const relay = share(disposable(await start(), (each) => each.stop()))

/** Requests a path without the headers that `fetch` adds, and without decoding the answer. */
const send = (path: string, headers: Record<string, string>) =>
  new Promise<{ status: number; encoding: string | undefined; bytes: Buffer }>((resolve, reject) => {
    const sent = request(relay.url + path, { headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode!, encoding: response.headers['content-encoding'], bytes: Buffer.concat(chunks) }),
      )
    })
    sent.on('error', reject)
    sent.end()
  })

const importMapOf = (html: string) => /<script type="importmap">(.*?)<\/script>/.exec(html)![1]!
const addressesOf = (html: string) => [
  ...new Set([...html.matchAll(/(?:href|src)="\.\/(assets\/[^"]+)"/g)].map(([, address]) => `/console/${address}`)),
]

test('the page allows scripts and styles of the relay only, and its import map by its digest', async () => {
  const response = await fetch(`${relay.url}/console`)
  const html = await response.text()
  const policy = response.headers.get('content-security-policy')!
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toContain('unsafe')
  const digest = createHash('sha256').update(importMapOf(html)).digest('base64')
  expect(policy).toContain(`script-src 'self' 'sha256-${digest}';`)
  expect(html.match(/<script/g)).toHaveLength(3)
  expect(html).not.toMatch(/<style| style="| on[a-z]+="/)
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
  })
})

test('the browser asks again for the page, and gets it only if it has changed', async () => {
  const { headers } = await fetch(`${relay.url}/console/documents`)
  expect((await send('/console/documents', { 'if-none-match': headers.get('etag')! })).status).toBe(304)
  expect((await send('/console/documents', { 'if-none-match': '"another"' })).status).toBe(200)
})

test('every file that the page names exists, may be cached for ever, and all together are small', async () => {
  const html = await (await fetch(`${relay.url}/console`)).text()
  const { imports } = JSON.parse(importMapOf(html)) as { imports: Record<string, string> }
  const addresses = [...new Set([...addressesOf(html), ...Object.values(imports).map((address) => `/console/${address.slice(2)}`)])]
  expect(addresses.length).toBeGreaterThan(15)
  // The texts of single screens, and those of errors, are loaded when they are needed.
  expect(addresses.filter((address) => address.includes('/texts/')).map((address) => address.split('/texts/')[1])).toEqual([
    'common.js',
    'plural.js',
  ])
  let total = gzipSync(html).length
  for (const address of addresses) {
    const response = await fetch(relay.url + address)
    expect({ address, status: response.status }).toEqual({ address, status: 200 })
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(response.headers.get('content-type')).toMatch(address.endsWith('.js') ? /^text\/javascript/ : /^(text\/css|image\/svg)/)
    const { encoding, bytes } = await send(address, { 'accept-encoding': 'gzip' })
    total += bytes.length
    if (encoding === 'gzip') expect(gunzipSync(bytes).toString()).toBe(await response.text())
    else expect(bytes.length).toBeLessThan(1_024)
  }
  expect(total).toBeLessThan(firstLoadMaxBytes)
})

test('the modules import files of the console, or packages that the import map names, and no types are left', async () => {
  const { files } = await loadConsoleFiles({})
  const html = await (await fetch(`${relay.url}/console`)).text()
  const { imports } = JSON.parse(importMapOf(html)) as { imports: Record<string, string> }
  const names = new Set(files.map(({ name }) => name))
  const modules = files.filter(({ name }) => name.endsWith('.js') && !name.startsWith('packages/'))
  expect(modules.length).toBeGreaterThan(15)
  for (const { name, body } of modules) {
    for (const [, specifier] of body.toString().matchAll(/^(?:import|export)\b[^'"\n]* from '([^']+)'/gm)) {
      const target = specifier!.startsWith('.') ? new URL(specifier!, `file:///${name}`).pathname.slice(1) : imports[specifier!]
      expect({ name, specifier, exists: specifier!.startsWith('.') ? names.has(target!) : target !== undefined }).toMatchObject({
        exists: true,
      })
    }
  }
})

test('the forms get the schemas of the requests with the modules', async () => {
  const schemas = { 'POST /things': { properties: { name: { type: 'string' } } } }
  const { files } = await loadConsoleFiles(schemas)
  const { body } = files.find(({ name }) => name === 'console/request-schemas.js')!
  expect(body.toString()).toContain(`Object.assign(requestSchemas, ${JSON.stringify(schemas)})`)
})

test('types are removed, and imports name the files that browsers load', () => {
  const source = "import type { A } from './a.ts'\nimport { b } from '../b.ts'\nexport const c = async (d: A): Promise<A> => b(d)\n"
  const text = toJavaScript(source)
  expect(text).toContain("import { b } from '../b.js'")
  expect(text).not.toMatch(/Promise|\.ts/)
})

test('a file of another version, or none at all, is not found; another method is not allowed', async () => {
  for (const path of ['/console/assets/0000000000000000/console/main.js', '/console/assets/../../package.json']) {
    const response = await fetch(relay.url + path)
    const text = await response.text()
    expect(text === 'not the console' || response.status === 404).toBe(true)
  }
  const posted = await fetch(`${relay.url}/console/documents`, { method: 'POST' })
  expect({ status: posted.status, allow: posted.headers.get('allow') }).toEqual({ status: 405, allow: 'GET, HEAD' })
  expect(await (await fetch(`${relay.url}/consoles`)).text()).toBe('not the console')
})

test('the address of the relay alone leads to the console', async () => {
  const response = await fetch(`${relay.url}/`)
  expect({ url: response.url, status: response.status }).toEqual({ url: `${relay.url}/console`, status: 200 })
  for (const [path, method] of [
    ['/', 'POST'],
    ['//', 'GET'],
  ] as const) {
    expect((await fetch(relay.url + path, { method })).url).toBe(relay.url + path)
  }
})

test('the log has the page, and at its usual level none of the files that the page loads', async () => {
  const html = await (await fetch(`${relay.url}/console`)).text()
  const [asset] = addressesOf(html)
  await (await fetch(relay.url + asset!)).text()
  const levelOf = (path: string) =>
    lines.map((line) => JSON.parse(line) as { path: string; level: string }).find((line) => line.path === path)?.level
  await until('both are logged', () => levelOf(asset!))
  expect({ page: levelOf('/console'), asset: levelOf(asset!) }).toEqual({ page: 'info', asset: 'debug' })
})

test('behind a proxy that adds a path, the addresses of the page begin with the path', async () => {
  const behind = await start({ RELAY_BASE_URL: 'https://relay.example/sap&more/' })
  const html = await (await fetch(`${behind.url}/console`)).text()
  const root = await fetch(`${behind.url}/`, { redirect: 'manual' })
  behind.stop()
  expect(root.headers.get('location')).toBe('/sap&more/console')
  expect(html).toContain('<base href="/sap&amp;more/console/">')
})
