import { createPostgresStore } from '../../src/content/postgres.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { createSigner } from '../support/signer.ts'
import { objstore, wire } from './objstore.ts'
import { createResources } from './resources.ts'

const { database, api, acme } = share(await startScene())
const signer = share(await createSigner('RSA 2048'))
const resources = createResources({ db: database.db, store: createPostgresStore(database.db), certificate: signer.pem })

const call = (method: string, path: string, body?: unknown, ifMatch?: string) =>
  acme.call(method, path, body, ifMatch === undefined ? {} : { headers: { 'if-match': ifMatch } })
const tagOf = async (path: string) => (await call('GET', path)).headers.get('etag')!

/** Resources with an entity tag, each with two different changes. */
const kinds: [path: string, create: () => Promise<string>, changes: [object, object]][] = [
  ['/repositories', async () => (await wire(acme, 'R1')).repositoryId, [{ name: 'B' }, { status: 'inactive' }]],
  ['/destinations', async () => (await wire(acme, 'R2')).destinationId, [{ name: 'B' }, { config: { prefix: 'in/' } }]],
  ['/connections', async () => (await wire(acme, 'R3')).connectionId, [{ name: 'B' }, { is_active: false }]],
  [
    '/notifications',
    async () => (await resources.byPath['/notifications/{id}']!(acme))['id']!,
    [{ name: 'B' }, { events: ['source.silent', 'destination.failing'] }],
  ],
  [
    '/event-subscriptions',
    async () => (await resources.byPath['/event-subscriptions/{id}']!(acme))['id']!,
    [{ name: 'B' }, { events: ['document.delivered'] }],
  ],
  ['/enrichments', async () => (await resources.byPath['/enrichments/{id}']!(acme))['id']!, [{ name: 'B' }, { wait_seconds: 5 }]],
  ['/settings', async () => '', [{ max_retries: 3 }, { content_days: 30 }]],
]

test.each(kinds)('a change of %s needs the current tag, if the request has If-Match', async (root, create, [change, second]) => {
  const id = await create()
  const path = id === '' ? root : `${root}/${id}`
  const before = await call('GET', path)
  const old = before.headers.get('etag')!
  expect(old).toMatch(/^"[\w-]{43}"$/)

  const changed = await call('PATCH', path, change, old)
  const tag = changed.headers.get('etag')!
  expect(changed.status).toBe(200)
  expect(tag).not.toBe(old)
  expect(await tagOf(path)).toBe(tag)

  const kept = (await call('GET', path)).json
  const unquoted = tag.slice(1, -1)
  for (const wrong of [old, `W/${old}`, `${old.slice(0, -1)}-gzip"`, `"${unquoted}-gzipped"`, unquoted, '"x"', 'x', `${old}, "x"`]) {
    const { status, json } = await call('PATCH', path, second, wrong)
    expect({ wrong, status, code: json.error.code }).toEqual({ wrong, status: 412, code: 'precondition_failed' })
  }
  expect((await call('GET', path)).json).toEqual(kept)

  expect((await call('PATCH', path, second, `${old}, ${tag}`)).status).toBe(200)
  expect((await call('PATCH', path, change, '*')).status).toBe(200)
  expect((await call('PATCH', path, second)).status).toBe(200)
  if (id === '') return

  expect((await call('DELETE', path, undefined, tag)).status).toBe(412)
  const latest = await tagOf(path)
  expect((await call('DELETE', path, undefined, latest)).status).toBeLessThan(300)
  expect((await call('DELETE', path, undefined, latest)).status).toBe(404)
})

test('a created resource is answered with its tag', async () => {
  const created = await call('POST', '/destinations', objstore('A'))
  expect(created.headers.get('etag')).toBe(await tagOf(`/destinations/${created.json.data.id}`))
})

/** What proxies that compress make of a tag. */
const changes: [proxy: string, change: (tag: string) => string][] = [
  ['nginx and Cloudflare', (tag) => `W/${tag}`],
  ['mod_deflate of Apache', (tag) => `${tag.slice(0, -1)}-gzip"`],
  ['mod_brotli of Apache', (tag) => `${tag.slice(0, -1)}-br"`],
  ['Apache behind nginx', (tag) => `W/${tag.slice(0, -1)}-gzip"`],
  ['Jetty', (tag) => `${tag.slice(0, -1)}--gzip"`],
  ['a proxy that uses a semicolon', (tag) => `W/${tag.slice(0, -1)};gzip"`],
  ['one that uses zstd', (tag) => `${tag.slice(0, -1)}-zstd"`],
]

test.each(changes)('a tag that %s has changed names the same version', async (_, change) => {
  const path = `/destinations/${await acme.create('/destinations', objstore('P'))}`
  const tag = change(await tagOf(path))
  expect((await call('PATCH', path, { name: 'B' }, `"x", ${tag}`)).status).toBe(200)
  expect((await call('PATCH', path, { name: 'C' }, tag)).status).toBe(412)
  expect((await call('DELETE', path, undefined, change(await tagOf(path)))).status).toBe(204)
})

test('deliveries do not change the tag of a destination, and documents not that of a repository', async () => {
  const { destinationId, repositoryId } = await wire(acme, 'S1')
  const tags = async () => [await tagOf(`/destinations/${destinationId}`), await tagOf(`/repositories/${repositoryId}`)]
  const before = await tags()
  const delivered = { status: 'failing', last_delivered_at: new Date(), updated_at: new Date() }
  await database.db('destinations').where({ id: destinationId }).update(delivered)
  await database.db('destination_gates').insert({ destination_id: destinationId, last_error: 'refused', failed_attempts: 1 })
  await database.db('repository_counts').insert({ repository_id: repositoryId, shard: 0, documents: 5 })
  expect(await tags()).toEqual(before)
})

test('of concurrent changes with the same tag one takes effect', async () => {
  const { destinationId, repositoryId, connectionId } = await wire(acme, 'S2')
  for (const path of [`/destinations/${destinationId}`, `/repositories/${repositoryId}`, `/connections/${connectionId}`, '/settings']) {
    const tag = await tagOf(path)
    const bodyOf = (index: number) => (path === '/settings' ? { max_retries: 20 + index } : { name: `Editor ${index}` })
    const answers = await Promise.all(Array.from({ length: 5 }, (_, index) => call('PATCH', path, bodyOf(index), tag)))
    const statuses = answers.map(({ status }) => status).toSorted((one, other) => one - other)
    expect({ path, statuses }).toEqual({ path, statuses: [200, 412, 412, 412, 412] })
  }
})

const bodies: Record<string, object> = {
  'PUT /documents/metadata': { documents: [{ repo_id: 'S1', doc_id: 'D1', ar_object: 'ZOTHER' }] },
  'PATCH /repositories/:id/certificates/:certificateId': { status: 'active' },
  'PUT /documents/by-doc-id/:repo_id/:doc_id/metadata': { ar_object: 'ZOTHER' },
}
const queries: Record<string, string> = { 'DELETE /repositories/:id/certificates': '?status=inactive' }
const changing = api.endpoints
  .filter(({ method }) => method !== 'GET' && method !== 'POST')
  .map(({ method, path }) => [method, path] as const)

test.each(changing)('%s %s does not ignore If-Match', async (method, path) => {
  const template = path.replaceAll(/:(\w+)/g, '{$1}')
  const key = Object.keys(resources.byPath)
    .filter((prefix) => template.startsWith(prefix))
    .toSorted((one, other) => other.length - one.length)[0]
  const ids = key === undefined ? {} : await resources.byPath[key]!(acme)
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name]!)
  const body = method === 'DELETE' ? undefined : (bodies[`${method} ${path}`] ?? {})
  const { status, json } = await call(method, filled + (queries[`${method} ${path}`] ?? ''), body, '"another-version"')
  expect({ status, code: json.error.code }).toEqual({ status: 412, code: 'precondition_failed' })
})
