import type { Connector } from '../connectors/connector.ts'
import { pascalCase } from './operation-names.ts'
import { propertiesOf, wireSchema, type JsonSchema } from './wire-schema.ts'

/** The field of a schema (`.meta`) that a connector's own schema describes: `config` or `credentials`. */
export const connectorPart = 'x-connector-part'

const nameOf = {
  config: (kind: string) => `DestinationConfig${pascalCase(kind)}`,
  credentials: (kind: string) => `DestinationCredentials${pascalCase(kind)}`,
}
const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

/** What each kind of destination takes, as components. */
export const connectorSchemas = (connectors: readonly Connector[]): Record<string, JsonSchema> =>
  Object.fromEntries(
    connectors.flatMap(({ kind, config, credentials }) => [
      [nameOf.config(kind), { title: `config of ${kind}`, ...wireSchema(config, 'request').schema }],
      [nameOf.credentials(kind), { title: `credentials of ${kind}`, ...wireSchema(credentials, 'request').schema }],
    ]),
  )

/** A whole destination is one of as many shapes as there are connectors. */
const wholeTarget = (body: JsonSchema, connectors: readonly Connector[]): JsonSchema => ({
  oneOf: connectors.map(({ kind }) => ({
    ...body,
    title: kind,
    properties: {
      ...propertiesOf(body),
      connector_type: { ...propertiesOf(body)['connector_type'], const: kind },
      config: ref(nameOf.config(kind)),
      credentials: ref(nameOf.credentials(kind)),
    },
  })),
})

/** A change does not say the connector type: config is merged into what is there, and only the result has a shape. */
const changedTarget = (body: JsonSchema, connectors: readonly Connector[]): JsonSchema => ({
  ...body,
  properties: {
    ...propertiesOf(body),
    config: {
      type: 'object',
      additionalProperties: true,
      description: `Merged into the present config, null removes a key. The result must be what the connector takes: ${connectors
        .map(({ kind }) => nameOf.config(kind))
        .join(', ')}`,
    },
    credentials: {
      description: 'Replaces the present credentials; must be what the connector takes',
      anyOf: connectors.map(({ kind }) => ref(nameOf.credentials(kind))),
    },
  },
})

/** A request body with the connectors' own schemas where it leaves config and credentials open. */
export const withConnectors = (body: JsonSchema, connectors: readonly Connector[]): JsonSchema => {
  if (!Object.values(propertiesOf(body)).some((property) => connectorPart in property)) return body
  return 'connector_type' in propertiesOf(body) ? wholeTarget(body, connectors) : changedTarget(body, connectors)
}
