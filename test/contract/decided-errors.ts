import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { createKey } from '../../src/access/key-administration.ts'
import { newId } from '../../src/base/ids.ts'
import { openDatabase } from '../../src/db/database.ts'
import { newApiKey } from '../../src/security/api-keys.ts'
import { startApi } from '../support/api.ts'
import { callJson, type Answer } from '../support/client.ts'
import { databaseConfig } from '../support/database.ts'
import { ulid, type Json, type Row, type World } from './world.ts'

// Behaviour that the specification leaves open: errors.

type ApiRequest = { method: string; path: string; body?: unknown; headers?: Record<string, string> }

const refusal = (status: number, code: string, when: string, requestFor: (world: World) => ApiRequest | Promise<ApiRequest>): Row => [
  `errors: ${status} ${code}: ${when}`,
  async (world) => {
    const { method, path, body, headers } = await requestFor(world)
    const answer = await world.acme.call(method, path, body, headers && { headers })
    expect({ status: answer.status, error: answer.json.error }).toEqual({
      status,
      error: {
        code,
        message: expect.stringMatching(/\S/),
        request_id: answer.headers.get('x-relay-request-id'),
        doc_url: `${world.baseUrl}/docs/errors#${code}`,
        ...detailed(answer.json),
      },
    })
  },
]
const detailed = ({ error }: Json) =>
  'details' in error && { details: expect.arrayContaining([{ path: expect.any(String), message: expect.any(String) }]) }

const get = (path: string): ApiRequest => ({ method: 'GET', path })
const post = (path: string, body?: unknown, headers?: Record<string, string>): ApiRequest => ({
  method: 'POST',
  path,
  body,
  ...(headers && { headers }),
})
export const objstore = {
  name: 'A',
  connector_type: 'objstore',
  config: { bucket: 'archive', region: 'eu-central-1' },
  credentials: { access_key_id: 'A', secret_access_key: 'B' },
}

export const decidedErrorRows: Row[] = [
  [
    'errors: x-relay-request-id is on every response',
    async ({ acme, baseUrl, specimen }) => {
      const statuses = new Set<number>()
      for (const path of ['/documents', '/nowhere', `/documents/${specimen.documentId}/content`, '/audit-logs.csv', '/documents?x=1']) {
        const { status, headers } = await acme.call('GET', path)
        statuses.add(status)
        expect(headers.get('x-relay-request-id')).toEqual(ulid)
      }
      expect(statuses).toEqual(new Set([200, 400, 404]))
      for (const path of ['/bridge/a/b/rfc/X', '/receiver/a/b', '/nowhere', '/api', '/healthz', '/openapi.json', '/docs']) {
        expect((await fetch(baseUrl + path)).headers.get('x-relay-request-id')).toEqual(ulid)
      }
    },
  ],
  refusal(400, 'invalid_request', 'malformed JSON', () => post('/destinations', '{"name": ')),
  refusal(400, 'invalid_request', 'a missing required field', () => post('/destinations', { ...objstore, name: undefined })),
  refusal(400, 'invalid_request', 'a wrong type', () => post('/destinations', { ...objstore, name: 5 })),
  refusal(400, 'invalid_request', 'an unknown query value', () => get('/documents?status=lost')),
  refusal(400, 'invalid_request', 'an unknown query key', () => get('/documents?colour=red')),
  refusal(400, 'invalid_request', 'an unknown body key', () => post('/destinations', { ...objstore, colour: 'red' })),
  refusal(404, 'not_found', 'an unknown id', () => get(`/destinations/${newId()}`)),
  refusal(404, 'not_found', 'an id of another workspace', async ({ other }) => get(`/destinations/${await other.destination()}`)),
  refusal(404, 'not_found', 'an unknown path', () => get('/nowhere')),
  refusal(405, 'method_not_allowed', 'a method that the path does not support', () => ({ method: 'PUT', path: '/destinations' })),
  [
    'errors: 405 names the methods that the path supports in the header Allow',
    async ({ acme }) => expect((await acme.call('PUT', '/destinations')).headers.get('allow')).toBe('GET, HEAD, POST'),
  ],
  refusal(409, 'conflict', 'a duplicate repo_id', ({ specimen }) => post('/repositories', { repo_id: specimen.repoId, name: 'A' })),
  refusal(409, 'nothing_to_retry', 'retry of a document with no failed delivery', ({ specimen }) =>
    post(`/documents/${specimen.documentId}/retry`),
  ),
  refusal(409, 'conflict', 'replay of a bridge call', async ({ acme, specimen }) => {
    await acme.capturedRequest({ requestId: specimen.bridgeRequestId })
    return post(`/requests/${specimen.bridgeRequestId}/replay`)
  }),
  refusal(409, 'conflict', 'replay of a request whose body was truncated', async ({ acme }) => {
    // Of a document that is discarded, there is no content.
    const sent = await acme.sendCreate((await acme.repository()).repoId, newId(), 'x'.repeat(100_001))
    await acme.capturedRequest(sent)
    return post(`/requests/${sent.requestId}/replay`)
  }),
  refusal(413, 'payload_too_large', 'a body over the limit', () => post('/destinations', { ...objstore, name: 'x'.repeat(1_100_000) })),
  refusal(415, 'unsupported_media_type', 'a body that is not JSON', () =>
    post('/destinations', JSON.stringify(objstore), { 'content-type': 'text/plain' }),
  ),
  refusal(422, 'validation_failed', 'unknown ids', ({ specimen }) =>
    post('/connections', { name: 'A', repository_ids: [newId()], destination_ids: [specimen.destinationId] }),
  ),
  refusal(422, 'validation_failed', 'an unknown connector_type', () => post('/destinations', { ...objstore, connector_type: 'fax' })),
  refusal(422, 'validation_failed', 'a config that is invalid for the connector', () =>
    post('/destinations', { ...objstore, config: { bucket: 'x' } }),
  ),
  [
    'errors: 401 unauthorized: the same answer for a missing, malformed, unknown, expired, revoked and foreign key and an unknown workspace',
    async ({ acme, other, db, baseUrl }) => {
      const revoked = await createKey(db, { workspace: acme.name, level: 'admin' })
      expect(await acme.statusOf('DELETE', `/api-keys/${revoked.id}`)).toBe(204)
      const expired = await createKey(db, { workspace: acme.name, level: 'admin' })
      await db('api_keys')
        .where({ id: expired.id })
        .update({ expires_at: new Date(Date.now() - 1) })
      const wrongSecret = `${acme.keys.admin.slice(0, -2)}zz`
      const wrong = [null, 'x', `${acme.keys.admin}x`, wrongSecret, newApiKey().key, revoked.key, expired.key, other.keys.admin]
      const answers = await Promise.all(wrong.map((key) => acme.call('GET', '/documents', undefined, { key })))
      answers.push(await callJson(baseUrl, 'GET', '/api/no/body/documents', { key: acme.keys.admin }))
      for (const { status, json, headers } of answers) {
        expect({ status, error: json.error, challenge: headers.get('www-authenticate') }).toEqual({
          status: 401,
          error: { ...answers[0]!.json.error, code: 'unauthorized', request_id: headers.get('x-relay-request-id') },
          challenge: 'Bearer',
        })
      }
    },
  ],
  [
    'errors: 403 forbidden: the level is too low',
    async ({ acme }) => {
      const { status, json } = await acme.call('GET', '/api-keys', undefined, { key: acme.keys.member })
      expect({ status, code: json.error.code }).toEqual({ status: 403, code: 'forbidden' })
    },
  ],
  [
    'errors: 429 rate_limited with Retry-After: too many wrong keys of one address, while a valid key is still accepted',
    async ({ db, acme }) => {
      const api = await startApi(db, { variables: { RELAY_WRONG_KEYS_PER_MINUTE: '3' } })
      const call = (key: string) => api.call('GET', `/api/${acme.name}/documents`, { key })
      const answers: Answer[] = []
      for (let tries = 0; tries < 5; tries += 1) answers.push(await call(newApiKey().key))
      const { status } = await call(acme.keys.viewer)
      await api.stop()
      expect([...answers.map((answer) => answer.status), status]).toEqual([401, 401, 401, 429, 429, 200])
      expect(answers[4]!.json.error.code).toBe('rate_limited')
      expect(Number(answers[4]!.headers.get('retry-after'))).toBeGreaterThan(0)
    },
  ],
  [
    'errors: 503 unavailable with Retry-After: the database refuses or breaks connections, and a change has changed nothing',
    async ({ acme }) => {
      const breaking = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
      await once(breaking, 'listening')
      for (const [port, cause] of [
        [1, 'ECONNREFUSED'],
        [(breaking.address() as AddressInfo).port, 'Connection terminated'],
      ] as const) {
        const unreachable = openDatabase(databaseConfig(`postgres://relay:relay@127.0.0.1:${port}/none`), 'unreachable')
        const api = await startApi(unreachable)
        const path = `/api/${acme.name}/destinations`
        const changing = await api.call('POST', path, { key: acme.keys.admin, body: objstore })
        const reading = await api.call('GET', path, { key: acme.keys.admin })
        await api.stop()
        await unreachable.destroy()
        for (const { status, json, headers } of [changing, reading]) {
          expect({ status, code: json.error.code }).toEqual({ status: 503, code: 'unavailable' })
          expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
        }
        expect(changing.json.error.nothing_changed).toBe(true)
        expect(reading.json.error).not.toHaveProperty('nothing_changed')
        expect(api.log.join('')).toContain(cause)
      }
      breaking.close()
    },
  ],
]
