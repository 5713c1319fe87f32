import type Koa from 'koa'
import { createAuthenticate } from '../access/authenticate.ts'
import type { SessionDeps } from '../access/sessions.ts'
import { createConcurrencyLimit } from '../base/concurrency-limit.ts'
import { version } from '../base/version.ts'
import type { Config } from '../config/config.ts'
import { allowOrigins, compressText } from '../http/browsers.ts'
import { answerErrors, type ErrorDeps } from '../http/errors.ts'
import { apiKeyEndpoints, type ApiKeyDeps } from './api-keys.ts'
import { attemptEndpoints, type AttemptDeps } from './attempts.ts'
import { auditLogEndpoints, type AuditLogDeps } from './audit-logs.ts'
import { bulkRetryEndpoints, type BulkRetryDeps } from './bulk-retries.ts'
import { certificateEndpoints, type CertificateDeps } from './certificates.ts'
import { connectionEndpoints, type ConnectionDeps } from './connections.ts'
import { connectorTypeEndpoints } from './connector-types.ts'
import { destinationTestEndpoints } from './destination-tests.ts'
import { destinationEndpoints, type DestinationDeps } from './destinations.ts'
import { documentMetadataEndpoints, type DocumentMetadataDeps } from './document-metadata.ts'
import { documentMigrationEndpoints, type DocumentMigrationDeps } from './document-migrations.ts'
import {
  acknowledgeEndpoints,
  documentEndpoints,
  erasureEndpoints,
  type AcknowledgeDeps,
  type DocumentDeps,
  type ErasureDeps,
} from './documents.ts'
import { mount, type Endpoint, type MountDeps } from './endpoint.ts'
import { enrichmentEndpoints, type EnrichmentDeps } from './enrichments.ts'
import { eventSubscriptionEndpoints, type EventSubscriptionDeps } from './event-subscriptions.ts'
import { eventEndpoints, type EventDeps } from './events.ts'
import { failureEndpoints, type FailureDeps } from './failures.ts'
import { createIdempotency, type IdempotencyDeps } from './idempotency.ts'
import { notificationEndpoints, type NotificationDeps } from './notifications.ts'
import { relayStatusEndpoints, type RelayStatusDeps } from './relay-status.ts'
import { repositoryEndpoints, type RepositoryDeps } from './repositories.ts'
import { repositoryCheckEndpoints, type RepositoryCheckDeps } from './repository-check.ts'
import { requestEndpoints, type RequestDeps } from './requests.ts'
import { retryEndpoints, type RetryDeps } from './retries.ts'
import { settingsEndpoints, type SettingsDeps } from './settings.ts'
import { statsEndpoints, type StatsDeps } from './stats.ts'

export type EndpointDeps = DestinationDeps &
  RepositoryDeps &
  RepositoryCheckDeps &
  CertificateDeps &
  ConnectionDeps &
  EnrichmentDeps &
  NotificationDeps &
  DocumentDeps &
  DocumentMetadataDeps &
  AcknowledgeDeps &
  EventDeps &
  EventSubscriptionDeps &
  FailureDeps &
  ErasureDeps &
  AttemptDeps &
  RetryDeps &
  BulkRetryDeps &
  DocumentMigrationDeps &
  ApiKeyDeps &
  SettingsDeps &
  RequestDeps &
  AuditLogDeps &
  RelayStatusDeps &
  StatsDeps

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
export const apiEndpoints = (deps: EndpointDeps): Endpoint[] => [
  ...destinationEndpoints(deps),
  ...destinationTestEndpoints(deps),
  ...repositoryEndpoints(deps),
  ...repositoryCheckEndpoints(deps),
  ...certificateEndpoints(deps),
  ...connectionEndpoints(deps),
  ...connectorTypeEndpoints(deps),
  ...enrichmentEndpoints(deps),
  ...notificationEndpoints(deps),
  ...documentEndpoints(deps),
  ...documentMetadataEndpoints(deps),
  ...eventEndpoints(deps),
  ...eventSubscriptionEndpoints(deps),
  ...failureEndpoints(deps),
  ...acknowledgeEndpoints(deps),
  ...erasureEndpoints(deps),
  ...attemptEndpoints(deps),
  ...retryEndpoints(deps),
  ...bulkRetryEndpoints(deps),
  ...documentMigrationEndpoints(deps),
  ...apiKeyEndpoints(deps),
  ...settingsEndpoints(deps),
  ...requestEndpoints(deps),
  ...auditLogEndpoints(deps),
  ...statsEndpoints(deps),
  ...relayStatusEndpoints(deps),
]

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
