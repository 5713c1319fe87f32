import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { openSocket } from '../support/source-system.ts'

// What the security review of November 2026 tried without success, and no other test covers.

const { database, api, acme, other } = share(await startScene({ variables: { RELAY_WRONG_KEYS_PER_MINUTE: '1000' } }))

const statusOf = async (path: string, headers: Record<string, string>, method = 'GET') =>
  (await fetch(api.baseUrl + path, { method, headers })).status

test('a key counts only as a bearer token in the header Authorization', async () => {
  const key = acme.keys.admin
  const path = `${acme.path}/settings`
  expect(await statusOf(path, { authorization: `Bearer ${key}` })).toBe(200)
  const others: Record<string, string>[] = [
    { authorization: `Basic ${Buffer.from(`:${key}`).toString('base64')}` },
    { authorization: key },
    { 'x-api-key': key },
    { cookie: `authorization=${key}` },
    { 'proxy-authorization': `Bearer ${key}` },
  ]
  for (const headers of others) expect({ headers, status: await statusOf(path, headers) }).toEqual({ headers, status: 401 })
  for (const name of ['key', 'api_key', 'access_token', 'authorization']) expect(await statusOf(`${path}?${name}=${key}`, {})).toBe(401)
})

test('of two Authorization headers the first counts', async () => {
  const bearer = (key: string) => `Authorization: Bearer ${key}`
  const statusLineOf = async (...headers: string[]) => {
    const { send, untilClosed } = await openSocket(Number(new URL(api.baseUrl).port))
    await send([`GET ${acme.path}/api-keys HTTP/1.1`, 'Host: x', 'Connection: close', ...headers, '', ''].join('\r\n'))
    return (await untilClosed()).split('\r\n')[0]
  }
  expect(await statusLineOf(bearer(acme.keys.admin), bearer(other.keys.admin))).toMatch(/ 200 /)
  expect(await statusLineOf(bearer(other.keys.admin), bearer(acme.keys.admin))).toMatch(/ 401 /)
  expect(await statusLineOf(bearer(acme.keys.viewer), bearer(acme.keys.admin))).toMatch(/ 403 /)
})

test('TRACE is not answered with the headers of its request', async () => {
  const { send, untilClosed } = await openSocket(Number(new URL(api.baseUrl).port))
  const authorization = `Authorization: Bearer ${acme.keys.admin}`
  await send([`TRACE ${acme.path}/documents HTTP/1.1`, 'Host: x', 'Connection: close', authorization, '', ''].join('\r\n'))
  const answer = await untilClosed()
  expect(answer).toMatch(/^HTTP\/1\.1 405 /)
  expect(answer).not.toContain(acme.keys.admin)
})

test('the method of a request cannot be overridden', async () => {
  const authorization = `Bearer ${acme.keys.viewer}`
  const { json } = await acme.call('POST', '/repositories', { repo_id: 'OVERRIDE', name: 'A' })
  const path = `${acme.path}/repositories/${json.data.id}`
  for (const name of ['x-http-method-override', 'x-http-method', 'x-method-override']) {
    expect(await statusOf(path, { authorization, [name]: 'DELETE' })).toBe(200)
  }
  expect(await statusOf(`${path}?_method=DELETE`, { authorization: `Bearer ${acme.keys.admin}` })).toBe(400)
  expect((await acme.call('GET', `/repositories/${json.data.id}`)).status).toBe(200)
})

test('HEAD obeys the level of GET', async () => {
  expect(await statusOf(`${acme.path}/api-keys`, { authorization: `Bearer ${acme.keys.viewer}` }, 'HEAD')).toBe(403)
  expect(await statusOf(`${acme.path}/api-keys`, { authorization: `Bearer ${acme.keys.admin}` }, 'HEAD')).toBe(200)
})

test('no spelling of a path reaches another workspace or endpoint with a key of this one', async () => {
  const authorization = `Bearer ${acme.keys.viewer}`
  const [, foreign] = /^\/api\/(.+)$/.exec(other.path)!
  for (const path of [
    `${acme.path}/../../${foreign}/settings`,
    `${acme.path}%2f..%2f..%2f${foreign}/settings`,
    `${acme.path}/..%2f..%2f${foreign}/settings`,
    `${acme.path}/%2e%2e/%2e%2e/${foreign}/settings`,
    `/api//${foreign}/settings`,
    `${other.path};x/settings`,
    `${other.path}%00/settings`,
    `${acme.path}/api-keys%2f`,
    `${acme.path}/documents/..;/api-keys`,
  ]) {
    expect({ path, isRefused: (await statusOf(path, { authorization })) >= 400 }).toEqual({ path, isRefused: true })
  }
})

test('names of the prototype are unknown keys wherever a client can name one', async () => {
  const destination = (config: string) =>
    `{"name": "A", "connector_type": "webhook", "config": {"url": "https://example.com/", ${config}}, "credentials": {}}`
  for (const name of ['__proto__', 'constructor', 'prototype', 'toString']) {
    const bodies: [string, string, string][] = [
      ['POST', '/repositories', `{"repo_id": "P", "name": "A", "${name}": {"signature_verification": true}}`],
      ['POST', '/destinations', destination(`"${name}": {"method": "PUT"}`)],
      ['PATCH', '/settings', `{"${name}": {"max_retries": 0}}`],
      ['POST', '/destinations', `{"name": "A", "connector_type": "${name}", "config": {}, "credentials": {}}`],
    ]
    for (const [method, path, body] of bodies) {
      const status = await statusOfBody(method, path, body)
      // JSON.parse keeps __proto__ as an own key, which a strict schema may drop instead of refusing; it never takes effect.
      if (name === '__proto__') expect(status).toBeLessThan(500)
      else expect({ name, path, isRefused: [400, 422].includes(status) }).toEqual({ name, path, isRefused: true })
    }
    expect((await acme.call('GET', `/documents?${name}=1`)).status).toBe(400)
  }
  expect(({} as Record<string, unknown>)['signature_verification']).toBeUndefined()
  expect((await acme.call('GET', '/settings')).json.data.attributes.max_retries).toBe(10)
})

const statusOfBody = async (method: string, path: string, body: string) =>
  (
    await fetch(`${api.baseUrl}${acme.path}${path}`, {
      method,
      headers: { authorization: `Bearer ${acme.keys.admin}`, 'content-type': 'application/json' },
      body,
    })
  ).status

test('the wildcards of SQL are plain characters in a filter', async () => {
  expect((await acme.call('GET', '/audit-logs')).json.data.length).toBeGreaterThan(0)
  for (const text of ['%25', '_', 'repository_created', "'%20or%201=1--"]) {
    expect((await acme.call('GET', `/audit-logs?event_prefix=${text}`)).json.data).toEqual([])
  }
})

test('a cursor or a subject of another workspace shows nothing of it', async () => {
  const created = await other.call('POST', '/repositories', { repo_id: 'FOREIGN', name: 'A' })
  const bySubject = `/audit-logs?subject_id=${created.json.data.id}`
  expect((await other.call('GET', bySubject)).json.data).toHaveLength(1)
  expect((await acme.call('GET', bySubject)).json.data).toEqual([])
  const cursor = (await other.call('GET', '/audit-logs')).json.data[0].id as string
  const { json } = await acme.call('GET', `/audit-logs?before=${cursor}&per_page=100`)
  const owners = await database
    .db('audit_logs')
    .distinct('workspace_id')
    .whereIn(
      'id',
      json.data.map(({ id }: { id: string }) => id),
    )
  expect(owners).toEqual([{ workspace_id: acme.id }])
})
