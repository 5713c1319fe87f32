import type { z } from 'zod'
import type { Connector } from '../connectors/connector.ts'
import { connectorSchemas, withConnectors } from './destination-schemas.ts'
import type { Endpoint } from './endpoint.ts'
import { aboutTheApi } from './open-api-about.ts'
import { bodyExamples, type Examples } from './open-api-example.ts'
import { errorResponses, errorSchema, refusalsOf, requestIdHeader } from './open-api-errors.ts'
import { operationId, tagOf } from './operation-names.ts'
import { propertiesOf, wireSchema, type JsonSchema } from './wire-schema.ts'

interface Parameter {
  name: string
  in: 'path' | 'query'
  required: boolean
  description?: string | undefined
  schema: JsonSchema
}

export interface Operation {
  operationId: string
  summary: string
  description: string
  tags: string[]
  'x-required-level': string
  'x-audit-event'?: string | readonly string[] | undefined
  parameters: Parameter[]
  requestBody?: { required: true; content: { 'application/json': { schema: JsonSchema } & Examples } }
  responses: Record<string, object>
}

export interface OpenApi {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string; license: { name: string; identifier: string } }
  servers: { url: string; description: string; variables: Record<string, { default: string; description: string }> }[]
  security: Record<string, string[]>[]
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: Record<'securitySchemes' | 'headers' | 'responses', Record<string, object>> & { schemas: Record<string, JsonSchema> }
}

// the bytes of a document are of the type that it was received with
const mediaTypes = { bytes: '*/*', csv: 'text/csv' }
const stream: JsonSchema = { type: 'string', format: 'binary' }

/** @param answer what it looks like, or that it is a stream, or nothing */
const successOf = (answer: JsonSchema | 'bytes' | 'csv' | 'none', description: string) => {
  if (answer === 'none') return { description: 'Done; nothing to say', headers: requestIdHeader }
  if (typeof answer !== 'string') return { description, headers: requestIdHeader, content: { 'application/json': { schema: answer } } }
  const headers = { ...requestIdHeader, 'content-disposition': { required: true, schema: { type: 'string' } } }
  return { description, headers, content: { [mediaTypes[answer]]: { schema: stream } } }
}

/** As it is written in a query, true and false are words. */
const parameterSchema = (property: JsonSchema): JsonSchema => {
  const { description: _, ...schema } = property
  return schema.enum?.join() === 'true,false' ? { type: 'boolean' } : schema
}

const parametersOf = (where: Parameter['in'], schema: JsonSchema): Parameter[] =>
  Object.entries(propertiesOf(schema)).map(([name, property]) => ({
    name,
    in: where,
    required: where === 'path' || schema.required?.includes(name) === true,
    description: property.description,
    schema: parameterSchema(property),
  }))

const isList = (answer: JsonSchema | string) => typeof answer !== 'string' && propertiesOf(answer)['data']?.type === 'array'

const descriptionOf = ({ level, audit }: Endpoint) => {
  const events = [audit ?? []].flat().map((event) => `\`${event}\``)
  return `Needs a key of level \`${level}\`.${events.length > 0 ? ` A success is in the audit log as ${events.join(' or ')}.` : ''}`
}

/**
 * The description of an API, in OpenAPI 3.1, from the table of its endpoints.
 * @throws Error where two schemas have one name, or two operations
 */
export const openApiDocument = (endpoints: readonly Endpoint[], connectors: readonly Connector[]): OpenApi => {
  const schemas: Record<string, JsonSchema> = { Error: errorSchema, ...connectorSchemas(connectors) }
  const taken = new Set<string>()

  const schemaOf: (...given: Parameters<typeof wireSchema>) => JsonSchema = (...given) => {
    const { schema, named } = wireSchema(...given)
    for (const [name, definition] of Object.entries(named)) {
      if (name in schemas && JSON.stringify(schemas[name]) !== JSON.stringify(definition)) throw new Error(`two schemas are called ${name}`)
      schemas[name] = definition
    }
    return schema
  }

  const requestBodyOf = (body: z.ZodType): Operation['requestBody'] => {
    const schema = withConnectors(schemaOf(body, 'request'), connectors)
    return { required: true, content: { 'application/json': { schema, ...bodyExamples(schema, schemas) } } }
  }

  const operationOf = (endpoint: Endpoint): Operation => {
    const { method, path, summary, level, audit, params, query, body, response, status, alternative } = endpoint
    const answer = typeof response === 'string' ? response : schemaOf(response, 'response')
    const id = operationId(method, path, isList(answer))
    if (taken.has(id)) throw new Error(`two operations are called ${id}`)
    taken.add(id)
    return {
      operationId: id,
      summary,
      description: descriptionOf(endpoint),
      tags: [tagOf(path)],
      'x-required-level': level,
      'x-audit-event': audit,
      parameters: [
        ...(params ? parametersOf('path', schemaOf(params, 'request')) : []),
        ...(query ? parametersOf('query', schemaOf(query, 'request')) : []),
      ],
      ...(body && { requestBody: requestBodyOf(body) }),
      responses: {
        [status]: successOf(answer, summary),
        ...(alternative && { [alternative.status]: successOf(answer, alternative.description) }),
        ...refusalsOf(endpoint),
      },
    }
  }

  const paths: OpenApi['paths'] = {}
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operationOf(endpoint) }
  }

  return {
    openapi: '3.1.0',
    ...aboutTheApi,
    tags: [...new Set(endpoints.map(({ path }) => tagOf(path)))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'An API key of the workspace: relay_<id>_<secret>' } },
      headers: {
        RequestId: {
          required: true,
          schema: { type: 'string', pattern: '^[0-9A-Z]{26}$' },
          description: 'The id of this request: quote it to the operator',
        },
        RetryAfter: { required: true, schema: { type: 'integer' }, description: 'Seconds to wait' },
      },
      responses: errorResponses(),
      schemas: Object.fromEntries(Object.entries(schemas).toSorted(([one], [other]) => (one < other ? -1 : 1))),
    },
  }
}
