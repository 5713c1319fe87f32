import { z } from 'zod'
import { propertiesOf, toJsonSchema, type JsonSchema } from '../base/json-schema.ts'
import type { Connector, FindConnector } from '../connectors/connector.ts'
import { connectorTypes } from '../connectors/index.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { named, resource } from './schemas.ts'

const jsonObject = z.record(z.string(), z.unknown())

const attributes = z.object({
  is_available: z.boolean().describe('False if this installation allows no destination of this type.'),
  config_schema: jsonObject.describe('The JSON Schema of `config`, with labels (`title`), descriptions and defaults.'),
  credentials_schema: jsonObject.describe('The JSON Schema of `credentials`. A secret has `writeOnly: true`.'),
  bound_keys: z
    .array(z.string())
    .meta({ examples: [['endpoint', 'ca_certificate']] })
    .describe('Keys of `config` whose change needs the credentials again.'),
  is_message: z
    .boolean()
    .describe('True if each delivery is a message of its own. Otherwise, a later document at the same path replaces an earlier one.'),
  has_properties: z.boolean().describe('True if the connection can have properties written beside the document.'),
  brings_late_data: z.boolean().describe('True if business data that is found after the delivery is brought to the copy.'),
  sends_notices: z.boolean().describe('True if notifications can use a destination of this type.'),
  example_config: jsonObject.describe('A plausible `config`. Its values are fictitious.'),
  example_credentials: jsonObject.describe('Plausible `credentials`. Their values are fictitious.'),
})
const connectorType = resource('ConnectorTypeDescription', 'connector_type', attributes)

const spelledInCapitals = new Set(['ca', 'cc', 'id', 'kms', 'sas', 'sha256', 'tls', 'url'])

/** Returns `ca_certificate` as `CA certificate`. */
const labelOf = (key: string): string => {
  const label = key
    .split('_')
    .map((word) => (spelledInCapitals.has(word) ? word.toUpperCase() : word))
    .join(' ')
  return label.charAt(0).toUpperCase() + label.slice(1)
}

const labelled = (schema: JsonSchema): JsonSchema => ({
  ...schema,
  properties: Object.fromEntries(
    Object.entries(propertiesOf(schema)).map(([key, property]) => [key, { title: labelOf(key), ...property }]),
  ),
})

/** Returns the resource that describes a connector. */
export const presentConnectorType = ({ kind, config, credentials, example, ...connector }: Connector) => ({
  id: kind,
  type: 'connector_type' as const,
  attributes: {
    isAvailable: connector.isAvailable !== false,
    configSchema: labelled(toJsonSchema(config, 'request').schema),
    credentialsSchema: labelled(toJsonSchema(credentials, 'request').schema),
    boundKeys: [...connector.boundKeys],
    isMessage: connector.isMessage === true,
    hasProperties: connector.properties !== undefined,
    bringsLateData: connector.updateMetadata !== undefined,
    sendsNotices: connector.sendNotice !== undefined,
    exampleConfig: example.config,
    exampleCredentials: example.credentials,
  },
})

/** Describes the kinds of destinations, from which a program can build the form of a destination. */
export const connectorTypeEndpoints = ({ findConnector }: { findConnector: FindConnector }): Endpoint[] => {
  // Described once, when it is first asked for: a conversion of all schemas takes longer than any other answer of the API.
  let described: ReturnType<typeof presentConnectorType>[] | undefined
  const describe = () => connectorTypes.flatMap((kind) => findConnector(kind) ?? []).map(presentConnectorType)
  return [
    endpoint({
      method: 'GET',
      path: '/connector-types',
      level: 'viewer',
      summary: 'List connector types',
      description: 'Describes the types of destinations: the schemas of their values, which of them are secret, and what each type can do.',
      response: named(connectorType, 'List', z.object({ data: z.array(connectorType) })),
      handle: async () => ({ data: (described ??= describe()) }),
    }),
  ]
}
