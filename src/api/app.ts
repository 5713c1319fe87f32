import type Koa from 'koa'
import { createAuthenticate } from '../access/authenticate.ts'
import type { SessionDeps } from '../access/sessions.ts'
import { createConcurrencyLimit } from '../base/concurrency-limit.ts'
import { version } from '../base/version.ts'
import type { Config } from '../config/config.ts'
import { allowOrigins, compressText } from '../http/browsers.ts'
import { answerErrors, type ErrorDeps } from '../http/errors.ts'
import { apiKeyEndpoints } from './api-keys.ts'
import { attemptEndpoints } from './attempts.ts'
import { auditLogEndpoints } from './audit-logs.ts'
import { bulkRetryEndpoints } from './bulk-retries.ts'
import { certificateEndpoints } from './certificates.ts'
import { connectionEndpoints } from './connections.ts'
import { connectorTypeEndpoints } from './connector-types.ts'
import { destinationTestEndpoints } from './destination-tests.ts'
import { destinationEndpoints } from './destinations.ts'
import { documentMetadataEndpoints } from './document-metadata.ts'
import { documentMigrationEndpoints } from './document-migrations.ts'
import { acknowledgeEndpoints, documentEndpoints, erasureEndpoints } from './documents.ts'
import { mount, type Endpoint, type MountDeps } from './endpoint.ts'
import { enrichmentEndpoints } from './enrichments.ts'
import { eventSubscriptionEndpoints } from './event-subscriptions.ts'
import { eventEndpoints } from './events.ts'
import { failureEndpoints } from './failures.ts'
import { createIdempotency, type IdempotencyDeps } from './idempotency.ts'
import { legalHoldEndpoints } from './legal-holds.ts'
import { manifestEndpoints } from './manifests.ts'
import { notificationEndpoints } from './notifications.ts'
import { relayStatusEndpoints } from './relay-status.ts'
import { repositoryEndpoints } from './repositories.ts'
import { repositoryCheckEndpoints } from './repository-check.ts'
import { requestEndpoints } from './requests.ts'
import { retryEndpoints } from './retries.ts'
import { settingsEndpoints } from './settings.ts'
import { statsEndpoints } from './stats.ts'

/** What makes the endpoints, in the order of the API description. */
const groups = [
  destinationEndpoints,
  destinationTestEndpoints,
  repositoryEndpoints,
  repositoryCheckEndpoints,
  certificateEndpoints,
  connectionEndpoints,
  connectorTypeEndpoints,
  enrichmentEndpoints,
  notificationEndpoints,
  documentEndpoints,
  documentMetadataEndpoints,
  eventEndpoints,
  eventSubscriptionEndpoints,
  failureEndpoints,
  acknowledgeEndpoints,
  erasureEndpoints,
  legalHoldEndpoints,
  attemptEndpoints,
  retryEndpoints,
  bulkRetryEndpoints,
  documentMigrationEndpoints,
  apiKeyEndpoints,
  settingsEndpoints,
  requestEndpoints,
  auditLogEndpoints,
  manifestEndpoints,
  statsEndpoints,
  relayStatusEndpoints,
] as const

/** What all endpoints need. */
export type EndpointDeps = (typeof groups)[number] extends (deps: infer Deps) => Endpoint[] ? Deps : never

export interface ApiDeps
  extends
    EndpointDeps,
    ErrorDeps,
    Omit<SessionDeps, 'config'>,
    Pick<IdempotencyDeps, 'idempotencyKeys' | 'maxIdempotencyKeys'>,
    Pick<MountDeps, 'places'> {
  config: EndpointDeps['config'] & MountDeps['config'] & SessionDeps['config'] & Pick<Config, 'RELAY_CORS_ORIGINS'>
}

/** Returns all endpoints of the management API. Opens no connection: the API reference is also generated from it. */
export const apiEndpoints = (deps: EndpointDeps): Endpoint[] => groups.flatMap((endpoints) => endpoints(deps))

// At a time, in one process. Each may wait for another system for 20 to 60 seconds.
const concurrentTests = { total: 32, perWorkspace: 8, perCaller: 4 }

/** Creates the middleware of the management API, which answers every request below `/api`. */
export const createApi = (deps: ApiDeps): Koa.Middleware => {
  const routes = mount(apiEndpoints(deps), {
    ...deps,
    authenticate: createAuthenticate(deps),
    idempotency: createIdempotency(deps),
    tests: createConcurrencyLimit(() => concurrentTests),
  })
  const errors = answerErrors(deps, 'api')
  const cors = allowOrigins(deps.config.RELAY_CORS_ORIGINS)
  const compress = compressText()
  return (context, next) =>
    errors(context, async () => {
      context.set('x-relay-version', version)
      await cors(context, () => compress(context, () => routes(context, next)))
    })
}
