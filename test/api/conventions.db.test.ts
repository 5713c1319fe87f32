import { once } from 'node:events'
import { connect } from 'node:net'
import { openDatabase } from '../../src/db/database.ts'
import { startApi } from '../support/api.ts'
import { databaseConfig } from '../support/database.ts'
import { waitsForLock } from '../support/locks.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { objstore, wire } from './objstore.ts'

const { database, api, acme } = share(await startScene())

const refusal = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) => {
  const { status, json } = await acme.call(method, path, body, headers && { headers })
  return { status, code: json.error.code, paths: (json.error.details ?? []).map(({ path: at }: { path: string }) => at) }
}

test.each(['/api', '/api/', '/api/acme', '/api/acme/prod', '/api/acme/prod/', '/api/acme/prod/documents/1/2/3', '/api//'])(
  '%s is answered with 404 in JSON, for every method',
  async (path) => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'OPTIONS']) {
      const { status, json } = await api.call(method, path, { key: acme.keys.admin })
      expect({ method, status, code: json?.error.code }).toEqual({ method, status: 404, code: 'not_found' })
    }
  },
)

test('a path whose last word could be an id is answered with 405 for the methods of the other path', async () => {
  for (const path of ['/documents/retry', '/destinations/test']) {
    const { status, headers } = await acme.call('GET', path)
    expect({ status, allow: headers.get('allow') }).toEqual({ status: 405, allow: 'POST' })
  }
})

test.each(['PROPFIND', 'OPTIONS', 'DELETE'])('%s is answered with 405 in JSON on a path with other methods', async (method) => {
  const { status, json } = await acme.call(method, '/documents')
  expect({ status, code: json?.error.code }).toEqual({ status: 405, code: 'method_not_allowed' })
})

test('paths outside /api are passed on', async () => {
  expect((await api.call('GET', '/api')).json.error.code).toBe('not_found')
  const answer = await fetch(`${api.baseUrl}/apiary`)
  // Of the last middleware, which sees what no surface serves.
  expect(await answer.json()).toMatchObject({ error: { code: 'not_found' } })
  expect(api.log.some((line) => line.includes('"surface":"other"'))).toBe(true)
})

test.each([
  ['{"name": '],
  ['{"name": "caf\\u0000e", "repo_id": "A1"}'],
  ['{"name": "\\ud800", "repo_id": "A1"}'],
  ['['.repeat(2_000) + ']'.repeat(2_000)],
  ['[]'],
  ['null'],
  [''],
])('a body that is not a JSON object of storable text is 400: %p', async (body) => {
  const answer = await acme.call('POST', '/repositories', body)
  expect({ status: answer.status, code: answer.json.error.code }).toEqual({ status: 400, code: 'invalid_request' })
})

test('missing fields, wrong types and unknown keys are 400, with a detail for each', async () => {
  const body = { name: 5, signature_verification: 'yes', colour: 'red' }
  const { status, code, paths } = await refusal('POST', '/repositories', body)
  expect({ status, code, paths: paths.toSorted() }).toEqual({
    status: 400,
    code: 'invalid_request',
    paths: ['colour', 'name', 'repo_id', 'signature_verification'],
  })
})

test('a well-formed body with invalid values is 422', async () => {
  expect(await refusal('POST', '/repositories', { repo_id: '', name: ' ' })).toEqual({
    status: 422,
    code: 'validation_failed',
    paths: ['repo_id', 'name'],
  })
})

test('a body that is not JSON or is compressed is 415', async () => {
  const body = JSON.stringify({ repo_id: 'A1', name: 'A' })
  expect(await refusal('POST', '/repositories', body, { 'content-type': 'text/plain' })).toMatchObject({ status: 415 })
  expect(await refusal('POST', '/repositories', body, { 'content-encoding': 'gzip' })).toMatchObject({ status: 415 })
})

test('a body with too many keys and values is 413, whatever its texts contain', async () => {
  expect(await refusal('POST', '/repositories', '['.repeat(5_500))).toMatchObject({ status: 413, code: 'payload_too_large' })
  const separators = { repo_id: 'A1', name: '\\"{,:'.repeat(2_000) }
  expect(await refusal('POST', '/repositories', separators)).toMatchObject({ status: 422, code: 'validation_failed' })
})

test('a body over the limit is 413, judged by Content-Length before the body is sent', async () => {
  const big = { name: 'x'.repeat(1_024 * 1_024), repo_id: 'A1' }
  expect(await refusal('POST', '/repositories', big)).toMatchObject({ status: 413, code: 'payload_too_large' })

  const { hostname, port } = new URL(api.baseUrl)
  const socket = connect(Number(port), hostname)
  socket.write(
    `POST ${acme.path}/repositories HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${acme.keys.admin}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 999999999\r\n\r\n',
  )
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 413 /)
  socket.destroy()
})

test('a body of unknown length is 413 as soon as it exceeds the limit', async () => {
  const body = new ReadableStream({
    start: (controller) => {
      for (let parts = 0; parts < 5; parts += 1) controller.enqueue(Buffer.alloc(210_000, 0x20))
      controller.close()
    },
  })
  const response = await fetch(`${api.baseUrl}${acme.path}/repositories`, {
    method: 'POST',
    headers: { authorization: `Bearer ${acme.keys.admin}`, 'content-type': 'application/json' },
    body,
    duplex: 'half',
  })
  expect(response.status).toBe(413)
})

test.each(['page=0', 'page=x', 'per_page=0', 'per_page=101', 'per_page=', 'colour=red', 'page=1&page=2', 'type=fax', 'type=%00'])(
  'the query %s is answered with 400',
  async (query) => {
    expect(await refusal('GET', `/destinations?${query}`)).toMatchObject({ status: 400, code: 'invalid_request' })
  },
)

test('lists are paginated with 25 rows per page and the total', async () => {
  const fresh = await api.tenant('acme/lists')
  for (let number = 1; number <= 27; number += 1) {
    expect((await fresh.call('POST', '/repositories', { repo_id: `P${number}`, name: 'A' })).status).toBe(201)
  }
  const first = await fresh.call('GET', '/repositories')
  expect(first.json.meta).toEqual({ current_page: 1, per_page: 25, total: 27 })
  const second = await fresh.call('GET', '/repositories?page=2')
  const seen = [...first.json.data, ...second.json.data].map((item) => item.attributes.repo_id)
  expect(seen).toEqual(Array.from({ length: 27 }, (_, index) => `P${index + 1}`))
  expect((await fresh.call('GET', '/repositories?page=9&per_page=100')).json).toEqual({
    data: [],
    meta: { current_page: 9, per_page: 100, total: 27 },
  })
})

test('the Link header of a list points to its other pages with the same filters', async () => {
  const linksOf = async (query: string) => (await acme.call('GET', `/repositories${query}`)).headers.get('link')
  for (const repo_id of ['L1', 'L2', 'L3']) await acme.call('POST', '/repositories', { repo_id, name: 'A' })
  const all = (await acme.call('GET', '/repositories')).json.meta.total
  const repositories = `${api.baseUrl}${acme.path}/repositories`
  const address = (page: number) => `<${repositories}?status=active&per_page=1&page=${page}>`
  expect(await linksOf('?status=active&per_page=1')).toBe(
    `${address(1)}; rel="first", ${address(2)}; rel="next", ${address(all)}; rel="last"`,
  )
  expect(await linksOf('?status=active&per_page=1&page=2')).toBe(
    `${address(1)}; rel="first", ${address(1)}; rel="prev", ${address(3)}; rel="next", ${address(all)}; rel="last"`,
  )
  expect(await linksOf(`?status=active&per_page=1&page=${all + 7}`)).toBe(
    `${address(1)}; rel="first", ${address(all)}; rel="prev", ${address(all)}; rel="last"`,
  )
  expect(await linksOf('?status=inactive')).toBe(
    `<${repositories}?status=inactive&page=1>; rel="first", <${repositories}?status=inactive&page=1>; rel="last"`,
  )
  expect((await acme.call('GET', '/connections')).headers.get('link')).toBeNull()

  const first = await acme.call('GET', '/audit-logs?event_prefix=repository.&per_page=2')
  expect(first.headers.get('link')).toBe(
    `<${api.baseUrl}${acme.path}/audit-logs?event_prefix=repository.&per_page=2&before=${first.json.meta.next_cursor}>; rel="next"`,
  )
  const followed = new URL(/<(.*)>/.exec(first.headers.get('link')!)![1]!)
  const second = await acme.call('GET', `/audit-logs${followed.search}`)
  expect(second.json.data[0].id < first.json.data[1].id).toBe(true)
  expect((await acme.call('GET', '/audit-logs?event=rfc.call')).headers.get('link')).toBeNull()
})

test('the Link header uses RELAY_BASE_URL, if it is set', async () => {
  const proxied = await startApi(database.db, { variables: { RELAY_BASE_URL: 'https://relay.example/documents/' } })
  try {
    const { headers } = await proxied.call('GET', `${acme.path}/destinations`, { key: acme.keys.viewer })
    expect(headers.get('link')).toContain(`<https://relay.example/documents${acme.path}/destinations?page=1>; rel="first"`)
  } finally {
    await proxied.stop()
  }
})

test('malformed percent-encoding in the path is a client error', async () => {
  const { status } = await acme.call('GET', '/destinations/%E0%A4%A')
  expect([400, 404]).toContain(status)
})

test('a deadlock is 503 with Retry-After, and the request can be repeated', async () => {
  const { connectionId } = await wire(acme, 'DEAD')
  const other = await database.db.transaction()
  // PostgreSQL aborts the transaction that detects the deadlock first. The long timeout here makes sure that this is the deletion.
  await other.raw(`set local deadlock_timeout = '1min'`)
  await other.raw('select 1 from connections where id = ? for update', [connectionId])
  // The deletion locks the workspace and waits for the connection.
  const deletion = acme.call('DELETE', `/connections/${connectionId}`)
  await until('the deletion waits for the lock', () => waitsForLock(database.db))
  // Promise.resolve() sends the query now; it is awaited later.
  const blocked = Promise.resolve(other.raw('select 1 from workspaces where id = ? for update', [acme.id]))
  const { status, json, headers } = await deletion
  expect({ status, code: json.error.code, retry: headers.get('retry-after') }).toEqual({ status: 503, code: 'unavailable', retry: '1' })
  await blocked
  await other.rollback()
  expect((await acme.call('DELETE', `/connections/${connectionId}`)).status).toBe(200)
})

test('a database that is lost at the commit is 503, and nobody knows what has changed', async () => {
  await database.db.raw(`
    create function leave() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
    create constraint trigger leave after insert on destinations deferrable initially deferred for each row execute function leave();
  `)
  // Its connection is lost, and only its own.
  const leaving = openDatabase(databaseConfig(database.url), 'leaving')
  const broken = await startApi(leaving)
  try {
    const { status, json } = await broken.call('POST', `${acme.path}/destinations`, { key: acme.keys.admin, body: objstore('A') })
    expect({ status, error: json.error }).toMatchObject({ status: 503, error: { code: 'unavailable', nothing_changed: false } })
  } finally {
    await broken.stop()
    await leaving.destroy()
    await database.db.raw('drop trigger leave on destinations; drop function leave()')
  }
})

test('a serialization failure is 503, and has changed nothing', async () => {
  await database.db.raw(`
    create function refuse() returns trigger language plpgsql as $$ begin raise serialization_failure; end $$;
    create trigger refuse before insert on destinations execute function refuse();
  `)
  try {
    const { status, json } = await acme.call('POST', '/destinations', objstore('A'))
    expect({ status, error: json.error }).toMatchObject({ status: 503, error: { code: 'unavailable', nothing_changed: true } })
  } finally {
    await database.db.raw('drop trigger refuse on destinations; drop function refuse()')
  }
})

test('an unexpected error is 500 without details and is logged with its cause', async () => {
  await database.db.raw('alter table repository_counts rename to hidden_counts')
  try {
    const { status, json } = await acme.call('GET', '/repositories')
    expect({ status, json }).toEqual({
      status: 500,
      json: {
        error: { code: 'internal_error', message: 'Unexpected server error.', request_id: expect.any(String), doc_url: expect.any(String) },
      },
    })
    expect(api.log.join('')).toContain('repository_counts')
    expect(api.log.join('')).not.toContain(acme.keys.admin)
  } finally {
    await database.db.raw('alter table hidden_counts rename to repository_counts')
  }
})
