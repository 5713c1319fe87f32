import { newId } from '../../src/base/ids.ts'
import { upsertCaptures } from '../../src/capture/capture.ts'
import type { ContentStore } from '../../src/content/store.ts'
import type { Database } from '../../src/db/database.ts'
import type { WorkspaceClient } from '../support/client.ts'
import { insertManifest } from '../support/manifest.ts'
import { insertDocumentMigration } from './insert-document-migration.ts'
import { insertDocument } from './insert-document.ts'
import { objstore } from './objstore.ts'

type Ids = Record<string, string>

interface World {
  db: Database
  store: ContentStore
  /** A certificate as PEM. */
  certificate: string
}

/**
 * Returns functions that create a resource in a workspace: one for each path that ends with an id, and one for each id
 * attribute of a request body. The tenancy test fails until a new kind of resource has an entry here.
 */
export const createResources = ({ db, store, certificate }: World) => {
  const create = async (tenant: WorkspaceClient, path: string, body: object): Promise<string> =>
    (await tenant.call('POST', path, body)).json.data.id as string

  // Each with a place of its own: one may become a home.
  const destination = (tenant: WorkspaceClient) => create(tenant, '/destinations', objstore('A', { prefix: `${newId()}/` }))
  const webhook = (tenant: WorkspaceClient) =>
    create(tenant, '/destinations', { name: 'A', connector_type: 'webhook', config: { url: 'https://example.com/in' }, credentials: {} })
  const repository = (tenant: WorkspaceClient) => create(tenant, '/repositories', { repo_id: newId(), name: 'A' })

  const connection = async (tenant: WorkspaceClient) =>
    create(tenant, '/connections', {
      name: 'A',
      repository_ids: [await repository(tenant)],
      destination_ids: [await destination(tenant)],
    })

  const document = async (tenant: WorkspaceClient) => {
    const content = await store.write(
      tenant.id,
      (async function* bytes() {
        yield Buffer.from('hello')
      })(),
    )
    await db.transaction((trx) => content.own(trx))
    const repositoryId = await repository(tenant)
    return insertDocument(db, { workspaceId: tenant.id, repositoryId, repoId: 'Z1', contentId: content.id })
  }

  const failedDelivery = async (tenant: WorkspaceClient) => {
    const [repositoryId, destinationId, connectionId] = [await repository(tenant), await destination(tenant), await connection(tenant)]
    const deliveries = [{ destinationId, connectionId, status: 'failed' as const }]
    const id = await insertDocument(db, { workspaceId: tenant.id, repositoryId, repoId: 'Z1', status: 'failed', deliveries })
    return { id, destinationId }
  }

  const member = async (tenant: WorkspaceClient) => {
    const id = newId()
    await db('members').insert({ id, workspace_id: tenant.id, email: `${id}@example.com`, name: 'A' })
    return id
  }

  const request = async (tenant: WorkspaceClient) => {
    const [id, at] = [newId(), new Date()]
    const [userSlug, workspaceSlug] = tenant.path.split('/').slice(-2) as [string, string]
    await upsertCaptures(db, [
      {
        id,
        channel: 'receiver',
        userSlug,
        workspaceSlug,
        httpMethod: 'PUT',
        uri: '/',
        queryString: '',
        querySealed: null,
        repoId: null,
        docId: null,
        requestHeaders: {},
        requestContentType: null,
        requestContentLength: 5,
        requestBodyTruncationReason: null,
        requestBody: { data: Buffer.from('hello'), redacted: false, pieces: null },
        sourceIp: '::1',
        requestAt: at,
        statusCode: 201,
        errorCode: null,
        durationMs: 1,
        responseHeaders: {},
        responseContentType: null,
        responseContentLength: 0,
        responseBodyTruncationReason: null,
        responseBody: null,
        responseAt: at,
        replayOf: null,
      },
    ])
    return id
  }

  const byPath: Record<string, (tenant: WorkspaceClient) => Promise<Ids>> = {
    '/destinations/{id}': async (tenant) => ({ id: await destination(tenant) }),
    '/repositories/{id}': async (tenant) => ({ id: await repository(tenant) }),
    '/repositories/{id}/certificates/{certificateId}': async (tenant) => {
      const id = await repository(tenant)
      return { id, certificateId: await create(tenant, `/repositories/${id}/certificates`, { auth_id: 'CN=A', certificate }) }
    },
    '/connections/{id}': async (tenant) => ({ id: await connection(tenant) }),
    '/documents/by-doc-id/{repo_id}/{doc_id}': async (tenant) => {
      const [repoId, docId] = [newId(), newId()]
      const repositoryId = await create(tenant, '/repositories', { repo_id: repoId, name: 'A' })
      await insertDocument(db, { workspaceId: tenant.id, repositoryId, repoId, docId })
      return { repo_id: repoId, doc_id: docId }
    },
    '/documents/{id}': async (tenant) => ({ id: await document(tenant) }),
    '/documents/{id}/deliveries/{destinationId}': failedDelivery,
    '/bulk-retries/{id}': async (tenant) => ({ id: await create(tenant, '/documents/retry', {}) }),
    '/manifests/{day}': async ({ id }) => ({ day: await insertManifest(db, id) }),
    '/document-migrations/{id}': async (tenant) => ({ id: await insertDocumentMigration(db, tenant.id, await repository(tenant)) }),
    '/notifications/{id}': async (tenant) => ({
      id: await create(tenant, '/notifications', { name: 'A', events: ['delivery.failed'], destination_id: await webhook(tenant) }),
    }),
    '/event-subscriptions/{id}': async (tenant) => ({
      id: await create(tenant, '/event-subscriptions', { name: 'A', events: ['document.failed'], destination_id: await webhook(tenant) }),
    }),
    '/enrichments/{id}': async (tenant) => ({
      id: await create(tenant, '/enrichments', { name: 'A', repository_ids: [], steps: [{ kind: 'link' }] }),
    }),
    '/legal-holds/{id}': async (tenant) => ({
      id: await create(tenant, '/legal-holds', { erp_object_type: 'BKPF', erp_object_id: '1', reason: 'A' }),
    }),
    '/requests/{id}': async (tenant) => ({ id: await request(tenant) }),
    '/api-keys/{id}': async (tenant) => ({ id: await create(tenant, '/api-keys', { name: 'A', level: 'viewer' }) }),
  }

  const byAttribute: Record<string, (tenant: WorkspaceClient) => Promise<string>> = {
    repository_ids: repository,
    document_id: document,
    document_ids: document,
    // A notification is not sent to a destination of any other type.
    destination_id: webhook,
    destination_ids: destination,
    home_destination_id: destination,
    user_id: member,
    // A cursor.
    after: async (tenant) => (await tenant.call('GET', '/events?per_page=1')).json.meta.next_cursor,
  }

  /** Creates what a path names, up to its last id. @returns the ids by the names of the parameters */
  const idsOf = async (path: string, tenant: WorkspaceClient): Promise<Ids> => {
    const segments = path.split('/')
    const named = segments.slice(0, segments.findLastIndex((segment) => /^\{(?!kind)/.test(segment)) + 1).join('/')
    return (await byPath[named]?.(tenant)) ?? {}
  }

  return { byPath, byAttribute, idsOf }
}

/** Attributes that look like resource ids but are assigned by the source system. */
export const foreignNames = new Set(['repo_id', 'auth_id', 'doc_id', 'comp_id', 'erp_object_id'])
