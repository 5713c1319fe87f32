import { request } from 'node:http'
import { UserError } from '../../src/base/errors.ts'
import { readConfig } from '../../src/config/config.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { startApi } from '../support/api.ts'
import { createTestDatabase } from '../support/database.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { wire } from './objstore.ts'

const origin = 'https://console.example'
const database = share(await createTestDatabase())
const store = createPostgresStore(database.db)
const api = share(await startApi(database.db))
const acme = await api.tenant('acme/prod')
const open = share(await startApi(database.db, { variables: { RELAY_CORS_ORIGINS: `${origin}, http://localhost:3000` } }))

const corsHeaders = (headers: Headers) => [...headers.keys()].filter((name) => name.startsWith('access-control-'))

describe('a web page of another origin', () => {
  const preflight = (url: string, from: string) =>
    fetch(`${url}${acme.path}/destinations`, {
      method: 'OPTIONS',
      headers: {
        origin: from,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,idempotency-key',
      },
    })

  test.each([origin, 'http://localhost:3000'])('may call the API if RELAY_CORS_ORIGINS contains its origin, %s', async (from) => {
    const allowed = await preflight(open.baseUrl, from)
    expect({ status: allowed.status, headers: Object.fromEntries(allowed.headers) }).toMatchObject({
      status: 204,
      headers: {
        'access-control-allow-origin': from,
        'access-control-allow-methods': 'GET,HEAD,PUT,POST,DELETE,PATCH',
        'access-control-allow-headers': 'authorization,content-type,idempotency-key',
        'access-control-max-age': '600',
      },
    })
    expect(allowed.headers.get('access-control-allow-credentials')).toBeNull()

    const { headers } = await open.call('GET', `${acme.path}/destinations`, { key: acme.keys.viewer, headers: { origin: from } })
    expect(headers.get('access-control-allow-origin')).toBe(from)
    expect(headers.get('access-control-expose-headers')).toMatch(/Link.*X-Relay-Request-Id.*X-Relay-Version/)
    expect(headers.get('vary')).toMatch(/Origin/)
  })

  test('can read a refusal, too', async () => {
    const { status, headers } = await open.call('GET', `${acme.path}/destinations`, { headers: { origin } })
    expect({ status, allowed: headers.get('access-control-allow-origin') }).toEqual({ status: 401, allowed: origin })
  })

  test.each(['https://console.example.evil.example', 'https://console.example:444', 'http://console.example', 'null'])(
    'may not call the API from %s',
    async (from) => {
      const refused = await preflight(open.baseUrl, from)
      expect({ status: refused.status, headers: corsHeaders(refused.headers) }).toEqual({ status: 405, headers: [] })
      const { headers } = await open.call('GET', `${acme.path}/destinations`, { key: acme.keys.viewer, headers: { origin: from } })
      expect(corsHeaders(headers)).toEqual([])
    },
  )

  test('may not call the API by default', async () => {
    const refused = await preflight(api.baseUrl, origin)
    expect({ status: refused.status, headers: corsHeaders(refused.headers) }).toEqual({ status: 405, headers: [] })
  })

  test.each(['*', 'console.example', 'https://console.example/', 'https://console.example/path', 'file:///etc'])(
    'is not allowed by the invalid origin %s',
    (text) => {
      expect(() => readConfig({ RELAY_CORS_ORIGINS: text })).toThrow(UserError)
    },
  )
})

describe('compression', () => {
  /** Requests a path without decoding the answer. */
  const encodingOf = (path: string, acceptEncoding: string, method = 'GET') =>
    new Promise<{ encoding: string | undefined; vary: string | undefined; bytes: number }>((resolve, reject) => {
      const headers = { authorization: `Bearer ${acme.keys.viewer}`, 'accept-encoding': acceptEncoding }
      const sent = request(`${api.baseUrl}${acme.path}${path}`, { method, headers }, (response) => {
        let bytes = 0
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length
        })
        response.on('end', () => resolve({ encoding: response.headers['content-encoding'], vary: response.headers.vary, bytes }))
      })
      sent.on('error', reject)
      sent.end()
    })

  beforeAll(async () => {
    for (const repoId of ['A1', 'A2', 'A3', 'A4', 'A5']) await wire(acme, repoId)
  })

  test.each([
    ['gzip', 'gzip'],
    ['gzip, deflate, br, zstd', 'br'],
    ['br;q=0, gzip', 'gzip'],
    ['identity', undefined],
    ['deflate', undefined],
    ['identity;q=0', undefined],
    ['*;q=0', undefined],
  ])('a list in JSON is sent to a client that accepts %p with the encoding %p', async (accepted, encoding) => {
    const plain = await encodingOf('/destinations', 'identity')
    const answer = await encodingOf('/destinations', accepted)
    expect({ encoding: answer.encoding, vary: answer.vary }).toMatchObject({ encoding, vary: expect.stringMatching(/Accept-Encoding/i) })
    if (encoding) expect(answer.bytes).toBeLessThan(plain.bytes / 2)
    else expect(answer.bytes).toBe(plain.bytes)
  })

  test('a short answer is not compressed', async () => {
    expect((await encodingOf('/settings', 'gzip')).encoding).toBeUndefined()
  })

  test('the content of a document is not compressed, even if it is JSON', async () => {
    const { repositoryId } = await wire(acme, 'A6')
    const content = await store.write(
      acme.id,
      (async function* bytes() {
        yield Buffer.from(JSON.stringify('x'.repeat(10_000)))
      })(),
    )
    await database.db.transaction((trx) => content.own(trx))
    const document = { workspaceId: acme.id, repositoryId, repoId: 'A6', contentId: content.id, contentType: 'application/json' }
    const id = await insertDocument(database.db, document)
    await database.db('documents').where({ id }).update({ size_bytes: 10_002 })
    expect(await encodingOf(`/documents/${id}/content`, 'gzip')).toMatchObject({ encoding: undefined, bytes: 10_002 })
  })
})
