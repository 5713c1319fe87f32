import { workspacesFile } from '../src/commands/workspaces-file.ts'
import type { Connector } from '../src/connectors/connector.ts'
import { propertiesOf, toJsonSchema, type JsonSchema } from '../src/http/open-api/json-schema.ts'

const reference = { $ref: '#/components/schemas/Reference' }

/** Returns the config and the credentials that a connector accepts, as a condition on `connector_type`. */
const conditionOf = ({ kind, config, credentials }: Connector) => {
  const { schema } = toJsonSchema(credentials, 'request')
  const references = Object.entries(propertiesOf(schema)).map(([key, { description }]) => [key, { ...reference, description }])
  return {
    if: { properties: { connector_type: { not: { const: kind } } } },
    else: {
      properties: {
        config: toJsonSchema(config, 'request').schema,
        credentials: { ...schema, properties: Object.fromEntries(references) },
      },
    },
  }
}

/** Returns the JSON schema of the file of `relay apply`, for editors. */
export const workspacesSchema = (connectors: readonly Connector[]): JsonSchema => {
  const { schema, named } = toJsonSchema(workspacesFile, 'request')
  const workspace = propertiesOf(schema)['workspaces']!.items as JsonSchema
  const destination = propertiesOf(workspace)['destinations']!.items as JsonSchema
  Object.assign(destination, { allOf: connectors.map(conditionOf) })
  const whole = { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'File of relay apply', ...schema, $defs: named }
  return JSON.parse(JSON.stringify(whole).replaceAll('#/components/schemas/', '#/$defs/')) as JsonSchema
}
