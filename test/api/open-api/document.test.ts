import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { openApiFile } from '../../../docs/openapi.ts'
import { endpoint } from '../../../src/api/endpoint.ts'
import { describeApi, openApiDocument } from '../../../src/api/open-api/document.ts'
import { operationId } from '../../../src/api/open-api/operation-names.ts'
import type { Operation } from '../../../src/api/open-api/operations.ts'
import { idParams, one, resource } from '../../../src/api/schemas.ts'
import { toJsonSchema, type JsonSchema } from '../../../src/base/json-schema.ts'
import type { Connector } from '../../../src/connectors/connector.ts'
import { createConnectors } from '../../../src/connectors/index.ts'
import { timestamp } from '../../../src/domain/date-range.ts'

const { find: findConnector } = createConnectors()

const operations = (): [string, Operation][] =>
  Object.entries(describeApi().paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [`${method} ${path}`, operation]),
  )

const resolve = (schema: JsonSchema, schemas: Record<string, JsonSchema>) =>
  schema.$ref === undefined ? schema : schemas[schema.$ref.split('/').at(-1)!]!

test('openapi.json matches the endpoints (run `npm run docs` to update it)', async () => {
  expect(await readFile(new URL('../../../openapi.json', import.meta.url), 'utf8')).toBe(openApiFile())
})

test('the document has the version of the package', async () => {
  const { version } = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string }
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
  ['PATCH', '/repositories/:id/certificates/:certificateId', false, 'updateRepositoryCertificate'],
  ['DELETE', '/api-keys/:id', false, 'deleteApiKey'],
])('%s %s (list: %p) is named %s', (method, path, isList, name) => {
  expect(operationId(method, path, isList)).toBe(name)
})

test('every operation has a unique name and a summary, and describes each parameter', () => {
  const all = operations()
  expect(new Set(all.map(([, { operationId: name }]) => name)).size).toBe(all.length)
  // A list has a name of its own, also where its path ends with a word of one resource.
  const lists = all.filter(([, { responses }]) => /List"/.test(JSON.stringify(responses['200'] ?? {})))
  expect(lists.filter(([, { operationId: name }]) => !/^(list|search)[A-Z]/.test(name)).map(([at]) => at)).toEqual([])
  expect(all.filter(([, { summary }]) => summary === '').map(([at]) => at)).toEqual([])
  const undescribed = all.flatMap(([at, { parameters }]) =>
    parameters.filter(({ description }) => description === undefined).map(({ name }) => `${at}: ${name}`),
  )
  expect(undescribed).toEqual([])
})

test('every tag has a description', () => {
  expect(describeApi().tags.filter(({ description }) => description === '')).toEqual([])
})

test('every attribute of a request body has a description', () => {
  const { schemas } = describeApi().components
  const undescribed = operations().flatMap(([at, { requestBody }]) => {
    const body = resolve(requestBody?.content['application/json'].schema ?? {}, schemas)
    return (body.oneOf ?? [body]).flatMap((shape) =>
      Object.entries((resolve(shape ?? {}, schemas).properties ?? {}) as Record<string, { description?: string; $ref?: string }>)
        .filter(([, { description, $ref }]) => description === undefined && $ref === undefined)
        .map(([name]) => `${at}: ${name}`),
    )
  })
  expect(undescribed).toEqual([])
})

test('an operation states its level, its audit events and its error statuses', () => {
  const byName = Object.fromEntries(operations())
  expect(byName['delete /repositories/{id}']).toMatchObject({
    'x-required-level': 'admin',
    'x-audit-event': ['repository.deleted', 'cert.deleted', 'connection.deleted', 'connection.updated'],
  })
  const statuses = (at: string) => Object.keys(byName[at]!.responses).map(Number)
  expect(statuses('get /settings')).toEqual([200, 400, 401, 429, 500, 503])
  expect(statuses('post /repositories')).toEqual([201, 400, 401, 403, 409, 413, 415, 422, 429, 500, 503])
  expect(statuses('delete /repositories/{id}')).toEqual([200, 204, 400, 401, 403, 404, 412, 429, 500, 503])
})

test('a destination has a variant for each connector, with write-only secrets', () => {
  const { paths, components } = describeApi()
  expect(paths['/destinations']!['post']!.requestBody!.content['application/json'].schema).toEqual({
    $ref: '#/components/schemas/DestinationInput',
  })
  const body = components.schemas['DestinationInput']!
  const reference = '#/components/schemas/DestinationInputSftp'
  expect(body.oneOf).toContainEqual({ $ref: reference })
  expect(body['discriminator']).toMatchObject({ propertyName: 'connector_type', mapping: { sftp: reference } })
  expect(components.schemas['DestinationInputSftp']).toMatchObject({
    required: ['connector_type', 'config', 'credentials', 'name'],
    properties: {
      connector_type: { const: 'sftp' },
      config: { $ref: '#/components/schemas/DestinationConfigSftp' },
      credentials: { $ref: '#/components/schemas/DestinationCredentialsSftp' },
    },
  })
  expect(components.schemas['DestinationConfigSftp']).toMatchObject({ required: ['host'], properties: { port: { default: 22 } } })
  expect(components.schemas['DestinationCredentialsSftp']!.properties).toMatchObject({ password: { writeOnly: true, format: 'password' } })
  // PATCH merges config, so the body does not have to contain the required keys.
  const change = components.schemas['DestinationChange']!
  expect(change.properties!['config']).toMatchObject({ type: 'object', additionalProperties: true })
  expect(change.required).toBeUndefined()
})

test('every secret attribute of every connector is write-only', () => {
  const connectors = describeApi().components.schemas
  const readable = Object.entries(connectors)
    .filter(([name]) => name.startsWith('DestinationCredentials'))
    .flatMap(([name, { properties }]) => Object.entries(properties as Record<string, object>).map(([key, field]) => ({ name, key, field })))
    .filter(({ key, field }) => /secret|password|token|private|passphrase|client_key/.test(key) && !('writeOnly' in field))
    // How a token is got, the name of a key, and the end of a secret.
    .filter(
      ({ key }) =>
        !/^(token_(url|uri|auth_method|ca_certificate)|federated_token_file|subject_token_type|subject_token_field_name|private_key_id|previous_secret_expires_at)$/.test(
          key,
        ),
    )
  expect(readable).toEqual([])
})

describe('toJsonSchema', () => {
  test('describes a timestamp as text in both directions', () => {
    for (const direction of ['request', 'response'] as const) {
      const { schema } = toJsonSchema(z.object({ at: timestamp, until: timestamp.nullable() }), direction)
      expect(schema.properties).toEqual({
        at: { type: 'string', format: 'date-time' },
        until: { type: ['string', 'null'], format: 'date-time' },
      })
    }
  })

  test('forbids unknown keys in a request and leaves them open in a response', () => {
    expect(toJsonSchema(z.strictObject({ a: z.string() }), 'request').schema.additionalProperties).toBe(false)
    expect(toJsonSchema(z.strictObject({ a: z.string() }), 'response').schema).not.toHaveProperty('additionalProperties')
  })

  test('omits a case-insensitive pattern, because JSON Schema has no pattern flags', () => {
    const schema = z.object({ strict: z.string().regex(/^[a-z]$/), loose: z.string().regex(/^[a-z]$/i) })
    expect(toJsonSchema(schema, 'request').schema.properties).toEqual({
      strict: { type: 'string', pattern: '^[a-z]$' },
      loose: { type: 'string' },
    })
  })
})

test('two different schemas with the same name are an error', () => {
  const thingEndpoint = (path: string, attributes: z.ZodObject) =>
    endpoint({
      method: 'GET',
      path,
      level: 'viewer',
      summary: 'One',
      params: idParams,
      response: one(resource('Thing', 'thing', attributes)),
      handle: () => Promise.reject(new Error('never called')),
    })
  const things = [thingEndpoint('/things/:id', z.object({ a: z.string() })), thingEndpoint('/others/:id', z.object({ b: z.string() }))]
  expect(() => openApiDocument(things, [findConnector('sftp') as Connector])).toThrow('two schemas are called ThingAttributes')
})
