import { z } from 'zod'
import { propertiesOf, type Direction, type JsonSchema } from '../../base/json-schema.ts'
import type { Endpoint } from '../endpoint.ts'
import { idempotencyKeyMaxCharacters } from '../idempotency.ts'
import { commonHeaders, errorResponsesOf } from './error-responses.ts'
import { csvExample } from './example-values.ts'
import type { Examples } from './examples.ts'
import { operationId, tagOf } from './operation-names.ts'

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description?: string | undefined
  schema: JsonSchema
  /** Only of a required parameter: Swagger UI sends it, and every filter with a value finds nothing, every other version is refused. */
  example?: unknown
}

type JsonBody = { schema: JsonSchema } & Examples

export interface Operation {
  operationId: string
  summary: string
  description: string
  tags: string[]
  deprecated?: true
  'x-required-level': string
  'x-audit-event'?: string | readonly string[] | undefined
  parameters: Parameter[]
  requestBody?: { required: true; content: { 'application/json': JsonBody } }
  responses: Record<string, object>
}

// Bytes have the content type with which they were received, which can be any. Generators of clients omit a response
// whose only media type is a wildcard; application/octet-stream tells them that the response is binary. The schema of the wildcard is the
// empty one, which every value meets: bytes that are JSON are an object for those who read them as JSON, and no text.
const binary = { schema: { type: 'string', format: 'binary' } }
const contents = {
  bytes: { 'application/octet-stream': binary, '*/*': {} },
  // Text: a client for Python makes a file of what is binary, and fails at text.
  csv: { 'text/csv': { schema: { type: 'string' }, example: csvExample } },
}

const successDescriptions: Record<number, string> = {
  200: 'The request succeeded.',
  201: 'The resource was created.',
  202: 'The request was accepted.',
  204: 'The request succeeded. The response has no body.',
  206: 'The request succeeded. The response is the range of bytes that the header `Range` asks for.',
}

const idempotencyKey: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'A unique text, for example a UUID. A repetition of the request with the same key and the same API key is not executed: it gets ' +
    'the first answer.',
  schema: { type: 'string', minLength: 1, maxLength: idempotencyKeyMaxCharacters },
}
const keyWithoutEffect: Parameter = {
  ...idempotencyKey,
  description: 'Accepted like that of every `POST`, and without effect: the request changes nothing, so a repetition is executed.',
}
const ifMatch: Parameter = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description: 'The `ETag` of the resource. If the resource has changed since, the request is answered with 412 and changes nothing.',
  schema: { type: 'string' },
}
const etagHeader = {
  required: true,
  schema: { type: 'string' },
  description: 'The version of the resource, for `If-Match`. It changes with the values that a client can read and change.',
}
const replayedHeader = {
  schema: { type: 'string', const: 'true' },
  description: 'Present if this is the stored answer to an earlier request with the same `Idempotency-Key`.',
}

type SuccessBody = JsonSchema | 'bytes' | 'csv' | 'none'

const successOf = (
  status: number,
  response: SuccessBody,
  own: Record<string, object>,
  { responseExampleOf }: Pick<SchemaConverter, 'responseExampleOf'>,
  description = successDescriptions[status],
) => {
  const common = { ...commonHeaders, ...own }
  if (response === 'none') return { description, headers: common }
  if (typeof response !== 'string') {
    const json = { schema: response, example: responseExampleOf(response) }
    return { description, headers: common, content: { 'application/json': json } }
  }
  const headers = { ...common, 'content-disposition': { required: true, schema: { type: 'string' } } }
  return { description, headers, content: contents[response] }
}

const contentRange = { 'content-range': { required: true, schema: { type: 'string' } } }

/** Returns the schema of a parameter. A query holds `true` and `false` as text; OpenAPI calls that a boolean. */
const parameterSchema = (property: JsonSchema): JsonSchema => {
  const { description: _, ...schema } = property
  return schema.enum?.join() === 'true,false' ? { type: 'boolean' } : schema
}

const parametersOf = (
  path: string,
  location: Parameter['in'],
  schema: JsonSchema,
  { parameterExampleOf }: Pick<SchemaConverter, 'parameterExampleOf'>,
): Parameter[] =>
  Object.entries(propertiesOf(schema)).map(([name, property]) => {
    const required = location === 'path' || schema.required?.includes(name) === true
    const own = parameterSchema(property)
    const example = parameterExampleOf(path, name, own)
    const parameter = { name, in: location, required, schema: own }
    if (required) return { ...parameter, description: property.description, example }
    const isFreeText = own.type === 'string' && own.enum === undefined && own.const === undefined
    return { ...parameter, description: [property.description, ...(isFreeText ? [`Example: \`${String(example)}\`.`] : [])].join(' ') }
  })

const isList = (response: Endpoint['response']) => response instanceof z.ZodObject && response.shape['data'] instanceof z.ZodArray

const descriptionOf = ({ description, level, audit, deprecated }: Endpoint) => {
  const events = [audit ?? []].flat().map((event) => `\`${event}\``)
  return [
    ...(description === undefined ? [] : [description]),
    ...(deprecated ? [`Deprecated since ${deprecated.since}; may be removed from ${deprecated.sunset} on. See ${deprecated.link}.`] : []),
    `Required level: \`${level}\`.`,
    ...(events.length > 0 ? [`Audit ${events.length > 1 ? 'events' : 'event'}: ${events.join(', ')}.`] : []),
  ].join(' ')
}

/** Converts the zod schemas of an endpoint and registers their named parts as components. */
export interface SchemaConverter {
  schemaOf(schema: z.ZodType, direction: Direction): JsonSchema
  requestBodyOf(body: z.ZodType): JsonBody
  responseExampleOf(response: JsonSchema): unknown
  parameterExampleOf(path: string, name: string, schema: JsonSchema): unknown
}

/** Describes an endpoint as an OpenAPI operation. */
export const operationOf = (endpoint: Endpoint, converter: SchemaConverter): Operation => {
  const { schemaOf, requestBodyOf } = converter
  const { method, path, summary, level, audit, params, query, body, status, alternative, version, checksVersion } = endpoint
  const headers = {
    ...(version && { etag: etagHeader }),
    ...(method === 'POST' && !endpoint.changesNothing && { 'idempotent-replayed': replayedHeader }),
  }
  const ownHeaders = Object.entries(endpoint.headers ?? {}).map(([name, description]) => [
    name,
    { description, schema: { type: 'string' } },
  ])
  const bodyOf = (kind: Endpoint['response']): SuccessBody => (typeof kind === 'string' ? kind : schemaOf(kind, 'response'))
  const response = bodyOf(endpoint.response)
  return {
    operationId: endpoint.operation ?? operationId(method, path, isList(endpoint.response)),
    summary,
    description: descriptionOf(endpoint),
    tags: [tagOf(path)],
    ...(endpoint.deprecated && { deprecated: true }),
    'x-required-level': level,
    'x-audit-event': audit,
    parameters: [
      ...(params ? parametersOf(path, 'path', schemaOf(params, 'request'), converter) : []),
      ...(query ? parametersOf(path, 'query', schemaOf(query, 'request'), converter) : []),
      ...(method === 'POST' ? [endpoint.changesNothing ? keyWithoutEffect : idempotencyKey] : []),
      ...(checksVersion ? [ifMatch] : []),
    ],
    ...(body && { requestBody: { required: true, content: { 'application/json': requestBodyOf(body) } } }),
    responses: {
      [status]: successOf(status, response, { ...headers, ...Object.fromEntries(ownHeaders) }, converter),
      ...(alternative && {
        [alternative.status]: successOf(
          alternative.status,
          bodyOf(alternative.response ?? endpoint.response),
          headers,
          converter,
          alternative.description,
        ),
      }),
      ...(endpoint.hasRanges && { 206: successOf(206, response, { ...headers, ...contentRange }, converter) }),
      ...errorResponsesOf(endpoint),
    },
  }
}
