import { idPrefixAt, newId } from '../../src/base/ids.ts'
import type { WorkspaceClient } from '../support/client.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { createSigner } from '../support/signer.ts'
import { insertDocument } from './insert-document.ts'
import { wire } from './objstore.ts'

const { database, acme, other } = share(await startScene())

test('document_count is the sum of all shards', async () => {
  const { json } = await acme.call('POST', '/repositories', { repo_id: 'C1', name: 'A' })
  const { id } = json.data
  await database.db('repository_counts').insert([
    { repository_id: id, shard: 0, documents: 3 },
    { repository_id: id, shard: 7, documents: 4 },
  ])
  expect((await acme.call('GET', `/repositories/${id}`)).json.data.attributes.document_count).toBe(7)
  const listed = (await acme.call('GET', '/repositories')).json.data
  expect(listed.find((item: { id: string }) => item.id === id).attributes.document_count).toBe(7)
})

test('a repository says when its last request arrived, and how many certificates are active', async () => {
  const [{ json: mine }, { json: theirs }] = [
    await acme.call('POST', '/repositories', { repo_id: 'R1', name: 'A' }),
    await other.call('POST', '/repositories', { repo_id: 'R1', name: 'A' }),
  ]
  // captured_requests has partitions from yesterday on.
  const startMs = Date.now() - 10_000
  const at = (second: number) => new Date(startMs + second * 1_000)
  const requestOf = ({ id: workspaceId }: WorkspaceClient, requestAt: Date, repoId = 'R1') =>
    database.db('captured_requests').insert({
      id: idPrefixAt(requestAt) + newId().slice(10),
      workspace_id: workspaceId,
      channel: 'receiver',
      http_method: 'PUT',
      uri: '/',
      query_string: '',
      repo_id: repoId,
      request_headers: {},
      request_content_length: 0,
      source_ip: '127.0.0.1',
      request_at: requestAt,
      status_code: 401,
      response_headers: {},
      response_content_length: 0,
      duration_ms: 1,
      response_at: requestAt,
    })
  await requestOf(acme, at(2))
  await requestOf(acme, at(1))
  await requestOf(acme, at(4), 'R2')
  await requestOf(other, at(3))
  const signer = await createSigner('RSA 2048', '/CN=TST')
  for (const [authId, status] of [
    ['CN=A', 'active'],
    ['CN=B', 'inactive'],
  ]) {
    const body = { auth_id: authId, certificate: signer.pem, status }
    expect((await acme.call('POST', `/repositories/${mine.data.id}/certificates`, body)).status).toBe(201)
  }
  await signer.remove()
  const { attributes } = (await acme.call('GET', `/repositories/${mine.data.id}`)).json.data
  expect(attributes).toMatchObject({ last_request_at: at(2).toISOString(), active_certificates: 1 })
  const { data } = (await other.call('GET', '/repositories?per_page=100')).json
  const listed = data.find(({ id }: { id: string }) => id === theirs.data.id)
  expect(listed.attributes).toMatchObject({ last_request_at: at(3).toISOString(), active_certificates: 0 })
})

test('deleting a repository deletes its active connections, even shared ones, and keeps inactive ones', async () => {
  const first = await wire(acme, 'G1')
  const second = await wire(acme, 'G2', false)
  await acme.call('PATCH', `/connections/${first.connectionId}`, { repository_ids: [first.repositoryId, second.repositoryId] })
  expect((await acme.call('DELETE', `/repositories/${second.repositoryId}`)).status).toBe(204)
  expect((await acme.call('GET', `/connections/${first.connectionId}`)).status).toBe(404)
  expect((await acme.call('GET', `/repositories/${first.repositoryId}`)).json.data.attributes.connections).toEqual([])
  expect((await acme.call('GET', `/connections/${second.connectionId}`)).json.data.repositories).toEqual([])
})

test('a deletion names the active connections that went too and the other repositories that are wired to nothing', async () => {
  const [first, second, third] = [await wire(acme, 'G3'), await wire(acme, 'G4'), await wire(acme, 'G5', false)]
  const shared = await acme.call('PATCH', `/connections/${first.connectionId}`, {
    repository_ids: [first.repositoryId, second.repositoryId, third.repositoryId],
  })
  await acme.call('DELETE', `/connections/${second.connectionId}`)
  // G3 itself is deleted, G4 has no other connection, and G5 has an inactive one, which holds what arrives.
  const expected = {
    removed_connections: [{ id: first.connectionId, name: shared.json.data.name }],
    unlinked_connections: [],
    removed_notifications: [],
    unwired_repositories: [{ id: second.repositoryId, repo_id: 'G4', name: 'Repository G4' }],
    affected_destinations: [{ id: first.destinationId, name: 'Bucket of G3', repo_ids: ['G4', 'G5'] }],
    failed_documents_delivered: 0,
  }
  const dryRun = await acme.call('DELETE', `/repositories/${first.repositoryId}?dry_run=true`)
  expect({ status: dryRun.status, data: dryRun.json.data }).toEqual({ status: 200, data: expected })
  const deleted = await acme.call('DELETE', `/repositories/${first.repositoryId}`)
  expect([deleted.status, deleted.headers.get('x-relay-removed-connections')]).toEqual([204, first.connectionId])
  const { json } = await acme.call('GET', `/audit-logs?subject_id=${first.repositoryId}&event=repository.deleted`)
  expect(json.data[0].attributes.metadata).toMatchObject({ repo_id: 'G3', name: 'Repository G3', ...expected })
  expect((await acme.call('DELETE', `/repositories/${first.repositoryId}?dry_run=true`)).status).toBe(404)
})

test('keep_connections unlinks a repository, and only a connection that would be empty is deleted', async () => {
  const [first, second] = [await wire(acme, 'G7'), await wire(acme, 'G8')]
  const connection = { name: 'Both', repository_ids: [first.repositoryId, second.repositoryId], destination_ids: [first.destinationId] }
  const shared = (await acme.call('POST', '/connections', connection)).json.data.id as string
  const expected = {
    removed_connections: [{ id: first.connectionId, name: 'From G7' }],
    unlinked_connections: [{ id: shared, name: 'Both' }],
    removed_notifications: [],
    unwired_repositories: [],
    affected_destinations: [],
    failed_documents_delivered: 0,
  }
  const address = `/repositories/${first.repositoryId}?keep_connections=true`
  expect((await acme.call('DELETE', `${address}&dry_run=true`)).json.data).toEqual(expected)
  const deleted = await acme.call('DELETE', address)
  expect([deleted.status, deleted.headers.get('x-relay-removed-connections')]).toEqual([204, first.connectionId])
  expect((await acme.call('GET', `/connections/${first.connectionId}`)).status).toBe(404)
  expect((await acme.call('GET', `/connections/${shared}`)).json.data.repositories).toMatchObject([{ repo_id: 'G8' }])
})

test('an active connection that still holds deliveries goes with its repository, and they are cancelled', async () => {
  const { repositoryId, destinationId, connectionId } = await wire(acme, 'G6')
  const document = await insertDocument(database.db, {
    workspaceId: acme.id,
    repositoryId,
    repoId: 'G6',
    deliveries: [{ destinationId, connectionId, status: 'held' }],
    status: 'pending',
  })
  expect((await acme.call('DELETE', `/repositories/${repositoryId}`)).status).toBe(204)
  expect((await acme.call('GET', `/connections/${connectionId}`)).status).toBe(404)
  const { json } = await acme.call('GET', `/documents/${document}`)
  expect(json.data.attributes.deliveries).toMatchObject([{ status: 'cancelled' }])
})
