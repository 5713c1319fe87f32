// Finds the schemas of the connectors in the description of the API. Pure, so that it can be tested without a browser.
import type { JsonSchema } from './schema-form.ts'

/** The schemas of a connector. */
export interface ConnectorSchemas {
  config: JsonSchema
  credentials: JsonSchema
  /** The installation allows destinations of this type. */
  isAvailable: boolean
}

interface ApiDescription {
  components: { schemas: Record<string, JsonSchema & { discriminator?: unknown }> }
  'x-unavailable-connector-types'?: string[]
}

/** Returns the schemas of every connector, by type, from the description of the API. */
export const connectorSchemas = (description: ApiDescription): Map<string, ConnectorSchemas> => {
  const { 'x-unavailable-connector-types': unavailable = [] } = description
  const { discriminator } = description.components.schemas['DestinationInput'] as { discriminator: { mapping: Record<string, string> } }
  const resolve = (reference: string): JsonSchema => {
    const schema = description.components.schemas[reference.split('/').at(-1)!]!
    const properties = Object.entries(schema.properties ?? {}).map(([key, property]) => {
      const { $ref } = property as { $ref?: string }
      return [key, $ref === undefined ? property : { ...resolve($ref), ...property }]
    })
    return { ...schema, properties: Object.fromEntries(properties) }
  }
  return new Map(
    Object.entries(discriminator.mapping).map(([type, reference]) => {
      const { config, credentials } = resolve(reference).properties as unknown as Record<'config' | 'credentials', { $ref: string }>
      return [type, { config: resolve(config.$ref), credentials: resolve(credentials.$ref), isAvailable: !unavailable.includes(type) }]
    }),
  )
}
