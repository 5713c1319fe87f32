import { createKey, revokeKey } from '../../src/access/key-administration.ts'
import { createMembers } from '../../src/access/members.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { systemActor } from '../../src/db/audit.ts'
import { auditEventNames, type AuditEvent } from '../../src/domain/audit-events.ts'
import { bulkPageOf } from '../support/bulk-page.ts'
import type { Answer } from '../support/client.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { createSigner } from '../support/signer.ts'
import { createSourceSystem } from '../support/source-system.ts'
import { insertDocumentMigration } from './insert-document-migration.ts'
import { insertDocument } from './insert-document.ts'
import { objstore, wire } from './objstore.ts'
import { createResources } from './resources.ts'

/** Mutating endpoints without an audit event, each with the reason. */
const unaudited: Record<string, string> = {
  'POST /destinations/test': 'a test changes nothing',
  'POST /destinations/:id/test': 'a test changes no configuration',
  'POST /destinations/:id/test-change': 'a test stores nothing',
  'POST /repositories/:id/test-upstream': 'a test changes nothing',
  'POST /connections/preview': 'a preview stores nothing',
}

/** Events that the management API does not record, with their source. */
const elsewhere: Partial<Record<AuditEvent, string>> = {
  'document_migration.started': 'the command line',
  'repository.deletions_repeated': 'the command line',
  'destination.contents_brought_back': 'the command line',
  'member.created': 'the command line',
  'member.updated': 'the command line',
  'member.deleted': 'the command line',
  'rfc.call': 'the bridge',
  'incident.opened': 'the check for incidents',
  'incident.closed': 'the check for incidents',
  'notice.delivered': 'the worker',
  'notice.failed': 'the worker',
  'document.copy_updated': 'the worker',
}

const { database, api, acme } = share(await startScene())
const signer = share(await createSigner('RSA 2048'))
const resources = createResources({ db: database.db, store: createPostgresStore(database.db), certificate: signer.pem })
const userId = await createMembers(database.db).ensure(acme.id, 'ada@example.org', systemActor)
const keyName = 'of Ada'
const { id: keyId, key } = await createKey(database.db, {
  workspace: 'acme/prod',
  level: 'admin',
  member: 'ada@example.org',
  name: keyName,
})

const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`
const eventsOf = (audit: AuditEvent | readonly AuditEvent[] | undefined) => [audit ?? []].flat()

/** Returns the audit log entries that a change adds, oldest first. */
const recordedBy = async (change: () => Promise<unknown>) => {
  const before = await database.db('audit_logs').max('id as last').first()
  await change()
  return database
    .db('audit_logs')
    .select('*')
    .where('id', '>', before?.last ?? '')
    .orderBy('id')
}

const call = (method: string, path: string, body?: unknown): Promise<Answer> => acme.call(method, path, body, { key })
const created = async (path: string, body: unknown): Promise<string> => (await call('POST', path, body)).json.data.id

const repository = { make: () => created('/repositories', { repo_id: `R${Math.random()}`.slice(0, 12), name: 'Invoices' }) }
const certificateOf = (repositoryId: string, status = 'inactive') =>
  created(`/repositories/${repositoryId}/certificates`, { auth_id: 'CN=TST', certificate: signer.pem, status })

/** Creates a webhook, and a notification that is sent to it if it has a name. */
const webhook = async (name: string, notification?: string) => {
  const id = await created('/destinations', { name, connector_type: 'webhook', config: { url: 'https://example.com/in' }, credentials: {} })
  const body = { name: notification, events: ['delivery.failed'], destination_id: id }
  return { id, notificationId: notification === undefined ? '' : await created('/notifications', body) }
}

/** Creates a failed document and its wiring. */
const failed = async (repoId: string) => {
  const { repositoryId, destinationId, connectionId } = await wire(acme, repoId)
  const deliveries = [{ destinationId, connectionId, status: 'failed' as const }]
  const row = { workspaceId: acme.id, repositoryId, repoId, docId: 'DOC1', status: 'failed' as const, deliveries }
  return { repositoryId, destinationId, subjectId: await insertDocument(database.db, row) }
}

interface Row {
  endpoint: string
  /** Creates the preconditions. @returns the change, and the id of its subject if it is already known */
  prepare: () => Promise<{ change: () => Promise<Answer>; subjectId?: string }>
  recorded: { event: AuditEvent; metadata?: object; description?: string }[]
}

interface ConfiguredRows {
  event: 'enrichment' | 'event_subscription' | 'notification'
  noun: string
  body: () => Promise<object>
  /** The entry of a new object. */
  created: object
  change: object
  /** How the entry of the change names what differs, and the values that it contains. */
  changed: { names: string; before: object; after: object }
}

/** The rows of a kind of object whose entries follow from its schema. */
const configuredRows = ({ event, noun, body, created: entry, change, changed: { names, before, after } }: ConfiguredRows): Row[] => {
  const path = `/${event.replace('_', '-')}s`
  const make = async () => created(path, { name: 'Mine', ...(await body()) })
  const recorded = (what: string, did: string, metadata: object) => [
    { event: `${event}.${what}` as AuditEvent, description: `${noun} Mine was ${did}.`, metadata: { name: 'Mine', ...metadata } },
  ]
  return [
    {
      endpoint: `POST ${path}`,
      prepare: async () => {
        const wanted = { name: 'Mine', ...(await body()) }
        return { change: () => call('POST', path, wanted) }
      },
      recorded: recorded('created', 'created', entry),
    },
    {
      endpoint: `PATCH ${path}/:id`,
      prepare: async () => {
        const subjectId = await make()
        return { subjectId, change: () => call('PATCH', `${path}/${subjectId}`, { name: 'Mine', ...change }) }
      },
      recorded: recorded('updated', `changed: ${names}`, { before, after }),
    },
    {
      endpoint: `DELETE ${path}/:id`,
      prepare: async () => {
        const subjectId = await make()
        return { subjectId, change: () => call('DELETE', `${path}/${subjectId}`) }
      },
      recorded: recorded('deleted', 'deleted', {}),
    },
  ]
}

const toWebhook = async (values: object) => ({ ...values, destination_id: (await webhook('Operators')).id })

const rows: Row[] = [
  ...configuredRows({
    event: 'enrichment',
    noun: 'Enrichment',
    body: async () => ({
      repository_ids: [],
      steps: [{ kind: 'link' }],
      http: { url: 'https://erp.example.com', headers: { 'x-a': 'canary' } },
    }),
    created: {
      repository_ids: [],
      is_active: true,
      wait_seconds: 60,
      late_days: 7,
      http: { url: 'https://erp.example.com' },
      steps: [{ kind: 'link', name: 'link' }],
    },
    change: { late_days: 0, http: { url: 'https://erp.example.com' }, credentials: { bearer_token: 'canary-token' } },
    changed: { names: 'late_days, http.headers, credentials', before: { late_days: 7 }, after: { late_days: 0 } },
  }),
  ...configuredRows({
    event: 'event_subscription',
    noun: 'Event subscription',
    body: () => toWebhook({ events: ['document.failed'] }),
    created: { events: ['document.failed'], destination_id: expect.any(String), is_active: true },
    change: { is_active: false },
    changed: { names: 'is_active', before: { is_active: true }, after: { is_active: false } },
  }),
  ...configuredRows({
    event: 'notification',
    noun: 'Notification',
    body: () => toWebhook({ events: ['delivery.failed'] }),
    created: { events: ['delivery.failed'], quiet_seconds: 900, silence_hours: 72, is_active: true },
    change: { quiet_seconds: 0, events: ['source.silent', 'source.silent'] },
    changed: {
      names: 'events, quiet_seconds',
      before: { events: ['delivery.failed'], quiet_seconds: 900 },
      after: { events: ['source.silent'], quiet_seconds: 0 },
    },
  }),
  {
    endpoint: 'POST /documents/:id/acknowledge',
    prepare: async () => {
      const { subjectId } = await failed('K1')
      return { subjectId, change: () => call('POST', `/documents/${subjectId}/acknowledge`) }
    },
    recorded: [{ event: 'document.acknowledged', metadata: { repo_id: 'K1', doc_id: 'DOC1', comp_id: 'data' } }],
  },
  {
    endpoint: 'DELETE /documents/:id/content',
    prepare: async () => {
      const { subjectId } = await failed('K2')
      return { subjectId, change: () => call('DELETE', `/documents/${subjectId}/content`) }
    },
    recorded: [{ event: 'document.erased', description: 'The content of document K2/DOC1/data was erased.' }],
  },
  {
    endpoint: 'POST /legal-holds',
    prepare: async () => ({
      change: () => call('POST', '/legal-holds', { erp_object_type: 'BKPF', erp_object_id: '1', reason: 'Tax audit' }),
    }),
    recorded: [
      {
        event: 'legal_hold.set',
        description: 'The business object BKPF 1 was put on legal hold (0 documents): Tax audit',
        metadata: { scope: 'business_object', erp_object_type: 'BKPF', erp_object_id: '1', documents: 0, reason: 'Tax audit' },
      },
    ],
  },
  {
    endpoint: 'POST /legal-holds/:id/lift',
    prepare: async () => {
      await wire(acme, 'LH')
      const subjectId = await created('/legal-holds', { repo_id: 'LH', reason: 'Tax audit' })
      return { subjectId, change: () => call('POST', `/legal-holds/${subjectId}/lift`, { reason: 'It has ended' }) }
    },
    recorded: [
      {
        event: 'legal_hold.lifted',
        description: 'The legal hold on repository LH was lifted: It has ended',
        metadata: { scope: 'repository', repo_id: 'LH', reason: 'It has ended', set_reason: 'Tax audit', set_at: expect.any(String) },
      },
    ],
  },
  {
    endpoint: 'POST /destinations/:id/download-links/revoke',
    prepare: async () => {
      const subjectId = await created('/destinations', objstore('Mails'))
      return { subjectId, change: () => call('POST', `/destinations/${subjectId}/download-links/revoke`) }
    },
    recorded: [{ event: 'destination.links_revoked', metadata: { name: 'Mails', connector_type: 'objstore', version: 2 } }],
  },
  {
    endpoint: 'POST /enrichments/:id/try',
    prepare: async () => {
      const { subjectId: document_id } = await failed('TRY')
      const subjectId = await created('/enrichments', { name: 'Invoices', repository_ids: [], steps: [{ kind: 'link' }] })
      return { subjectId, change: () => call('POST', `/enrichments/${subjectId}/try`, { document_id }) }
    },
    recorded: [
      {
        event: 'enrichment.tried',
        description: 'Enrichment Invoices was tried on document TRY/DOC1/data.',
        metadata: { name: 'Invoices' },
      },
    ],
  },
  {
    endpoint: 'POST /documents/:id/enrich',
    prepare: async () => {
      const { subjectId, repositoryId } = await failed('ASK')
      await created('/enrichments', { name: 'Invoices', repository_ids: [repositoryId], steps: [{ kind: 'link' }] })
      return { subjectId, change: () => call('POST', `/documents/${subjectId}/enrich`) }
    },
    recorded: [{ event: 'document.enriched', description: 'Business data of document ASK/DOC1/data was asked for again.' }],
  },
  {
    endpoint: 'POST /event-subscriptions/:id/replay',
    prepare: async () => {
      const { id: destination_id } = await webhook('Inbox')
      const subjectId = await created('/event-subscriptions', { name: 'Data', events: ['document.failed'], destination_id })
      return { subjectId, change: () => call('POST', `/event-subscriptions/${subjectId}/replay`, {}) }
    },
    recorded: [
      {
        event: 'event_subscription.replayed',
        description: 'Event subscription Data was set to another place.',
        metadata: { name: 'Data', before: { cursor: expect.any(String) }, after: { cursor: '0'.repeat(37) } },
      },
    ],
  },
  {
    endpoint: 'POST /notifications/:id/test',
    prepare: async () => {
      const { notificationId: subjectId } = await webhook('Operators', 'All')
      return { subjectId, change: () => call('POST', `/notifications/${subjectId}/test`) }
    },
    recorded: [
      {
        event: 'notification.tested',
        description: 'Notification All was tested: the message could not be sent.',
        metadata: { name: 'All', destination_id: expect.any(String), status: 'failed', message: expect.any(String) },
      },
    ],
  },
  {
    endpoint: 'POST /repositories',
    prepare: async () => ({ change: () => call('POST', '/repositories', { repo_id: 'A1', name: 'Invoices' }) }),
    recorded: [
      {
        event: 'repository.created',
        description: 'Repository A1 was created.',
        metadata: { repo_id: 'A1', name: 'Invoices', signature_verification: false },
      },
    ],
  },
  {
    endpoint: 'PATCH /repositories/:id',
    prepare: async () => {
      const subjectId = await created('/repositories', { repo_id: 'A2', name: 'Invoices' })
      const body = { name: 'Invoices', status: 'inactive', signature_verification: true }
      return { subjectId, change: () => call('PATCH', `/repositories/${subjectId}`, body) }
    },
    recorded: [
      {
        event: 'repository.updated',
        description: 'Repository A2 was changed: status, signature_verification.',
        metadata: {
          repo_id: 'A2',
          before: { status: 'active', signature_verification: false },
          after: { status: 'inactive', signature_verification: true },
        },
      },
    ],
  },
  {
    endpoint: 'DELETE /repositories/:id',
    prepare: async () => {
      const { repositoryId } = await wire(acme, 'A3')
      await certificateOf(repositoryId)
      return { subjectId: repositoryId, change: () => call('DELETE', `/repositories/${repositoryId}`) }
    },
    recorded: [
      { event: 'repository.deleted', metadata: { repo_id: 'A3', name: 'Repository A3' } },
      { event: 'cert.deleted' },
      { event: 'connection.deleted', metadata: { name: 'From A3' } },
    ],
  },
  {
    endpoint: 'POST /repositories/:id/test-document',
    prepare: async () => {
      const { repositoryId: subjectId } = await wire(acme, 'AT')
      return { subjectId, change: () => call('POST', `/repositories/${subjectId}/test-document`) }
    },
    recorded: [
      {
        event: 'repository.test_document_sent',
        description: 'A test document was sent to repository AT.',
        metadata: { repo_id: 'AT', doc_id: expect.stringMatching(/^TEST-/), request_id: expect.any(String) },
      },
    ],
  },
  {
    endpoint: 'POST /repositories/:id/check',
    prepare: async () => {
      const { repositoryId: subjectId } = await wire(acme, 'AK')
      return { subjectId, change: () => call('POST', `/repositories/${subjectId}/check`, {}) }
    },
    recorded: [
      {
        event: 'repository.checked',
        description: 'Repository AK was checked as its source system would use it.',
        metadata: { repo_id: 'AK', profile: 'smoke' },
      },
    ],
  },
  {
    endpoint: 'POST /repositories/:id/certificates',
    prepare: async () => {
      const body = { auth_id: 'CN=TST', certificate: signer.pem, status: 'active' }
      const id = await repository.make()
      return { change: () => call('POST', `/repositories/${id}/certificates`, body) }
    },
    recorded: [{ event: 'cert.received' }, { event: 'cert.activated' }],
  },
  {
    endpoint: 'PATCH /repositories/:id/certificates/:certificateId',
    prepare: async () => {
      const id = await repository.make()
      const subjectId = await certificateOf(id, 'active')
      return { subjectId, change: () => call('PATCH', `/repositories/${id}/certificates/${subjectId}`, { status: 'inactive' }) }
    },
    recorded: [{ event: 'cert.deactivated' }],
  },
  {
    endpoint: 'PATCH /repositories/:id/certificates/:certificateId',
    prepare: async () => {
      const id = await repository.make()
      const subjectId = await certificateOf(id)
      return { subjectId, change: () => call('PATCH', `/repositories/${id}/certificates/${subjectId}`, { status: 'active' }) }
    },
    recorded: [{ event: 'cert.activated' }],
  },
  {
    endpoint: 'DELETE /repositories/:id/certificates',
    prepare: async () => {
      const id = await repository.make()
      const subjectId = await certificateOf(id)
      return { subjectId, change: () => call('DELETE', `/repositories/${id}/certificates?status=inactive`) }
    },
    recorded: [{ event: 'cert.deleted' }],
  },
  {
    endpoint: 'DELETE /repositories/:id/certificates/:certificateId',
    prepare: async () => {
      const id = await repository.make()
      const subjectId = await certificateOf(id)
      return { subjectId, change: () => call('DELETE', `/repositories/${id}/certificates/${subjectId}`) }
    },
    recorded: [{ event: 'cert.deleted' }],
  },
  {
    endpoint: 'POST /destinations',
    prepare: async () => ({ change: () => call('POST', '/destinations', objstore('Archive')) }),
    recorded: [
      {
        event: 'destination.created',
        description: 'Destination Archive (objstore) was created.',
        metadata: { name: 'Archive', connector_type: 'objstore' },
      },
    ],
  },
  {
    endpoint: 'PATCH /destinations/:id',
    prepare: async () => {
      const subjectId = await created('/destinations', objstore('Archive'))
      const credentials = { access_key_id: 'canary-1d7e', secret_access_key: 'canary-77a0' }
      const body = { name: 'Archive', config: { region: 'eu-central-1', bucket: 'elsewhere', prefix: 'canary-0b52' }, credentials }
      return { subjectId, change: () => call('PATCH', `/destinations/${subjectId}`, body) }
    },
    recorded: [
      {
        event: 'destination.updated',
        description: 'Destination Archive (objstore) was changed: config.bucket, config.prefix, credentials.',
        metadata: { name: 'Archive', connector_type: 'objstore', changed: ['config.bucket', 'config.prefix', 'credentials'] },
      },
    ],
  },
  {
    endpoint: 'DELETE /destinations/:id',
    prepare: async () => {
      const { destinationId } = await wire(acme, 'A4')
      return { subjectId: destinationId, change: () => call('DELETE', `/destinations/${destinationId}`) }
    },
    recorded: [{ event: 'destination.deleted' }, { event: 'connection.deleted' }],
  },
  {
    endpoint: 'DELETE /destinations/:id',
    prepare: async () => {
      const { id } = await webhook('Operators', 'All')
      return { subjectId: id, change: () => call('DELETE', `/destinations/${id}`) }
    },
    recorded: [
      {
        event: 'destination.deleted',
        description: 'Destination Operators (webhook) was deleted. Notifications deleted with it: All.',
        metadata: { removed_notifications: [{ id: expect.any(String), name: 'All' }] },
      },
      { event: 'notification.deleted', description: 'Notification All was deleted.' },
    ],
  },
  {
    endpoint: 'POST /connections',
    prepare: async () => {
      const { repositoryId, destinationId } = await wire(acme, 'A5')
      const body = { name: 'Twice', is_active: false, repository_ids: [repositoryId], destination_ids: [destinationId] }
      return { change: () => call('POST', '/connections', body) }
    },
    recorded: [{ event: 'connection.created', description: 'Connection Twice was created, inactive.' }],
  },
  {
    endpoint: 'PATCH /connections/:id',
    prepare: async () => {
      const { connectionId: subjectId } = await wire(acme, 'A6')
      return { subjectId, change: () => call('PATCH', `/connections/${subjectId}`, { name: 'Renamed', is_active: false }) }
    },
    recorded: [
      {
        event: 'connection.toggled',
        description: 'Connection Renamed was deactivated.',
        metadata: { name: 'Renamed', is_active: false },
      },
    ],
  },
  {
    endpoint: 'PATCH /connections/:id',
    prepare: async () => {
      const { connectionId: subjectId, repositoryId, destinationId } = await wire(acme, 'AB')
      const second = await created('/destinations', objstore('Second'))
      const body = { repository_ids: [repositoryId], destination_ids: [second, destinationId], settings: { on_resume: 'skip' } }
      return { subjectId, change: () => call('PATCH', `/connections/${subjectId}`, body) }
    },
    recorded: [
      {
        event: 'connection.updated',
        description: 'Connection From AB was changed: destination_ids, settings.',
        metadata: {
          name: 'From AB',
          before: { destination_ids: [expect.any(String)], settings: {} },
          after: { destination_ids: [expect.any(String), expect.any(String)], settings: { on_resume: 'skip' } },
        },
      },
    ],
  },
  {
    endpoint: 'DELETE /connections/:id',
    prepare: async () => {
      const { connectionId: subjectId } = await wire(acme, 'A7')
      return { subjectId, change: () => call('DELETE', `/connections/${subjectId}`) }
    },
    recorded: [{ event: 'connection.deleted', description: 'Connection From A7 was deleted.' }],
  },
  {
    endpoint: 'POST /documents/:id/retry',
    prepare: async () => {
      const { subjectId } = await failed('A8')
      return { subjectId, change: () => call('POST', `/documents/${subjectId}/retry`) }
    },
    recorded: [{ event: 'document.retried', description: 'Document A8/DOC1/data was retried to Bucket of A8.' }],
  },
  ...(
    [
      ['POST /documents/:id/attempt', 'AY', () => ''],
      ['POST /documents/:id/deliveries/:destinationId/attempt', 'AX', (destinationId: string) => `/deliveries/${destinationId}`],
    ] as const
  ).map(([endpoint, repoId, path]): Row => ({
    endpoint,
    prepare: async () => {
      const { subjectId, destinationId } = await failed(repoId)
      const change = { status: 'retrying', next_attempt_at: new Date(Date.now() + 3_600_000), begin_at: null }
      await database.db('deliveries').where({ document_id: subjectId }).update(change)
      return { subjectId, change: () => call('POST', `/documents/${subjectId}${path(destinationId)}/attempt`) }
    },
    recorded: [{ event: 'document.attempted', description: `Document ${repoId}/DOC1/data was attempted at once to Bucket of ${repoId}.` }],
  })),
  {
    endpoint: 'POST /destinations/:id/attempt',
    prepare: async () => {
      const { destinationId: subjectId } = await wire(acme, 'AZ')
      return { subjectId, change: () => call('POST', `/destinations/${subjectId}/attempt`) }
    },
    recorded: [
      { event: 'destination.attempted', description: 'The waiting deliveries to destination Bucket of AZ were attempted at once.' },
    ],
  },
  {
    endpoint: 'POST /documents/:id/deliveries/:destinationId/retry',
    prepare: async () => {
      const { subjectId, destinationId } = await failed('A9')
      return { subjectId, change: () => call('POST', `/documents/${subjectId}/deliveries/${destinationId}/retry`) }
    },
    recorded: [{ event: 'document.retried', description: 'Document A9/DOC1/data was retried to Bucket of A9.' }],
  },
  {
    endpoint: 'POST /documents/retry',
    prepare: async () => {
      await failed('AA')
      const change = async () => {
        const answer = await call('POST', '/documents/retry', { repo_id: 'AA' })
        // Do the work of the bulk retry workflow.
        await bulkPageOf(database.db)(answer.json.data.id, 10, () => {})
        return answer
      }
      return { change }
    },
    recorded: [
      {
        event: 'bulk_retry.started',
        description: 'A bulk retry of 1 documents was started.',
        metadata: { action: 'retry', filter: { repo_id: 'AA' }, matched_documents: 1, matched_deliveries: 1 },
      },
      { event: 'document.retried', description: 'Document AA/DOC1/data was retried to Bucket of AA.' },
    ],
  },
  {
    endpoint: 'POST /documents/deliver',
    prepare: async () => {
      const { repositoryId } = await failed('AE')
      const { id: destination_id } = await webhook('Hook of AE')
      await created('/connections', { name: 'AE', repository_ids: [repositoryId], destination_ids: [destination_id] })
      const change = async () => {
        const answer = await call('POST', '/documents/deliver', { destination_id, origin: 'source' })
        await bulkPageOf(database.db)(answer.json.data.id, 10, () => {})
        return answer
      }
      return { change }
    },
    recorded: [
      {
        event: 'bulk_retry.started' as const,
        description: 'A bulk delivery of 1 documents was started.',
        metadata: { action: 'deliver', matched_documents: 1, matched_deliveries: 1 },
      },
    ],
  },
  ...(['replay', 'acknowledge'] as const).map((action) => ({
    endpoint: `POST /documents/${action}`,
    prepare: async () => {
      const repoId = action === 'replay' ? 'AP' : 'AQ'
      const repositoryId = await created('/repositories', { repo_id: repoId, name: 'A' })
      const source = createSourceSystem(`${api.baseUrl}/receiver/acme/prod`, { repoId })
      const { status } = await source.create('DOC1', 'hello')
      if (status !== 201) throw new Error(`The document is refused: ${status}`)
      const { id: destinationId } = await webhook(`Hook of ${repoId}`)
      await created('/connections', { name: repoId, repository_ids: [repositoryId], destination_ids: [destinationId] })
      const change = async () => {
        const answer = await call('POST', `/documents/${action}`, { repo_id: repoId })
        await api.bulkPage(answer.json.data.id, 10, () => {})
        return answer
      }
      return { change }
    },
    recorded: [
      { event: 'bulk_retry.started' as const, metadata: { action, matched_documents: 1 } },
      ...(action === 'replay' ? [{ event: 'request.replayed' as const }] : []),
      { event: 'document.acknowledged' as const },
    ],
  })),
  {
    endpoint: 'POST /bulk-retries/:id/cancel',
    prepare: async () => {
      await failed('AC')
      const subjectId = await created('/documents/retry', { repo_id: 'AC' })
      return { subjectId, change: () => call('POST', `/bulk-retries/${subjectId}/cancel`) }
    },
    recorded: [
      {
        event: 'bulk_retry.cancelled',
        description: 'A bulk retry was cancelled after 0 of 1 documents.',
        metadata: { retried_documents: 0, matched_documents: 1 },
      },
    ],
  },
  ...(['pause', 'resume', 'cancel'] as const).map((verb) => ({
    endpoint: `POST /document-migrations/:id/${verb}`,
    prepare: async () => {
      const repoId = { pause: 'MA', resume: 'MB', cancel: 'MC' }[verb]
      const repositoryId = await created('/repositories', { repo_id: repoId, name: 'A' })
      const subjectId = await insertDocumentMigration(database.db, acme.id, repositoryId, verb === 'resume' ? 'paused' : 'running')
      return { subjectId, change: () => call('POST', `/document-migrations/${subjectId}/${verb}`) }
    },
    recorded: [
      {
        event: `document_migration.${({ pause: 'paused', resume: 'resumed', cancel: 'cancelled' } as const)[verb]}` as const,
        metadata: { rows: 10, judged_rows: 4 },
      },
    ],
  })),
  {
    endpoint: 'PUT /documents/by-doc-id/:repo_id/:doc_id/metadata',
    prepare: async () => {
      const { repositoryId } = await failed('AD')
      const subjectId = await insertDocument(database.db, {
        workspaceId: acme.id,
        repositoryId,
        repoId: 'AD',
        docId: 'DOC1',
        compId: 'note',
      })
      const body = { erp_object_type: 'BKPF', ar_object: 'FIINV' }
      return { subjectId, change: () => call('PUT', '/documents/by-doc-id/AD/DOC1/metadata', body) }
    },
    recorded: [
      {
        event: 'document.metadata_updated',
        description: 'The metadata of document AD/DOC1 was changed: erp_object_type, ar_object.',
        metadata: {
          repo_id: 'AD',
          doc_id: 'DOC1',
          documents: 2,
          before: { erp_object_type: null, ar_object: 'ZINVOICE' },
          after: { erp_object_type: 'BKPF', ar_object: 'FIINV' },
        },
      },
    ],
  },
  {
    endpoint: 'PUT /documents/metadata',
    prepare: async () => {
      await failed('QX')
      const documents = [{ repo_id: 'QX', doc_id: 'LATER', file_name: 'offer.pdf' }]
      return { subjectId: 'LATER', change: () => call('PUT', '/documents/metadata', { documents }) }
    },
    recorded: [
      {
        event: 'document.metadata_updated',
        description: 'The metadata of document QX/LATER, which has not arrived, was set: file_name.',
        metadata: { repo_id: 'QX', doc_id: 'LATER', documents: 0 },
      },
    ],
  },
  {
    endpoint: 'POST /requests/:id/replay',
    prepare: async () => {
      const { id: subjectId } = await resources.byPath['/requests/{id}']!(acme)
      return { subjectId, change: () => call('POST', `/requests/${subjectId}/replay`) }
    },
    recorded: [{ event: 'request.replayed' }],
  },
  {
    endpoint: 'PATCH /settings',
    prepare: async () => {
      const credentials = { user: 'canary-user', password: 'canary-rfc' }
      const body = {
        max_retries: 3,
        receiver_allowed_cidrs: ['10.0.0.0/8', '127.0.0.0/8'],
        rfc: { url: 'https://erp.example', client: '100', credentials },
      }
      return { subjectId: acme.id, change: () => call('PATCH', '/settings', body) }
    },
    recorded: [
      {
        event: 'settings.updated',
        metadata: {
          before: { max_retries: 10, receiver_allowed_cidrs: [], 'rfc.url': null, 'rfc.credentials': null },
          after: {
            max_retries: 3,
            receiver_allowed_cidrs: ['10.0.0.0/8', '127.0.0.0/8'],
            'rfc.url': 'https://erp.example',
            'rfc.credentials': '[REDACTED]',
          },
        },
      },
    ],
  },
  {
    endpoint: 'POST /api-keys',
    prepare: async () => ({ change: () => call('POST', '/api-keys', { name: 'CI', level: 'viewer' }) }),
    recorded: [{ event: 'apikey.created', metadata: { name: 'CI', level: 'viewer', belongs_to: null, expires_at: null } }],
  },
  {
    endpoint: 'DELETE /api-keys/:id',
    prepare: async () => {
      const subjectId = await created('/api-keys', { name: 'CI', level: 'viewer' })
      return { subjectId, change: () => call('DELETE', `/api-keys/${subjectId}`) }
    },
    recorded: [{ event: 'apikey.revoked', metadata: { name: 'CI', level: 'viewer' } }],
  },
]

test('every mutating endpoint names its audit events or has a reason to record none', () => {
  const changing = api.endpoints.filter(({ method }) => method !== 'GET')
  const without = changing.filter(({ audit }) => eventsOf(audit).length === 0).map(nameOf)
  expect(without.toSorted()).toEqual(Object.keys(unaudited).toSorted())
})

test('every audit event has a source', () => {
  const named = new Set([...api.endpoints.flatMap(({ audit }) => eventsOf(audit)), ...Object.keys(elsewhere)])
  expect([...named].toSorted()).toEqual(auditEventNames.toSorted())
})

test('every audited endpoint has a row in the table', () => {
  const audited = api.endpoints.filter(({ audit }) => audit).map(nameOf)
  expect(new Set(rows.map(({ endpoint }) => endpoint))).toEqual(new Set(audited))
})

test.each(rows.map((row) => [row.endpoint, row.recorded.map(({ event }) => event).join(', '), row] as const))(
  '%s records %s and nothing else',
  async (endpoint, _, { prepare, recorded }) => {
    const { change, subjectId } = await prepare()
    let answer: Answer | undefined
    const entries = await recordedBy(async () => {
      answer = await change()
    })
    expect(answer!.status).toBeLessThan(300)
    expect(entries).toMatchObject(
      recorded.map(({ metadata, ...entry }) => ({
        description: expect.any(String),
        ...entry,
        // The key that was used is named in every entry.
        metadata: { ...metadata, key_id: keyId, key_name: keyName },
        workspace_id: acme.id,
        actor_type: 'api_key',
        user_id: userId,
      })),
    )
    expect(entries[0].subject_id).toBe(subjectId ?? answer!.json.data.id)
    expect(JSON.stringify(entries)).not.toMatch(/canary|relay_/)
    const known = eventsOf(api.endpoints.find((item) => nameOf(item) === endpoint)!.audit)
    expect(recorded.filter(({ event }) => !known.includes(event))).toEqual([])
  },
)

test.each([
  [
    'patching a repository with its current values',
    'B1',
    'repositories',
    { name: 'Repository B1', status: 'active', signature_verification: false },
  ],
  ['an empty patch of a repository', 'B2', 'repositories', {}],
  [
    'patching a destination with its current values',
    'B3',
    'destinations',
    { name: 'Bucket of B3', config: { bucket: 'archive', prefix: null } },
  ],
  ['an empty patch of a destination', 'B4', 'destinations', {}],
  ['activating an active connection', 'B5', 'connections', { is_active: true }],
  ['renaming a connection', 'B6', 'connections', { name: 'Other', settings: {} }],
  ['renaming a destination', 'B7', 'destinations', { name: 'Other' }],
] as const)('%s records nothing', async (_, repoId, noun, body) => {
  const ids = await wire(acme, repoId)
  const path = `/${noun}/${{ repositories: ids.repositoryId, destinations: ids.destinationId, connections: ids.connectionId }[noun]}`
  const before = (await call('GET', path)).json
  const entries = await recordedBy(async () => expect((await call('PATCH', path, body)).status).toBe(200))
  expect(entries).toEqual([])
  if (noun !== 'connections' && repoId !== 'B7') expect((await call('GET', path)).json).toEqual(before)
})

test('a refused request records nothing', async () => {
  const { repositoryId, connectionId } = await wire(acme, 'C1')
  const entries = await recordedBy(async () => {
    await call('POST', '/repositories', { repo_id: 'C1', name: 'Again' })
    await call('PATCH', `/connections/${connectionId}`, { is_active: false, repository_ids: ['unknown'] })
    await call('POST', '/connections', { name: 'A', repository_ids: [repositoryId], destination_ids: ['unknown'] })
    await call('DELETE', `/api-keys/${repositoryId}`)
    await call('POST', '/destinations', { ...objstore('A'), config: {} })
  })
  expect(entries).toEqual([])
})

test('concurrent deactivations of one connection record one event', async () => {
  const { connectionId } = await wire(acme, 'D1')
  const entries = await recordedBy(() =>
    Promise.all(Array.from({ length: 5 }, () => call('PATCH', `/connections/${connectionId}`, { is_active: false }))),
  )
  expect(entries.map(({ event }) => event)).toEqual(['connection.toggled'])
})

test('an order of ids is no rewiring, and one id more is', async () => {
  const { connectionId, repositoryId, destinationId } = await wire(acme, 'E1')
  const second = await created('/destinations', objstore('Second'))
  const rewire = (...destination_ids: string[]) =>
    recordedBy(() => call('PATCH', `/connections/${connectionId}`, { repository_ids: [repositoryId], destination_ids }))
  const sorted = [destinationId, second].toSorted()
  const ids = { before: { destination_ids: [destinationId] }, after: { destination_ids: sorted } }
  expect(await rewire(second, destinationId)).toMatchObject([{ event: 'connection.updated', metadata: ids }])
  expect(await rewire(destinationId, second)).toEqual([])
})

test('metadata that are set again are not recorded again', async () => {
  const { repositoryId } = await wire(acme, 'E2')
  await insertDocument(database.db, { workspaceId: acme.id, repositoryId, repoId: 'E2', docId: 'DOC1' })
  const push = () => recordedBy(() => call('PUT', '/documents/by-doc-id/E2/DOC1/metadata', { erp_object_type: 'BKPF' }))
  expect(await push()).toMatchObject([{ event: 'document.metadata_updated' }])
  expect(await push()).toEqual([])
})

test('settings that are set to their values are not recorded', async () => {
  const { attributes } = (await call('GET', '/settings')).json.data
  expect(await recordedBy(() => call('PATCH', '/settings', { max_retries: attributes.max_retries, content_days: null }))).toEqual([])
})

test('API keys created and revoked on the command line are recorded with the actor system', async () => {
  const entries = await recordedBy(async () => {
    const { id } = await createKey(database.db, { workspace: 'acme/prod', level: 'member', member: 'ada@example.org' })
    await revokeKey(database.db, id)
  })
  expect(entries).toMatchObject([
    { event: 'apikey.created', actor_type: 'system', user_id: null, metadata: { level: 'member', belongs_to: userId } },
    { event: 'apikey.revoked', actor_type: 'system', user_id: null },
  ])
})
