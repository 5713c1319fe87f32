import type Koa from 'koa'
import type { Config } from '../config.ts'
import type { Log } from '../log.ts'
import type { Authenticator } from '../security/api-keys.ts'
import { apiKeyEndpoints } from './api-keys.ts'
import { attemptEndpoints } from './attempts.ts'
import { bulkRetryEndpoints, type BulkRetryDeps } from './bulk-retries.ts'
import { auditLogEndpoints, type AuditLogDeps } from './audit-logs.ts'
import { certificateEndpoints, type CertificateDeps } from './certificates.ts'
import { connectionEndpoints } from './connections.ts'
import { destinationEndpoints, type DestinationDeps } from './destinations.ts'
import { documentEndpoints, type DocumentDeps } from './documents.ts'
import { mount, type Endpoint } from './endpoint.ts'
import { answerErrors } from './errors.ts'
import { requestEndpoints, type RequestDeps } from './requests.ts'
import { repositoryEndpoints } from './repositories.ts'
import { retryEndpoints, type RetryDeps } from './retries.ts'
import { settingsEndpoints } from './settings.ts'

export type EndpointDeps = DestinationDeps & DocumentDeps & CertificateDeps & RetryDeps & BulkRetryDeps & RequestDeps & AuditLogDeps

export interface ApiDeps extends EndpointDeps {
  config: EndpointDeps['config'] & Pick<Config, 'RELAY_API_BODY_MAX_BYTES'>
  authenticator: Authenticator
  log: Log
}

/** The whole table of the management API. Making it opens nothing: the API's document is made from it, too. */
export const apiEndpoints = (deps: EndpointDeps): Endpoint[] => [
  ...destinationEndpoints(deps),
  ...repositoryEndpoints(deps),
  ...certificateEndpoints(deps),
  ...connectionEndpoints(deps),
  ...documentEndpoints(deps),
  ...attemptEndpoints(deps),
  ...retryEndpoints(deps),
  ...bulkRetryEndpoints(deps),
  ...apiKeyEndpoints(deps),
  ...settingsEndpoints(deps),
  ...requestEndpoints(deps),
  ...auditLogEndpoints(deps),
]

/** The management API as one middleware: takes what lies below `/api`, and leaves the rest to the next one. */
export const createApi = (deps: ApiDeps): Koa.Middleware => {
  const routes = mount(apiEndpoints(deps), { authenticator: deps.authenticator, bodyMaxBytes: deps.config.RELAY_API_BODY_MAX_BYTES })
  const errors = answerErrors(deps.log)
  return (context, next) => {
    if (context.path !== '/api' && !context.path.startsWith('/api/')) return next()
    return errors(context, async () => {
      await routes(context, next)
    })
  }
}
