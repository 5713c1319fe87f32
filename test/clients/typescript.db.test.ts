import { execFile, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  createClient,
  pages,
  RelayError,
  retrying,
  unwrap,
  waitForDocument,
  type Document,
  type Fetch,
  type ListPath,
} from '../../clients/typescript/src/index.ts'
import { idPrefixAt } from '../../src/base/ids.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { exitCodeOf } from '../../src/programs/programs.ts'
import { insertDocument } from '../api/insert-document.ts'
import { wire } from '../api/objstore.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))
const client = join(root, 'clients/typescript/')

const { api, acme, database, workspace } = share(await startScene())

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

test('pages leave no document out that a loop takes off the list, and repeat none that others are added before', async () => {
  const relay = relayOf()
  const wired = await wire(acme, 'PAGES')
  const insert = (docId: string) =>
    insertDocument(database.db, { workspaceId: acme.id, repositoryId: wired.repositoryId, repoId: 'PAGES', docId, status: 'failed' })
  const inserted: string[] = []
  for (let index = 0; index < 47; index += 1) inserted.push(await insert(`D${index}`))
  const query = { repo_id: 'PAGES', status: 'failed', acknowledged: false, per_page: 10 } as const
  const acknowledge = (id: string) => unwrap(relay.POST('/documents/{id}/acknowledge', { params: { path: { id } } }))

  const read: string[] = []
  for await (const { data } of pages(relay, '/documents', { query })) {
    for (const { id } of data) read.push(id)
    // Not all of them: three stay.
    for (const { id } of data.slice(3)) await acknowledge(id)
  }
  expect(read.toSorted()).toEqual(inserted.toSorted())

  const again: string[] = []
  for await (const { data } of pages(relay, '/documents', { query: { ...query, per_page: 4 } })) {
    again.push(...data.map(({ id }) => id))
    if (again.length < 9) for (let index = 0; index < 3; index += 1) await insert(`N${again.length}-${index}`)
  }
  expect(new Set(again).size).toBe(again.length)

  for await (const { data } of pages(relay, '/documents', { query })) for (const { id } of data) await acknowledge(id)
  expect((await unwrap(relay.GET('/documents', { params: { query } }))).meta.total).toBe(0)
  await database.db('documents').where({ repo_id: 'PAGES' }).delete()
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
    docUrl: expect.stringMatching(/\/docs\/errors#validation_failed$/),
    details: [{ path: 'repo_id', message: expect.any(String) }],
    nothingChanged: false,
    retryAfterSeconds: undefined,
  })
  await expect(unwrap(relayOf('relay_no').GET('/settings'))).rejects.toMatchObject({ status: 401, code: 'unauthorized' })
})

test('an error response of a proxy is thrown as a RelayError', async () => {
  const fetch = () => Promise.resolve(new Response('<h1>Bad Gateway</h1>', { status: 502, headers: { 'retry-after': '7' } }))
  const relay = createClient({ baseUrl: api.baseUrl, workspace: 'acme/prod', apiKey: 'x', fetch, retry: false })
  await expect(unwrap(relay.GET('/settings'))).rejects.toMatchObject({ status: 502, code: 'unknown', retryAfterSeconds: 7 })
})

test('a date in Retry-After is ignored', async () => {
  const headers = { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }
  const fetch = () => Promise.resolve(new Response('', { status: 503, headers }))
  const relay = createClient({ baseUrl: api.baseUrl, workspace: 'acme/prod', apiKey: 'x', fetch, retry: false })
  await expect(unwrap(relay.GET('/settings'))).rejects.toMatchObject({ status: 503, retryAfterSeconds: undefined })
})

test('without a response, the error names the request and the reason', async () => {
  const baseUrl = `http://localhost:${await findFreePort()}`
  const relay = createClient({ baseUrl, workspace: 'acme/prod', apiKey: 'relay_secret' })
  const thrown = await unwrap(relay.GET('/documents', { params: { query: { status: 'failed' } } })).catch((error: unknown) => error)
  expect(thrown).toBeInstanceOf(RelayError)
  expect(thrown).toMatchObject({ status: 0, code: 'no_response', nothingChanged: false })
  expect((thrown as Error).message).toMatch(new RegExp(`^GET ${baseUrl}/api/acme/prod/documents got no response: connect ECONNREFUSED .*$`))
})

test('a request whose signal is aborted throws the reason of the signal', async () => {
  const reason = new Error('enough')
  await expect(relayOf().GET('/settings', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
})

test('pages reads lists with numbered pages, with a cursor in both directions, and without pages', async () => {
  const { keys, ...tenant } = await api.tenant('acme/paged')
  const relay = createClient({ baseUrl: api.baseUrl, workspace: 'acme/paged', apiKey: keys.admin })
  const wired = []
  for (const repoId of ['P1', 'P2', 'P3']) wired.push(await wire({ ...tenant, keys }, repoId))
  const row = { workspaceId: tenant.id, repositoryId: wired[0]!.repositoryId, repoId: 'P1' }
  const ids: string[] = []
  for (const docId of ['A', 'B', 'C']) ids.push(await insertDocument(database.db, { ...row, docId }))

  const numbered: Document[][] = []
  for await (const { data } of pages(relay, '/documents', { query: { per_page: 2, repo_id: 'P1' } })) numbered.push(data)
  expect(numbered.map((page) => page.map(({ id }) => id))).toEqual([[ids[2], ids[1]], [ids[0]]])

  const events: string[] = []
  for await (const { data, meta } of pages(relay, '/audit-logs', { query: { per_page: 2, event: 'repository.created' } })) {
    expect(meta.per_page).toBe(2)
    events.push(...data.map(({ attributes }) => attributes.description))
  }
  expect(events).toEqual(['P3', 'P2', 'P1'].map((repoId) => expect.stringContaining(repoId)))

  const ofTheLastHour = { ...(await oldEntries(tenant.id)), per_page: 1 }
  const forwards: string[] = []
  for await (const { data } of pages(relay, '/audit-logs', { query: ofTheLastHour })) forwards.push(...data.map(({ id }) => id))
  expect(forwards).toEqual(forwards.toSorted())
  expect(forwards).toHaveLength(3)

  const connections: string[][] = []
  for await (const { data } of pages(relay, '/connections')) connections.push(data.map(({ id }) => id))
  expect(connections).toEqual([wired.map(({ connectionId }) => connectionId)])

  const attempts = []
  for await (const { data } of pages(relay, '/documents/{id}/attempts', { path: { id: ids[0]! } })) attempts.push(...data)
  expect(attempts).toEqual([])
  const missing = pages(relay, '/documents/{id}/attempts', { path: { id: 'no-such-id' } })
  await expect(missing.next()).rejects.toMatchObject({ status: 404 })
  // @ts-expect-error a path that is no list
  const path: ListPath = '/settings'
  expect(path).toBe('/settings')
})

/** Writes three entries of an hour that has passed. @returns the query of the entries that follow */
const oldEntries = async (workspaceId: string) => {
  const start = new Date('2026-03-02T10:00:00Z')
  await ensurePartitions(database.db, start)
  const rows = [1, 2, 3].map((hour) => ({
    id: idPrefixAt(new Date(start.getTime() + hour)).padEnd(26, '0'),
    workspace_id: workspaceId,
    event: 'rfc.call',
    subject_type: 'Workspace',
    subject_id: workspaceId,
    description: 'A call',
    actor_type: 'system',
  }))
  await database.db('audit_logs').insert(rows)
  return { event: 'rfc.call', after: '0'.repeat(26) } as const
}

test('waitForDocument returns a document when its status is final, or when the time is over', async () => {
  const { repositoryId } = await wire(acme, 'WAIT')
  const id = await insertDocument(database.db, { workspaceId: acme.id, repositoryId, repoId: 'WAIT' })
  expect((await waitForDocument(relayOf(), id, { seconds: 0 })).attributes.status).toBe('pending')
  const waiting = waitForDocument(relayOf(), id)
  await database.db('documents').where({ id }).update({ status: 'delivered' })
  expect((await waiting).attributes.status).toBe('delivered')
  await expect(waitForDocument(relayOf(), 'no-such-id')).rejects.toMatchObject({ code: 'not_found' })

  const open = await insertDocument(database.db, { workspaceId: acme.id, repositoryId, repoId: 'WAIT' })
  const reason = new Error('enough')
  await expect(waitForDocument(relayOf(), open, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
})

describe('a request that is answered with 429 or 503', () => {
  const busy = (status: number, retryAfter: string) => new Response('', { status, headers: { 'retry-after': retryAfter } })

  /** Returns a client whose first answers are these. */
  const after = (...answers: Response[]) => {
    const sent: { method: string; body: string }[] = []
    const fetch: Fetch = async (request) => {
      sent.push({ method: request.method, body: await request.clone().text() })
      return answers.shift() ?? globalThis.fetch(request)
    }
    return { sent, relay: createClient({ baseUrl: api.baseUrl, workspace: 'acme/prod', apiKey: acme.keys.admin, fetch }) }
  }
  const body = { repo_id: 'AGAIN', name: 'Again' }

  test('is repeated twice, after the time that Retry-After states', async () => {
    const { relay, sent } = after(busy(429, '0'), busy(503, '0'))
    expect((await unwrap(relay.GET('/settings'))).data.type).toBe('settings')
    expect(sent.map(({ method }) => method)).toEqual(['GET', 'GET', 'GET'])
    const failing = after(busy(503, '0'), busy(503, '0'), busy(503, '0'))
    await expect(unwrap(failing.relay.GET('/settings'))).rejects.toMatchObject({ status: 503, retryAfterSeconds: 0 })
  })

  test('is repeated with its body if it has an Idempotency-Key, and not at all if it is a POST without one', async () => {
    const { relay, sent } = after(busy(503, '0'))
    const created = await unwrap(relay.POST('/repositories', { params: { header: { 'Idempotency-Key': 'again' } }, body }))
    expect(created.data.attributes.repo_id).toBe('AGAIN')
    expect(sent).toEqual([
      { method: 'POST', body: JSON.stringify(body) },
      { method: 'POST', body: JSON.stringify(body) },
    ])
    const once = after(busy(503, '0'))
    await expect(unwrap(once.relay.POST('/repositories', { body }))).rejects.toMatchObject({ status: 503 })
    expect(once.sent).toHaveLength(1)
  })

  test('is not repeated if it has another body than JSON, or if the time is too long', async () => {
    const sent: string[] = []
    const send = retrying(async (request) => {
      sent.push(request.url)
      return busy(503, request.url.endsWith('/long') ? '61' : '0')
    })
    const stream = { body: new Blob(['a stream']).stream(), duplex: 'half', headers: { 'content-type': 'application/pdf' } } as RequestInit
    await send(new Request('http://relay.example/stream', { method: 'PUT', ...stream }))
    await send(new Request('http://relay.example/long'))
    expect(sent).toEqual(['http://relay.example/stream', 'http://relay.example/long'])
  })

  test('is not waited for after its signal was aborted', async () => {
    const caller = new AbortController()
    const reason = new Error('enough')
    const send = retrying(async () => {
      setTimeout(() => caller.abort(reason), 10)
      return busy(503, '60')
    })
    await expect(send(new Request('http://relay.example/', { signal: caller.signal }))).rejects.toBe(reason)
  })
})

const environmentOf = (slugs: string, apiKey: string) => ({
  ...process.env,
  RELAY_URL: api.baseUrl,
  RELAY_WORKSPACE: slugs,
  RELAY_API_KEY: apiKey,
})

test('the README shows the examples', async () => {
  const examples = ['example.ts', 'follow-events.ts'].map((name) => readFile(join(client, name), 'utf8'))
  const readme = await readFile(join(client, 'README.md'), 'utf8')
  const shown = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, block]) => block!.replace('document-relay-client', './src/index.ts'))
  expect(shown).toEqual(await Promise.all(examples))
})

test('the example that follows events prints those that happen while it runs', async () => {
  const { name, keys, source } = await workspace()
  const program = spawn(process.execPath, [join(client, 'follow-events.ts')], { env: environmentOf(name, keys.viewer) })
  const ended = exitCodeOf(program)
  let printed = ''
  program.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  try {
    let sent = 0
    // The program begins with what happens after its first request.
    await until('the program prints an event', async () => {
      await source.create(`F${(sent += 1)}`, 'x')
      return printed.includes('\n')
    })
  } finally {
    program.kill()
    await ended
  }
  expect(printed).toMatch(/^\d{4}-\S+Z document\.(received|discarded) F\d+\n/)
})

test('the example of the README runs', async () => {
  const { stdout } = await run(process.execPath, [join(client, 'example.ts')], { env: environmentOf('acme/prod', acme.keys.admin) })
  expect(stdout).toBe('0 failed documents\n404 not_found There is no such resource in this workspace.\n')
})
