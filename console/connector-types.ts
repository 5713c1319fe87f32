import { call, type Schemas } from './api.ts'
import type { JsonSchema } from './schema-form.ts'

/** A kind of destination, and what its form is made of. */
export interface ConnectorType {
  config: JsonSchema
  credentials: JsonSchema
  /** The installation allows destinations of this kind. */
  isAvailable: boolean
}

let loaded: Promise<Map<string, ConnectorType>> | undefined

const load = async (): Promise<Map<string, ConnectorType>> => {
  const { data } = await call<Schemas['ConnectorTypeDescriptionList']>('GET', '/connector-types')
  return new Map(
    data.map(({ id, attributes }) => [
      id,
      { config: attributes.config_schema, credentials: attributes.credentials_schema, isAvailable: attributes.is_available },
    ]),
  )
}

/** Loads the connector types, once for all workspaces, in which they are the same. @throws ApiError */
export const loadConnectorTypes = (): Promise<Map<string, ConnectorType>> => {
  loaded ??= load().catch((thrown: unknown) => {
    loaded = undefined
    throw thrown
  })
  return loaded
}
