import { createKey } from '../../src/access/key-administration.ts'
import { createMembers } from '../../src/access/members.ts'
import { newId } from '../../src/base/ids.ts'
import { systemActor } from '../../src/db/audit.ts'
import { auditEvents } from '../../src/domain/audit-events.ts'
import { ulid, type Row, type World } from './world.ts'

// Sections 5 and 6 of the specification: authentication and events.

const authentication: Row[] = [
  [
    '5.1 every request carries Authorization: Bearer <API_KEY>',
    async ({ acme, other }) => {
      const { admin } = acme.keys
      for (const authorization of ['', admin, `Basic ${admin}`, 'Bearer', 'Bearer x', `Bearer ${admin}x`, `Bearer ${other.keys.admin}`]) {
        const { status } = await acme.call('GET', '/destinations', undefined, {
          key: null,
          headers: authorization ? { authorization } : {},
        })
        expect({ authorization, status: [401, 404].includes(status) }).toEqual({ authorization, status: true })
      }
      expect(await acme.statusOf('GET', '/destinations', undefined, admin)).toBe(200)
    },
  ],
  [
    '5.2 keys carry the levels Member and Admin: a retry requires Member or Admin, a replay Admin',
    async ({ acme, specimen }) => {
      const retry = `/documents/${specimen.documentId}/retry`
      for (const key of [acme.keys.member, acme.keys.admin]) expect(await acme.statusOf('POST', retry, undefined, key)).toBe(409)
      const replay = `/requests/${specimen.requestId}/replay`
      expect(await acme.statusOf('POST', replay, undefined, acme.keys.member)).toBe(403)
      expect(await acme.statusOf('POST', replay, undefined, acme.keys.admin)).toBe(202)
    },
  ],
  [
    '5.3 a resource of another workspace is answered as not found',
    async ({ other, specimen }) => {
      const { destinationId, repositoryId, connectionId, documentId, requestId } = specimen
      const paths = [
        `/destinations/${destinationId}`,
        `/repositories/${repositoryId}`,
        `/connections/${connectionId}`,
        `/documents/${documentId}`,
        `/documents/${documentId}/content`,
        `/requests/${requestId}`,
        `/requests/${requestId}/body/request`,
      ]
      for (const path of paths) {
        const foreign = await other.call('GET', path)
        const unknown = await other.call('GET', path.replace(/[0-9A-Z]{26}/, newId()))
        expect(foreign.status).toBe(404)
        expect({ ...foreign.json.error, request_id: '' }).toEqual({ ...unknown.json.error, request_id: '' })
      }
      expect((await other.call('GET', `/audit-logs?subject_id=${repositoryId}`)).json.data).toEqual([])
      const ids = { destinations: destinationId, repositories: repositoryId, connections: connectionId, documents: documentId }
      for (const [list, id] of Object.entries({ ...ids, requests: requestId })) {
        expect((await other.call('GET', `/${list}?per_page=100`)).text).not.toContain(id)
      }
    },
  ],
  [
    '5.4 destination credentials are accepted on create and update, and never returned',
    async ({ acme, db }) => {
      const canary = `canary-${newId()}`
      const id = await acme.create('/destinations', { ...acme.webhook(), credentials: { bearer_token: canary } })
      await acme.call('PATCH', `/destinations/${id}`, { credentials: { bearer_token: `${canary}-2` } })
      expect((await acme.call('GET', `/destinations/${id}`)).text).not.toContain('canary')
      const row = await db('destinations').where({ id }).first()
      expect(JSON.stringify(row) + row.credentials_sealed.toString('latin1')).not.toContain('canary')
    },
  ],
  [
    '5.5 captured data is redacted on write',
    async ({ acme, specimen, db }) => {
      const sent = await acme.send('GET', `info&pVersion=0045&contRep=${specimen.repoId}&docId=D1`, undefined, { 'x-token': 'canary-5' })
      await acme.capturedRequest(sent)
      const row = await db('captured_requests').where({ id: sent.requestId }).first()
      expect(JSON.stringify(row)).not.toContain('canary-5')
    },
  ],
]

/** Functions that cause each event. @returns the id of the subject */
const causes: Record<keyof typeof specifiedEvents, (world: World) => Promise<string>> = {
  'cert.received': async ({ acme, signer }) => {
    const { id, repoId } = await acme.repository()
    await acme.send('PUT', `putCert&pVersion=0045&contRep=${repoId}&authId=CN%3DA&permissions=rcud`, signer.der)
    return (await acme.attributesOf(`/repositories/${id}`)).certificates[0].id
  },
  'cert.activated': async (world) => certificateAfter(world, ['active']),
  'cert.deactivated': async (world) => certificateAfter(world, ['active', 'inactive']),
  'cert.deleted': async (world) => certificateAfter(world, ['deleted']),
  'repository.created': async ({ acme }) => (await acme.repository()).id,
  'repository.updated': async ({ acme }) => {
    const { id } = await acme.repository()
    await acme.call('PATCH', `/repositories/${id}`, { name: 'B' })
    return id
  },
  'repository.deleted': async ({ acme }) => {
    const { id } = await acme.repository()
    await acme.call('DELETE', `/repositories/${id}`)
    return id
  },
  'destination.created': ({ acme }) => acme.destination(),
  'destination.updated': async ({ acme }) => {
    const id = await acme.destination()
    await acme.call('PATCH', `/destinations/${id}`, { config: { method: 'PUT' } })
    return id
  },
  'destination.deleted': async ({ acme }) => {
    const id = await acme.destination()
    await acme.call('DELETE', `/destinations/${id}`)
    return id
  },
  'connection.created': async ({ acme }) => (await acme.wire(['accepting'])).connectionId,
  'connection.toggled': async ({ acme }) => {
    const { connectionId } = await acme.wire(['accepting'])
    await acme.call('PATCH', `/connections/${connectionId}`, { is_active: false })
    return connectionId
  },
  'connection.deleted': async ({ acme }) => {
    const { connectionId } = await acme.wire(['accepting'])
    await acme.call('DELETE', `/connections/${connectionId}`)
    return connectionId
  },
  'document.retried': async ({ acme }) => {
    const { repoId } = await acme.wire(['refusing'])
    const id = await acme.sendDocument(repoId, 'failed')
    await acme.call('POST', `/documents/${id}/retry`)
    return id
  },
  'apikey.created': ({ acme }) => acme.create('/api-keys', { name: 'A', level: 'viewer' }),
  'apikey.revoked': async ({ acme }) => {
    const id = await acme.create('/api-keys', { name: 'A', level: 'viewer' })
    await acme.call('DELETE', `/api-keys/${id}`)
    return id
  },
  'rfc.call': async ({ acme }) => {
    await acme.bridge('RFC_PING', {})
    return (await acme.call('GET', '/audit-logs?event=rfc.call')).json.data[0].attributes.subject_id
  },
}

const certificateAfter = async ({ acme, signer }: World, statuses: string[]): Promise<string> => {
  const { id } = await acme.repository()
  const path = `/repositories/${id}/certificates`
  const certificateId = await acme.create(path, { auth_id: 'CN=A', certificate: signer.pem })
  for (const status of statuses) {
    if (status === 'deleted') await acme.call('DELETE', `${path}/${certificateId}`)
    else await acme.call('PATCH', `${path}/${certificateId}`, { status })
  }
  return certificateId
}

// Copied from section 6 of the specification, not imported from src/, so that a mistake in src/ is found.
const specifiedEvents = {
  'cert.received': 'Certificate',
  'cert.activated': 'Certificate',
  'cert.deactivated': 'Certificate',
  'cert.deleted': 'Certificate',
  'repository.created': 'Repository',
  'repository.updated': 'Repository',
  'repository.deleted': 'Repository',
  'destination.created': 'Destination',
  'destination.updated': 'Destination',
  'destination.deleted': 'Destination',
  'connection.created': 'Connection',
  'connection.toggled': 'Connection',
  'connection.deleted': 'Connection',
  'document.retried': 'Document',
  'apikey.created': 'ApiKey',
  'apikey.revoked': 'ApiKey',
  'rfc.call': 'RfcCall',
} as const

// Not part of the specification.
const decidedEvents = {
  'repository.test_document_sent': 'Repository',
  'repository.checked': 'Repository',
  'repository.deletions_repeated': 'Repository',
  'document.delivered_again': 'Document',
  'document.attempted': 'Document',
  'destination.attempted': 'Destination',
  'destination.contents_brought_back': 'Destination',
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
  'legal_hold.set': 'LegalHold',
  'legal_hold.lifted': 'LegalHold',
  'document.acknowledged': 'Document',
  'document.erased': 'Document',
  'document.enriched': 'Document',
  'destination.links_revoked': 'Destination',
  'connection.updated': 'Connection',
  'document.metadata_updated': 'Document',
  'document.copy_updated': 'Document',
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
}

const isRecorded = ([event, subjectType]: [string, string]): Row => [
  `6 ${event} is recorded once, with the subject type ${subjectType}`,
  async (world) => {
    const subjectId = await causes[event as keyof typeof specifiedEvents](world)
    const recorded = (await world.acme.eventsOf(subjectId)).filter(({ attributes }) => attributes.event === event)
    expect(recorded).toEqual([
      {
        id: ulid,
        type: 'audit_log',
        attributes: expect.objectContaining({ event, subject_type: subjectType, subject_id: subjectId, metadata: expect.any(Object) }),
      },
    ])
  },
]

const events: Row[] = [
  [
    '6 there are no other events, except those that were decided',
    async () => expect(auditEvents).toEqual({ ...specifiedEvents, ...decidedEvents }),
  ],
  ...Object.entries(specifiedEvents).map(isRecorded),
  [
    '6 user_id is the member to whom the key belongs',
    async ({ acme, db }) => {
      const userId = await createMembers(db).ensure(acme.id, 'ada@example.org', systemActor)
      const { key } = await createKey(db, { workspace: acme.name, level: 'member', member: 'ada@example.org' })
      const { json } = await acme.call('POST', '/destinations', acme.webhook(), { key })
      const [entry] = (await acme.call('GET', `/audit-logs?user_id=${userId}`)).json.data
      expect(entry.attributes).toMatchObject({ user_id: userId, actor_type: 'api_key', subject_id: json.data.id })
    },
  ],
]

export const accessRows: Row[] = [...authentication, ...events]
