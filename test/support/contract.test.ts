import { createContract, readOpenApi, type Exchange } from './contract.ts'

const document = await readOpenApi()

const requestId = '01K9R4B6ZD8M2V7X0QF3N5T1CE'
const repository = {
  id: 'R1',
  type: 'repository',
  attributes: {
    repo_id: 'Z1',
    name: 'Invoices',
    status: 'active',
    signature_verification: false,
    signed_parameter_order: 'fixed',
    accepts_mcreate: true,
    code_page: 'windows-1252',
    home_destination_id: null,
    home_after_days: 30,
    upstream: null,
    document_count: 0,
    active_certificates: 0,
    last_request_at: null,
    warnings: [],
    created_at: '2026-11-21T09:00:00.000Z',
    updated_at: '2026-11-21T09:00:00.000Z',
  },
}

const exchange = (body: unknown, overrides: Partial<Exchange> = {}): Exchange => ({
  method: 'POST',
  path: '/api/acme/prod/repositories',
  body: '{"repo_id":"Z1","name":"Invoices"}',
  status: 201,
  headers: new Headers({
    'content-type': 'application/json; charset=utf-8',
    'x-relay-request-id': requestId,
    'x-relay-version': '0.1.0',
    etag: '"v1"',
  }),
  text: JSON.stringify(body),
  ...overrides,
})

const check = (exchanged: Exchange) => () => createContract(document).check(exchanged)
const refusal = { error: { code: 'not_found', message: 'No', request_id: requestId } }
const { name: _, ...nameless } = repository.attributes

test('a response that matches openapi.json passes', () => {
  expect(check(exchange({ data: repository }))).not.toThrow()
  expect(check(exchange(refusal, { method: 'GET', path: '/api/acme/prod/nowhere', status: 404 }))).not.toThrow()
})

test.each<[string, Exchange, string]>([
  ['an additional attribute', exchange({ data: { ...repository, attributes: { ...repository.attributes, colour: 'red' } } }), 'additional'],
  ['a missing attribute', exchange({ data: { ...repository, attributes: nameless } }), "required property 'name'"],
  [
    'an invalid timestamp',
    exchange({ data: { ...repository, attributes: { ...repository.attributes, created_at: 'soon' } } }),
    'date-time',
  ],
  ['an unknown status', exchange({ data: repository }, { status: 202 }), 'not among the responses'],
  [
    'a missing request id',
    exchange({ data: repository }, { headers: new Headers({ 'content-type': 'application/json' }) }),
    'lacks the header',
  ],
  [
    'a different media type',
    exchange({ data: repository }, { headers: new Headers({ 'x-relay-request-id': requestId, 'x-relay-version': '0.1.0', etag: '"v1"' }) }),
    'has the media type undefined',
  ],
  ['an unexpected body', exchange('x', { method: 'DELETE', path: '/api/a/b/repositories/1', status: 204 }), 'has a body'],
  ['an unknown path', exchange({ data: [] }, { path: '/api/acme/prod/nowhere', status: 200 }), 'does not contain it'],
  ['an error without its code', exchange({ error: { message: 'No', request_id: requestId } }, { status: 409 }), "required property 'code'"],
  ['an accepted request that is not allowed', exchange({ data: repository }, { body: '{"name":"Invoices"}' }), 'the request of POST'],
])('%s fails', (_name, exchanged, message) => {
  expect(check(exchanged)).toThrow(message)
})
