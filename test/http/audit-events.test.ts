import { createKey, revokeKey } from '../../src/commands/key.ts'
import { createBulkRetries } from '../../src/db/bulk-retries.ts'
import { createWorkspaces } from '../../src/db/workspaces.ts'
import { auditEventNames, type AuditEvent } from '../../src/domain/audit-events.ts'
import { testConfig } from '../support/factories.ts'
import { createSigner } from '../support/signer.ts'
import { objstore, startScene, wire, type Answer } from './api.ts'
import { insertDocument } from './documents-in.ts'

/** Changes that are no event of the contract, and why that is right. */
const silent: Record<string, string> = {
  'PATCH /settings': 'the contract has no event for settings',
  'PUT /documents/by-doc-id/:repo_id/:doc_id/metadata': 'the contract has no event for what a document is about',
  'POST /destinations/test': 'a trial changes nothing',
  'POST /requests/:id/replay': 'the contract has no event for it: what is replayed is captured, and marked as such',
  'POST /bulk-retries/:id/cancel': 'the contract has no event for it: what it had retried until then has an entry each',
  'POST /destinations/:id/test': 'a trial changes nothing that anybody has configured',
}

/** Events that do not come from this API. */
const elsewhere: Partial<Record<AuditEvent, string>> = {
  'rfc.call': 'the bridge',
}

const { database, api, acme, stop } = await startScene()
const signer = await createSigner('RSA 2048')
const userId = await createWorkspaces(database.db).ensureMember(acme.id, 'ada@example.org')
const { key } = await createKey(database.db, { workspace: 'acme/prod', level: 'admin', member: 'ada@example.org' })
afterAll(async () => {
  await signer.remove()
  await stop()
})

const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`
const eventsOf = (audit: AuditEvent | readonly AuditEvent[] | undefined) => [audit ?? []].flat()

/** What a call adds to the log, oldest first. */
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

/** A document that has failed, with what it needs. */
const failed = async (repoId: string) => {
  const { repositoryId, destinationId, connectionId } = await wire(acme, repoId)
  const deliveries = [{ destinationId, connectionId, status: 'failed' as const }]
  const row = { workspaceId: acme.id, repositoryId, repoId, docId: 'DOC1', status: 'failed' as const, deliveries }
  return { destinationId, subjectId: await insertDocument(database.db, row) }
}

interface Row {
  endpoint: string
  /** Prepares, then gives the change itself, with the id of its subject where that is known before. */
  prepare: () => Promise<{ change: () => Promise<Answer>; subjectId?: string }>
  recorded: { event: AuditEvent; metadata?: object; description?: string }[]
}

const rows: Row[] = [
  {
    endpoint: 'POST /repositories',
    prepare: async () => ({ change: () => call('POST', '/repositories', { repo_id: 'A1', name: 'Invoices' }) }),
    recorded: [
      {
        event: 'repository.created',
        description: 'The repository A1 was created.',
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
        description: 'Of the repository A2 was changed: status, signature_verification.',
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
        description: 'The destination Archive (objstore) was created.',
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
        description: 'Of the destination Archive (objstore) was changed: config.bucket, config.prefix, credentials.',
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
    endpoint: 'POST /connections',
    prepare: async () => {
      const { repositoryId, destinationId } = await wire(acme, 'A5')
      const body = { name: 'Twice', is_active: false, repository_ids: [repositoryId], destination_ids: [destinationId] }
      return { change: () => call('POST', '/connections', body) }
    },
    recorded: [{ event: 'connection.created', description: 'The connection Twice was created, inactive.' }],
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
        description: 'The connection Renamed was deactivated.',
        metadata: { name: 'Renamed', is_active: false },
      },
    ],
  },
  {
    endpoint: 'DELETE /connections/:id',
    prepare: async () => {
      const { connectionId: subjectId } = await wire(acme, 'A7')
      return { subjectId, change: () => call('DELETE', `/connections/${subjectId}`) }
    },
    recorded: [{ event: 'connection.deleted', description: 'The connection From A7 was deleted.' }],
  },
  {
    endpoint: 'POST /documents/:id/retry',
    prepare: async () => {
      const { subjectId } = await failed('A8')
      return { subjectId, change: () => call('POST', `/documents/${subjectId}/retry`) }
    },
    recorded: [{ event: 'document.retried', description: 'The document A8/DOC1/data was retried to Bucket of A8.' }],
  },
  {
    endpoint: 'POST /documents/:id/deliveries/:destinationId/retry',
    prepare: async () => {
      const { subjectId, destinationId } = await failed('A9')
      return { subjectId, change: () => call('POST', `/documents/${subjectId}/deliveries/${destinationId}/retry`) }
    },
    recorded: [{ event: 'document.retried', description: 'The document A9/DOC1/data was retried to Bucket of A9.' }],
  },
  {
    endpoint: 'POST /documents/retry',
    prepare: async () => {
      const { subjectId } = await failed('AA')
      const change = async () => {
        const answer = await call('POST', '/documents/retry', { repo_id: 'AA' })
        // what its workflow does
        await createBulkRetries(database.db, testConfig()).retryPage(answer.json.data.id, 10, async () => {})
        return answer
      }
      return { subjectId, change }
    },
    recorded: [{ event: 'document.retried', description: 'The document AA/DOC1/data was retried to Bucket of AA.' }],
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

test('whatever changes something names its events, or has a reason to have none', () => {
  const changing = api.endpoints.filter(({ method }) => method !== 'GET')
  const without = changing.filter(({ audit }) => eventsOf(audit).length === 0).map(nameOf)
  expect(without.toSorted()).toEqual(Object.keys(silent).toSorted())
})

test('every event of the contract comes from somewhere', () => {
  const named = new Set([...api.endpoints.flatMap(({ audit }) => eventsOf(audit)), ...Object.keys(elsewhere)])
  expect([...named].toSorted()).toEqual(auditEventNames.toSorted())
})

test('no endpoint with an event is missing from the table below', () => {
  const audited = api.endpoints.filter(({ audit }) => audit).map(nameOf)
  expect(new Set(rows.map(({ endpoint }) => endpoint))).toEqual(new Set(audited))
})

test.each(rows.map((row) => [row.endpoint, row.recorded.map(({ event }) => event).join(', '), row] as const))(
  '%s records %s, and nothing else',
  async (endpoint, _, { prepare, recorded }) => {
    const { change, subjectId } = await prepare()
    let answer: Answer | undefined
    const entries = await recordedBy(async () => {
      answer = await change()
    })
    expect(answer!.status).toBeLessThan(300)
    expect(entries).toMatchObject(
      recorded.map((entry) => ({
        description: expect.any(String),
        ...entry,
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
  ['a repository patched to what it is', 'B1', 'repositories', { name: 'Repository B1', status: 'active', signature_verification: false }],
  ['an empty patch of a repository', 'B2', 'repositories', {}],
  ['a destination patched to what it is', 'B3', 'destinations', { name: 'Bucket of B3', config: { bucket: 'archive', prefix: null } }],
  ['an empty patch of a destination', 'B4', 'destinations', {}],
  ['an active connection that is activated', 'B5', 'connections', { is_active: true }],
  ['a connection that gets another name', 'B6', 'connections', { name: 'Other', settings: { on_resume: 'skip' } }],
] as const)('%s is no event', async (_, repoId, noun, body) => {
  const ids = await wire(acme, repoId)
  const path = `/${noun}/${{ repositories: ids.repositoryId, destinations: ids.destinationId, connections: ids.connectionId }[noun]}`
  const before = (await call('GET', path)).json
  const entries = await recordedBy(async () => expect((await call('PATCH', path, body)).status).toBe(200))
  expect(entries).toEqual([])
  if (noun !== 'connections') expect((await call('GET', path)).json).toEqual(before)
})

test('what is refused is no event', async () => {
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

test('simultaneous switches off are one event', async () => {
  const { connectionId } = await wire(acme, 'D1')
  const entries = await recordedBy(() =>
    Promise.all(Array.from({ length: 5 }, () => call('PATCH', `/connections/${connectionId}`, { is_active: false }))),
  )
  expect(entries.map(({ event }) => event)).toEqual(['connection.toggled'])
})

test('keys made and revoked on the command line are entries of the system', async () => {
  const entries = await recordedBy(async () => {
    const { id } = await createKey(database.db, { workspace: 'acme/prod', level: 'member', member: 'ada@example.org' })
    await revokeKey(database.db, id)
  })
  expect(entries).toMatchObject([
    { event: 'apikey.created', actor_type: 'system', user_id: null, metadata: { level: 'member', belongs_to: userId } },
    { event: 'apikey.revoked', actor_type: 'system', user_id: null },
  ])
})
