import { fetchJson } from './api.ts'
import { connectorSchemas, type ConnectorSchemas } from './connector-schemas.ts'

let loaded: Promise<Map<string, ConnectorSchemas>> | undefined

/** Loads the schemas of the connectors, once, from the description of the API. @throws ApiError */
export const loadConnectorSchemas = (): Promise<Map<string, ConnectorSchemas>> => {
  loaded ??= fetchJson<Parameters<typeof connectorSchemas>[0]>('../openapi.json')
    .then(connectorSchemas)
    .catch((thrown: unknown) => {
      loaded = undefined
      throw thrown
    })
  return loaded
}
