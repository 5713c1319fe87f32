import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createClient, RelayError, unwrap } from '../../clients/typescript/src/index.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))
const client = join(root, 'clients/typescript/')

const { api, acme } = share(await startScene())

const relayOf = (apiKey = acme.keys.admin) => createClient({ baseUrl: `${api.baseUrl}/`, workspace: 'acme/prod', apiKey })

test('a call uses the workspace and the API key, and its response is typed', async () => {
  const relay = relayOf()
  const { data } = await unwrap(relay.POST('/repositories', { body: { repo_id: 'A1', name: 'Invoices' } }))
  const attributes: { repo_id: string; document_count: number } = data.attributes
  expect(attributes).toMatchObject({ repo_id: 'A1', document_count: 0 })
  const listed = await unwrap(relay.GET('/repositories', { params: { query: { status: 'active' } } }))
  expect(listed.data.map(({ id }) => id)).toContain(data.id)
  expect(await unwrap(relay.DELETE('/repositories/{id}', { params: { path: { id: data.id } } }))).toBeUndefined()
})

test('an invalid request is a compile-time error and is refused by the API', async () => {
  const relay = relayOf()
  // @ts-expect-error a name is a string
  const { error } = await relay.POST('/repositories', { body: { repo_id: 'A2', name: 5 } })
  expect(error?.error).toMatchObject({ code: 'invalid_request', details: [{ path: 'name' }] })
  // @ts-expect-error an sftp destination has a host
  const refused = relay.POST('/destinations', { body: { name: 'A', connector_type: 'sftp', config: {}, credentials: { username: 'a' } } })
  await expect(unwrap(refused)).rejects.toMatchObject({ status: 422, code: 'validation_failed' })
})

test('a POST with an Idempotency-Key can be repeated, and If-Match protects a change', async () => {
  const relay = relayOf()
  const create = () =>
    relay.POST('/repositories', {
      params: { header: { 'Idempotency-Key': '0f8a6c' } },
      body: { repo_id: 'ONCE', name: 'Invoices' },
    })
  const [first, second] = [await create(), await create()]
  expect({ status: second.response.status, data: second.data }).toEqual({ status: 201, data: first.data })
  const rename = (etag: string) =>
    unwrap(
      relay.PATCH('/repositories/{id}', {
        params: { path: { id: first.data!.data.id }, header: { 'If-Match': etag } },
        body: { name: 'Credit notes' },
      }),
    )
  const etag = first.response.headers.get('etag')!
  expect((await rename(etag)).data.attributes.name).toBe('Credit notes')
  await expect(rename(etag)).rejects.toMatchObject({ status: 412, code: 'precondition_failed' })
})

test('bulk retries are listed', async () => {
  const relay = relayOf()
  const started = await unwrap(relay.POST('/documents/retry', { body: { repo_id: 'A1' } }))
  const listed = await unwrap(relay.GET('/bulk-retries', { params: { query: { per_page: 1 } } }))
  expect(listed.data).toEqual([started.data])
})

test('an error response is thrown as a RelayError with code, request id and details', async () => {
  const refusal = await unwrap(relayOf().POST('/repositories', { body: { repo_id: '', name: 'A' } })).catch((thrown: unknown) => thrown)
  expect(refusal).toBeInstanceOf(RelayError)
  expect(refusal).toMatchObject({
    status: 422,
    code: 'validation_failed',
    requestId: expect.stringMatching(/^[0-9A-Z]{26}$/),
    details: [{ path: 'repo_id', message: expect.any(String) }],
    nothingChanged: false,
    retryAfterSeconds: undefined,
  })
  await expect(unwrap(relayOf('relay_no').GET('/settings'))).rejects.toMatchObject({ status: 401, code: 'unauthorized' })
})

test('an error response of a proxy is thrown as a RelayError', async () => {
  const fetch = () => Promise.resolve(new Response('<h1>Bad Gateway</h1>', { status: 502, headers: { 'retry-after': '7' } }))
  const relay = createClient({ baseUrl: api.baseUrl, workspace: 'acme/prod', apiKey: 'x', fetch })
  await expect(unwrap(relay.GET('/settings'))).rejects.toMatchObject({ status: 502, code: 'unknown', retryAfterSeconds: 7 })
})

test('a date in Retry-After is ignored', async () => {
  const headers = { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }
  const fetch = () => Promise.resolve(new Response('', { status: 503, headers }))
  const relay = createClient({ baseUrl: api.baseUrl, workspace: 'acme/prod', apiKey: 'x', fetch })
  await expect(unwrap(relay.GET('/settings'))).rejects.toMatchObject({ status: 503, retryAfterSeconds: undefined })
})

test('the example of the README runs', async () => {
  const example = await readFile(join(client, 'example.ts'), 'utf8')
  const readme = await readFile(join(client, 'README.md'), 'utf8')
  expect(/```ts\n([\s\S]*?)```/.exec(readme)?.[1]).toBe(example.replace('./src/index.ts', 'document-relay-client'))

  const env = { ...process.env, RELAY_URL: api.baseUrl, RELAY_WORKSPACE: 'acme/prod', RELAY_API_KEY: acme.keys.admin }
  const { stdout } = await run(process.execPath, [join(client, 'example.ts')], { env })
  expect(stdout).toBe('0 failed documents\n404 not_found There is no such resource in this workspace.\n')
})
