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
  paths: Record<string, { post?: { requestBody?: { content: Record<string, { schema: unknown }> } } }>
}

/** Returns the schemas of every connector, by type, from the description of the API. */
export const connectorSchemas = (description: ApiDescription): Map<string, ConnectorSchemas> => {
  const body = description.paths['/destinations']?.post?.requestBody?.content['application/json']?.schema
  const { 'x-unavailable-connector-types': unavailable = [] } = description
  const { discriminator } = body as { discriminator: { mapping: Record<string, string> } }
  const resolve = (reference: string) => description.components.schemas[reference.split('/').at(-1)!]!
  return new Map(
    Object.entries(discriminator.mapping).map(([type, reference]) => {
      const { config, credentials } = resolve(reference).properties as unknown as Record<'config' | 'credentials', { $ref: string }>
      return [type, { config: resolve(config.$ref), credentials: resolve(credentials.$ref), isAvailable: !unavailable.includes(type) }]
    }),
  )
}
