import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { openApiFile } from '../../docs/openapi.ts'
import type { Connector } from '../../src/connectors/connector.ts'
import { findConnector } from '../../src/connectors/index.ts'
import { describeApi } from '../../src/http/description.ts'
import { endpoint } from '../../src/http/endpoint.ts'
import { openApiDocument, type Operation } from '../../src/http/open-api.ts'
import { operationId } from '../../src/http/operation-names.ts'
import { idParams, one, resource, timestamp } from '../../src/http/schemas.ts'
import { wireSchema } from '../../src/http/wire-schema.ts'

const operations = (): [string, Operation][] =>
  Object.entries(describeApi().paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [`${method} ${path}`, operation]),
  )

test('openapi.json is as the endpoints are: run `npm run docs` where this fails', async () => {
  expect(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')).toBe(openApiFile())
})

test('the version it tells is that of the package', async () => {
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  expect(describeApi().info.version).toBe(version)
})

test.each([
  ['GET', '/documents', true, 'listDocuments'],
  ['GET', '/documents/:id', false, 'getDocument'],
  ['GET', '/documents/:id/attempts', true, 'listDocumentAttempts'],
  ['GET', '/settings', false, 'getSettings'],
  ['GET', '/audit-logs.csv', false, 'getAuditLogsCsv'],
  ['GET', '/requests/:id/body/:kind', false, 'getRequestBody'],
  ['POST', '/repositories', false, 'createRepository'],
  ['POST', '/repositories/:id/certificates', false, 'createRepositoryCertificate'],
  ['POST', '/documents/:id/retry', false, 'retryDocument'],
  ['POST', '/documents/retry', false, 'retryDocuments'],
  ['PATCH', '/repositories/:id/certificates/:certificateId', false, 'updateRepositoryCertificate'],
  ['DELETE', '/api-keys/:id', false, 'deleteApiKey'],
])('%s %s is called by rule (a list: %p): %s', (method, path, isList, name) => {
  expect(operationId(method, path, isList)).toBe(name)
})

test('every operation has a name of its own, a summary, and a description of each parameter', () => {
  const all = operations()
  expect(new Set(all.map(([, { operationId: name }]) => name)).size).toBe(all.length)
  expect(all.filter(([, { summary }]) => summary === '').map(([at]) => at)).toEqual([])
  const silent = all.flatMap(([at, { parameters }]) =>
    parameters.filter(({ description }) => description === undefined).map(({ name }) => `${at}: ${name}`),
  )
  expect(silent).toEqual([])
})

test('every value of a request body has a description', () => {
  const silent = operations().flatMap(([at, { requestBody }]) => {
    const body = requestBody?.content['application/json'].schema
    return (body?.oneOf ?? [body]).flatMap((shape) =>
      Object.entries((shape?.properties ?? {}) as Record<string, { description?: string; $ref?: string }>)
        .filter(([, { description, $ref }]) => description === undefined && $ref === undefined)
        .map(([name]) => `${at}: ${name}`),
    )
  })
  expect(silent).toEqual([])
})

test('level and audit event of an endpoint are told, and the refusals it can give', () => {
  const told = Object.fromEntries(operations())
  expect(told['delete /repositories/{id}']).toMatchObject({
    'x-required-level': 'admin',
    'x-audit-event': ['repository.deleted', 'cert.deleted', 'connection.deleted'],
  })
  const statuses = (at: string) => Object.keys(told[at]!.responses).map(Number)
  expect(statuses('get /settings')).toEqual([200, 400, 401, 429, 500, 503])
  expect(statuses('post /repositories')).toEqual([201, 400, 401, 403, 409, 413, 415, 422, 429, 500, 503])
  expect(statuses('delete /repositories/{id}')).toEqual([204, 400, 401, 403, 404, 429, 500, 503])
})

test('a destination is described for each connector there is, with its secrets write-only', () => {
  const { paths, components } = describeApi()
  const body = paths['/destinations']!['post']!.requestBody!.content['application/json'].schema
  const sftp = body.oneOf!.find(({ title }) => title === 'sftp')
  expect(sftp).toMatchObject({
    required: ['connector_type', 'config', 'credentials', 'name'],
    properties: {
      connector_type: { const: 'sftp' },
      config: { $ref: '#/components/schemas/DestinationConfigSftp' },
      credentials: { $ref: '#/components/schemas/DestinationCredentialsSftp' },
    },
  })
  expect(components.schemas['DestinationConfigSftp']).toMatchObject({ required: ['host'], properties: { port: { default: 22 } } })
  expect(components.schemas['DestinationCredentialsSftp']!.properties).toMatchObject({ password: { writeOnly: true, format: 'password' } })
  // a change is merged: what it may name is not what a whole config must have
  const change = paths['/destinations/{id}']!['patch']!.requestBody!.content['application/json'].schema
  expect(change.properties!['config']).toMatchObject({ type: 'object', additionalProperties: true })
  expect(change.required).toBeUndefined()
})

test('no secret field of any connector is left readable', () => {
  const connectors = describeApi().components.schemas
  const readable = Object.entries(connectors)
    .filter(([name]) => name.startsWith('DestinationCredentials'))
    .flatMap(([name, { properties }]) => Object.entries(properties as Record<string, object>).map(([key, field]) => ({ name, key, field })))
    .filter(({ key, field }) => /secret|password|token|private|passphrase/.test(key) && !('writeOnly' in field))
  expect(readable).toEqual([])
})

describe('a schema on the wire', () => {
  it('has the text of a time, in either direction', () => {
    for (const direction of ['request', 'response'] as const) {
      const { schema } = wireSchema(z.object({ at: timestamp, until: timestamp.nullable() }), direction)
      expect(schema.properties).toEqual({
        at: { type: 'string', format: 'date-time' },
        until: { type: ['string', 'null'], format: 'date-time' },
      })
    }
  })

  it('refuses unknown keys in a request, and promises nothing about them in an answer', () => {
    expect(wireSchema(z.strictObject({ a: z.string() }), 'request').schema.additionalProperties).toBe(false)
    expect(wireSchema(z.strictObject({ a: z.string() }), 'response').schema).not.toHaveProperty('additionalProperties')
  })

  it('has no pattern where case does not matter, as JSON Schema has no flags', () => {
    const schema = z.object({ strict: z.string().regex(/^[a-z]$/), loose: z.string().regex(/^[a-z]$/i) })
    expect(wireSchema(schema, 'request').schema.properties).toEqual({
      strict: { type: 'string', pattern: '^[a-z]$' },
      loose: { type: 'string' },
    })
  })
})

test('two schemas of one name are refused', () => {
  const about = (path: string, attributes: z.ZodObject) =>
    endpoint({
      method: 'GET',
      path,
      level: 'viewer',
      summary: 'One',
      params: idParams,
      response: one(resource('thing', attributes).meta({ id: 'Thing' })),
      status: 200,
      handle: () => Promise.reject(new Error('never called')),
    })
  const things = [about('/things/:id', z.object({ a: z.string() })), about('/others/:id', z.object({ b: z.string() }))]
  expect(() => openApiDocument(things, [findConnector('sftp') as Connector])).toThrow('two schemas are called Thing')
})
