import type { OpenApi } from '../../src/http/open-api.ts'
import { createContract, readOpenApi, type Exchange } from './contract.ts'

let document: OpenApi

beforeAll(async () => {
  document = await readOpenApi()
})

const requestId = '01K9R4B6ZD8M2V7X0QF3N5T1CE'
const repository = {
  id: 'R1',
  type: 'repository',
  attributes: {
    repo_id: 'Z1',
    name: 'Invoices',
    status: 'active',
    signature_verification: false,
    document_count: 0,
    created_at: '2026-11-21T09:00:00.000Z',
    updated_at: '2026-11-21T09:00:00.000Z',
  },
}

const exchange = (body: unknown, overrides: Partial<Exchange> = {}): Exchange => ({
  method: 'POST',
  path: '/api/acme/prod/repositories',
  body: '{"repo_id":"Z1","name":"Invoices"}',
  status: 201,
  headers: new Headers({ 'content-type': 'application/json; charset=utf-8', 'x-relay-request-id': requestId }),
  text: JSON.stringify(body),
  ...overrides,
})

const judged = (given: Exchange) => () => createContract(document).check(given)
const refusal = { error: { code: 'not_found', message: 'No', request_id: requestId } }
const { name: _, ...nameless } = repository.attributes

test('an answer as the document has it passes', () => {
  expect(judged(exchange({ data: repository }))).not.toThrow()
  expect(judged(exchange(refusal, { method: 'GET', path: '/api/acme/prod/nowhere', status: 404 }))).not.toThrow()
})

test.each<[string, Exchange, string]>([
  ['an attribute too many', exchange({ data: { ...repository, attributes: { ...repository.attributes, colour: 'red' } } }), 'additional'],
  ['an attribute too few', exchange({ data: { ...repository, attributes: nameless } }), "required property 'name'"],
  ['a time that is none', exchange({ data: { ...repository, attributes: { ...repository.attributes, created_at: 'soon' } } }), 'date-time'],
  ['an unknown status', exchange({ data: repository }, { status: 202 }), 'not among the answers'],
  ['no request id', exchange({ data: repository }, { headers: new Headers({ 'content-type': 'application/json' }) }), 'lacks the header'],
  [
    'another media type',
    exchange({ data: repository }, { headers: new Headers({ 'x-relay-request-id': requestId }) }),
    'undefined, and not',
  ],
  ['a body where there is none', exchange('x', { method: 'DELETE', path: '/api/a/b/repositories/1', status: 204 }), 'has a body'],
  ['an address that it does not have', exchange({ data: [] }, { path: '/api/acme/prod/nowhere', status: 200 }), 'does not know it'],
  [
    'a refusal without its code',
    exchange({ error: { message: 'No', request_id: requestId } }, { status: 409 }),
    "required property 'code'",
  ],
  ['a request taken that it does not allow', exchange({ data: repository }, { body: '{"name":"Invoices"}' }), 'the request of POST'],
])('%s fails', (_name, given, message) => {
  expect(judged(given)).toThrow(message)
})
