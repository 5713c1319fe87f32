import type { IncidentEvent } from '../../domain/notices.ts'
import type { FindConditions } from './condition.ts'
import { findFailedDeliveries, findFailingDestinations } from './destination-conditions.ts'
import { findExpiringCertificates, findNotConnected, findSilentSources } from './repository-conditions.ts'

/** Finds what each kind of incident exists for, in the workspaces with an active notification for it. */
export const findConditions: Record<IncidentEvent, FindConditions> = {
  'destination.failing': findFailingDestinations,
  'delivery.failed': findFailedDeliveries,
  'source.silent': findSilentSources,
  'certificate.expiring': findExpiringCertificates,
  'repository.not_connected': findNotConnected,
}
