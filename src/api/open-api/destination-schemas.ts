import { propertiesOf, toJsonSchema, type JsonSchema } from '../../base/json-schema.ts'
import type { Connector } from '../../connectors/connector.ts'
import { connectorPart } from '../schemas.ts'
import { pascalCase } from './operation-names.ts'

const nameOf = {
  config: (kind: string) => `DestinationConfig${pascalCase(kind)}`,
  credentials: (kind: string) => `DestinationCredentials${pascalCase(kind)}`,
}
const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

/** Returns the config and credentials schemas of every connector as components, each with its example. */
export const connectorSchemas = (connectors: readonly Connector[]): Record<string, JsonSchema> =>
  Object.fromEntries(
    connectors.flatMap(({ kind, config, credentials, example }) => [
      ...componentsOf(nameOf.config(kind), toJsonSchema(config, 'request').schema, example.config),
      ...componentsOf(nameOf.credentials(kind), toJsonSchema(credentials, 'request').schema, example.credentials),
    ]),
  )

/** Returns a schema and the objects in it, at any depth, as components. */
const componentsOf = (name: string, schema: JsonSchema, example?: object): [string, JsonSchema][] => {
  const inner = Object.entries(propertiesOf(schema)).filter(([, { properties }]) => properties !== undefined)
  const references = inner.map(([key, { description }]) => [key, { ...ref(name + pascalCase(key)), description }])
  const properties = { ...propertiesOf(schema), ...Object.fromEntries(references) }
  return [
    [name, { ...schema, properties, ...(example !== undefined && { examples: [example] }) }],
    ...inner.flatMap(([key, part]) => componentsOf(name + pascalCase(key), part)),
  ]
}

/** Registers the body of a request that holds a whole destination: one variant for each connector. @returns their union */
const wholeDestination = (
  bodyName: string,
  body: JsonSchema,
  connectors: readonly Connector[],
  schemas: Record<string, JsonSchema>,
): JsonSchema => {
  const variants = connectors.map(({ kind }) => ({ kind, name: bodyName + pascalCase(kind) }))
  for (const { kind, name } of variants) {
    schemas[name] = {
      ...body,
      properties: {
        ...propertiesOf(body),
        connector_type: { ...propertiesOf(body)['connector_type'], const: kind },
        config: ref(nameOf.config(kind)),
        credentials: ref(nameOf.credentials(kind)),
      },
    }
  }
  return {
    oneOf: variants.map(({ name }) => ref(name)),
    discriminator: {
      propertyName: 'connector_type',
      mapping: Object.fromEntries(variants.map(({ kind, name }) => [kind, ref(name).$ref])),
    },
  }
}

/**
 * Returns the body of a PATCH. A PATCH does not name the connector type, and only the merged config has to match the
 * schema of the connector.
 */
const changedDestination = (body: JsonSchema, connectors: readonly Connector[]): JsonSchema => ({
  ...body,
  properties: {
    ...propertiesOf(body),
    config: {
      type: 'object',
      additionalProperties: true,
      examples: [{ max_concurrent_deliveries: 4 }],
      description: `Merged into the current config; null removes a key. The result must match the schema of the connector: ${connectors
        .map(({ kind }) => nameOf.config(kind))
        .join(', ')}.`,
    },
    credentials: {
      description: 'Replaces the current credentials. Must match the schema of the connector.',
      // A kind without credentials would add an empty object, from which a generator makes a map that is in no class.
      anyOf: connectors
        .filter(({ credentials }) => Object.keys(propertiesOf(toJsonSchema(credentials, 'request').schema)).length > 0)
        .map(({ kind }) => ref(nameOf.credentials(kind))),
    },
  },
})

/**
 * Returns a request body in which the connectors' schemas replace open `config` and `credentials` objects. Registers the variants of the
 * body as components.
 */
export const withConnectors = (
  name: string,
  body: JsonSchema,
  connectors: readonly Connector[],
  schemas: Record<string, JsonSchema>,
): JsonSchema => {
  if (!Object.values(propertiesOf(body)).some((property) => connectorPart in property)) return body
  return 'connector_type' in propertiesOf(body) ? wholeDestination(name, body, connectors, schemas) : changedDestination(body, connectors)
}
