import { toJsonSchema, type JsonSchema } from '../../base/json-schema.ts'
import type { Connector } from '../../connectors/connector.ts'
import { createConnectors } from '../../connectors/index.ts'
import { connectionSettingsFields, givenConnectionSettings } from '../../domain/connection-settings.ts'
import { settingsNames } from '../../workspace/inputs.ts'
import { apiEndpoints, type EndpointDeps } from '../app.ts'
import type { Endpoint } from '../endpoint.ts'
import { connectorSchemas, withConnectors } from './destination-schemas.ts'
import { errorResponses, errorSchemas } from './error-responses.ts'
import { bodyExamples, parameterExample, responseExample } from './examples.ts'
import { apiInfo, tagDescriptions } from './info.ts'
import { tagOf } from './operation-names.ts'
import { operationOf, type Operation, type SchemaConverter } from './operations.ts'
import { describeWebhooks } from './webhooks.ts'

type ApiInfo = typeof apiInfo

export interface OpenApi extends ApiInfo {
  openapi: '3.1.0'
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  /** Messages that the relay sends. */
  webhooks: Record<string, object>
  components: Record<'securitySchemes' | 'headers' | 'responses', Record<string, object>> & { schemas: Record<string, JsonSchema> }
}

const nameOf = ({ $ref }: JsonSchema) => $ref?.split('/').at(-1)

/** Returns the schemas of the settings of a connection, which the endpoints read as an open object, with their parts. */
const settingsSchemas = (): Record<string, JsonSchema> => ({
  ...toJsonSchema(connectionSettingsFields.meta(settingsNames), 'request').named,
  ...toJsonSchema(givenConnectionSettings.meta(settingsNames), 'response').named,
})

/** Describes the management API. Opens nothing, because no handler is called. */
export const describeApi = (): OpenApi => openApiDocument(apiEndpoints({} as EndpointDeps), createConnectors().all)

/**
 * Builds an OpenAPI 3.1 document from a table of endpoints.
 * @throws Error if two schemas or two operations have the same name
 */
export const openApiDocument = (endpoints: readonly Endpoint[], connectors: readonly Connector[]): OpenApi => {
  const settings = settingsSchemas()
  const schemas: Record<string, JsonSchema> = { ...errorSchemas, ...connectorSchemas(connectors), ...settings }

  const schemaOf: SchemaConverter['schemaOf'] = (zodSchema, direction) => {
    const { schema, named } = toJsonSchema(zodSchema, direction)
    for (const [name, definition] of Object.entries(named).filter(([each]) => !(each in settings))) {
      if (name in schemas && JSON.stringify(schemas[name]) !== JSON.stringify(definition)) {
        throw new Error(`two schemas are called ${name}`)
      }
      schemas[name] = definition
    }
    return schema
  }

  const requestBodyOf: SchemaConverter['requestBodyOf'] = (body) => {
    const schema = schemaOf(body, 'request')
    const name = nameOf(schema)
    if (name === undefined) throw new Error('a request body has no name (.meta({ id }))')
    schemas[name] = withConnectors(name, schemas[name]!, connectors, schemas)
    return { schema, ...bodyExamples(schema, schemas) }
  }

  const converter: SchemaConverter = {
    schemaOf,
    requestBodyOf,
    responseExampleOf: (schema) => responseExample(schema, schemas),
    parameterExampleOf: (path, name, schema) => parameterExample(path, name, schema, schemas),
  }

  const paths: OpenApi['paths'] = {}
  const operationIds = new Set<string>()
  for (const endpoint of endpoints) {
    const operation = operationOf(endpoint, converter)
    if (operationIds.has(operation.operationId)) throw new Error(`two operations are called ${operation.operationId}`)
    operationIds.add(operation.operationId)
    const path = endpoint.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation }
  }

  const webhooks = describeWebhooks(converter)

  return {
    openapi: '3.1.0',
    ...apiInfo,
    tags: [...new Set(endpoints.map(({ path }) => tagOf(path)))].map((name) => ({ name, description: tagDescriptions[name] ?? '' })),
    paths,
    webhooks,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key of the workspace: `relay_<id>_<secret>`.' },
      },
      headers: {
        RequestId: {
          required: true,
          schema: { type: 'string', pattern: '^[0-9A-Z]{26}$' },
          description: 'The id of this request. Quote it when you contact the operator.',
        },
        RelayVersion: { required: true, schema: { type: 'string' }, description: 'The version of the relay that answers.' },
        RetryAfter: { required: true, schema: { type: 'integer' }, description: 'Seconds to wait before the next request.' },
      },
      responses: errorResponses(),
      schemas: Object.fromEntries(Object.entries(schemas).toSorted(([one], [other]) => (one < other ? -1 : 1))),
    },
  }
}
