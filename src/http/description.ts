import { allConnectors } from '../connectors/index.ts'
import { apiEndpoints, type EndpointDeps } from './app.ts'
import { openApiDocument, type OpenApi } from './open-api.ts'

/** The management API's own description. Opens nothing: no handler is ever called. */
export const describeApi = (): OpenApi => openApiDocument(apiEndpoints({} as EndpointDeps), allConnectors())
