/** Every event of the audit log, with the type of its subject. */
export const auditEvents = {
  'cert.received': 'Certificate',
  'cert.activated': 'Certificate',
  'cert.deactivated': 'Certificate',
  'cert.deleted': 'Certificate',
  'repository.created': 'Repository',
  'repository.updated': 'Repository',
  'repository.deleted': 'Repository',
  'repository.test_document_sent': 'Repository',
  'repository.checked': 'Repository',
  'repository.deletions_repeated': 'Repository',
  'destination.created': 'Destination',
  'destination.updated': 'Destination',
  'destination.deleted': 'Destination',
  'destination.links_revoked': 'Destination',
  'destination.attempted': 'Destination',
  'destination.contents_brought_back': 'Destination',
  'connection.created': 'Connection',
  'connection.updated': 'Connection',
  'connection.toggled': 'Connection',
  'connection.deleted': 'Connection',
  'enrichment.created': 'Enrichment',
  'enrichment.updated': 'Enrichment',
  'enrichment.deleted': 'Enrichment',
  'enrichment.tried': 'Enrichment',
  'event_subscription.created': 'EventSubscription',
  'event_subscription.updated': 'EventSubscription',
  'event_subscription.replayed': 'EventSubscription',
  'event_subscription.deleted': 'EventSubscription',
  'notification.created': 'Notification',
  'notification.updated': 'Notification',
  'notification.deleted': 'Notification',
  'notification.tested': 'Notification',
  'incident.opened': 'Incident',
  'incident.closed': 'Incident',
  'notice.delivered': 'Notice',
  'notice.failed': 'Notice',
  'document.retried': 'Document',
  'document.delivered_again': 'Document',
  'document.attempted': 'Document',
  'document.acknowledged': 'Document',
  'document.erased': 'Document',
  'document.enriched': 'Document',
  'document.metadata_updated': 'Document',
  'document.copy_updated': 'Document',
  'legal_hold.set': 'LegalHold',
  'legal_hold.lifted': 'LegalHold',
  'bulk_retry.started': 'BulkRetry',
  'bulk_retry.cancelled': 'BulkRetry',
  'document_migration.started': 'DocumentMigration',
  'document_migration.paused': 'DocumentMigration',
  'document_migration.resumed': 'DocumentMigration',
  'document_migration.cancelled': 'DocumentMigration',
  'request.replayed': 'CapturedRequest',
  'settings.updated': 'Settings',
  'member.created': 'Member',
  'member.updated': 'Member',
  'member.deleted': 'Member',
  'apikey.created': 'ApiKey',
  'apikey.revoked': 'ApiKey',
  'rfc.call': 'RfcCall',
} as const

export type AuditEvent = keyof typeof auditEvents
type AuditSubjectType = (typeof auditEvents)[AuditEvent]

export const auditEventNames = Object.keys(auditEvents) as AuditEvent[]
export const auditSubjectTypes = [...new Set(Object.values(auditEvents))]

interface EventFilter {
  event?: AuditEvent | undefined
  eventPrefix?: string | undefined
  subjectType?: AuditSubjectType | undefined
}

/** Returns the events that meet every condition, or undefined if there is no condition. */
export const eventsMatching = ({ event, eventPrefix, subjectType }: EventFilter): AuditEvent[] | undefined => {
  if (event === undefined && eventPrefix === undefined && subjectType === undefined) return undefined
  return auditEventNames.filter(
    (name) =>
      (event === undefined || name === event) &&
      (eventPrefix === undefined || name.startsWith(eventPrefix)) &&
      (subjectType === undefined || auditEvents[name] === subjectType),
  )
}
