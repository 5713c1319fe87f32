import { apiKeyParts } from '../support/api-key.ts'
import { startApi } from '../support/api.ts'
import { createTestDatabase } from '../support/database.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const database = share(await createTestDatabase())
const api = share(await startApi(database.db))
const acme = await api.tenant('acme/invoices')

const linesOf = (requestId: string | null) =>
  api.log.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => line['request_id'] === requestId)

const lineOf = async (requestId: string | null) =>
  (
    await until(
      'the request is logged',
      () => linesOf(requestId),
      (lines) => lines.length > 0,
    )
  )[0]!

test('every request to the API is one line, without its query and without the key', async () => {
  const { headers } = await acme.call('GET', '/documents?per_page=1&status=failed')
  const keyId = apiKeyParts(acme.keys.admin).id

  expect(await lineOf(headers.get('x-relay-request-id'))).toMatchObject({
    event: 'http.request',
    surface: 'api',
    method: 'GET',
    path: '/api/acme/invoices/documents',
    status: 200,
    complete: true,
    duration_ms: expect.any(Number),
    key_id: keyId,
    source_ip: expect.any(String),
    msg: 'request',
  })
  expect(api.log.join('')).not.toContain(acme.keys.admin)
  expect(api.log.join('')).not.toContain('per_page')
})

test('a refused request names the code of its error, and the key even if its level is too low', async () => {
  const { headers } = await acme.call('DELETE', '/destinations/01K9R4B6ZD8M2V7X0QF3N5T1CE', undefined, { key: acme.keys.viewer })
  const line = await lineOf(headers.get('x-relay-request-id'))
  expect(line).toMatchObject({ status: 403, code: 'forbidden', key_id: apiKeyParts(acme.keys.viewer).id })

  const unknown = await acme.call('GET', '/documents', undefined, { key: 'relay_wrong' })
  expect(await lineOf(unknown.headers.get('x-relay-request-id'))).toMatchObject({ status: 401, code: 'unauthorized' })
  expect(api.log.join('')).not.toContain('relay_wrong')
})
