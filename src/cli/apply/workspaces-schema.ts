import { propertiesOf, toJsonSchema, type JsonSchema } from '../../base/json-schema.ts'
import type { Connector } from '../../connectors/connector.ts'
import { createConnectors } from '../../connectors/index.ts'
import { workspacesFile } from './workspaces-file.ts'

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
export const workspacesSchema = (): JsonSchema => {
  const { schema, named } = toJsonSchema(workspacesFile, 'request')
  const workspace = propertiesOf(schema)['workspaces']!.items as JsonSchema
  const destination = propertiesOf(workspace)['destinations']!.items as JsonSchema
  Object.assign(destination, { allOf: createConnectors().all.map(conditionOf) })
  const whole = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    // A name and no address: the schema is in the package, and a project may keep a copy of it.
    $id: 'urn:document-relay:relay.schema.json',
    title: 'File of relay apply',
    ...schema,
    $defs: named,
  }
  return JSON.parse(JSON.stringify(whole).replaceAll('#/components/schemas/', '#/$defs/')) as JsonSchema
}
