import { createHash } from 'node:crypto'
import { ulid } from 'ulid'
import type { ReceivedDocument } from '../../src/archive/receive.ts'
import { createReceivingRepositories, type ReceivingRepository } from '../../src/archive/receiving-repository.ts'
import { newId } from '../../src/base/ids.ts'
import { readConfig, type Config } from '../../src/config/config.ts'
import type { UnownedContent } from '../../src/content/store.ts'
import type { Database } from '../../src/db/database.ts'
import { noMetadata } from '../../src/domain/template.ts'
import type { DocumentKey } from '../../workflows/ids.ts'

/** Returns the default configuration with a sealing key; targets on loopback addresses are allowed. */
export const testConfig = (variables: Record<string, string> = {}): Config =>
  readConfig({
    RELAY_SECRET_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
    RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8,::1/128',
    RELAY_LOG_LEVEL: 'silent',
    RELAY_PORT: '0',
    RELAY_PROBES_PORT: '0',
    RELAY_HOST: '127.0.0.1',
    ...variables,
  })

export interface DestinationPlan {
  name: string
  connector?: string
  config?: object
  credentialsSealed?: Buffer
}

/** Creates a workspace `acme/<random>` with one repository and a route to each destination, through one connection each. */
export const createRoutes = async (
  db: Database,
  destinations: DestinationPlan[],
  options: { repoId?: string; inactive?: string[]; settings?: object; workspaceSettings?: object } = {},
) => {
  const workspaceId = newId()
  const workspaceSlug = workspaceId.toLowerCase()
  const repositoryId = newId()
  const repoId = options.repoId ?? 'Z1'
  await db('workspaces').insert({
    id: workspaceId,
    user_slug: 'acme',
    workspace_slug: workspaceSlug,
    settings: JSON.stringify(options.workspaceSettings ?? {}),
  })
  await db('repositories').insert({ id: repositoryId, workspace_id: workspaceId, repo_id: repoId, name: 'Inbox' })

  const ids: Record<string, string> = {}
  const connections: Record<string, string> = {}
  for (const { name, connector = 'webhook', config = {}, credentialsSealed = Buffer.alloc(0) } of destinations) {
    const destinationId = newId()
    const connectionId = newId()
    ids[name] = destinationId
    connections[name] = connectionId
    await db('destinations').insert({
      id: destinationId,
      workspace_id: workspaceId,
      name,
      connector_type: connector,
      config: JSON.stringify(config),
      credentials_sealed: credentialsSealed,
    })
    await db('connections').insert({
      id: connectionId,
      workspace_id: workspaceId,
      name: `to ${name}`,
      is_active: !options.inactive?.includes(name),
      settings: JSON.stringify(options.settings ?? {}),
    })
    await db('connection_repositories').insert({ connection_id: connectionId, repository_id: repositoryId, position: 0 })
    await db('connection_destinations').insert({ connection_id: connectionId, destination_id: destinationId, position: 0 })
  }
  const findRepository = async (): Promise<ReceivingRepository> =>
    (await createReceivingRepositories(db).find('acme', workspaceSlug, repoId))!
  return { workspaceId, workspaceSlug, repositoryId, repoId, destinations: ids, connections, findRepository }
}

/** Returns a content that is still in memory, as the stores do for a small document. `own` writes it to the content tables. */
const contentOf = (workspaceId: string, bytes: string | Buffer): UnownedContent => {
  const id = newId()
  const data = Buffer.from(bytes as string)
  const sha256 = createHash('sha256').update(data).digest()
  return {
    id,
    sizeBytes: data.length,
    sha256,
    own: async (trx) => {
      await trx('contents').insert({
        id,
        workspace_id: workspaceId,
        store: 'postgres',
        size_bytes: data.length,
        sha256,
        owned_at: trx.fn.now(),
      })
      await trx('content_chunks').insert({ content_id: id, seq: 0, data })
    },
    discard: async () => {},
    buffer: { data, release: () => {} },
  }
}

/** Returns the document that a create with these components receives. */
export const receivedDocument = async (
  routes: Pick<Awaited<ReturnType<typeof createRoutes>>, 'workspaceId' | 'findRepository'>,
  components: Record<string, string | Buffer>,
  docId = newId(),
): Promise<ReceivedDocument> => ({
  repository: await routes.findRepository(),
  docId,
  docProt: null,
  metadata: noMetadata,
  components: Object.entries(components).map(([compId, text]) => ({
    compId,
    contentType: 'text/plain',
    sizeBytes: Buffer.byteLength(text),
    content: contentOf(routes.workspaceId, text),
  })),
  receivedAt: new Date(),
  requestId: newId(),
  capture: undefined,
})

/** Returns the names that make up the workflow ids of a document. */
export const documentKeyOf = async (db: Database, documentId: string): Promise<DocumentKey> => {
  const { userSlug, workspaceSlug, ...document } = await db('documents')
    .join('workspaces', 'workspaces.id', 'documents.workspace_id')
    .where({ 'documents.id': documentId })
    .select([
      'documents.id as documentId',
      'repo_id as repoId',
      'doc_id as docId',
      'comp_id as compId',
      'user_slug as userSlug',
      'workspace_slug as workspaceSlug',
    ])
    .first()
  return { ...document, workspace: `${userSlug}/${workspaceSlug}` }
}

/**
 * Inserts documents, numbered from 1, and a delivery of each through the connection `archive`, in one statement.
 * @param destinations names of the destinations of each document
 * @returns a function that makes the id of a document from its number: ids are in the order of the numbers
 */
export const insertNumberedDocuments = async (
  db: Database,
  routes: Awaited<ReturnType<typeof createRoutes>>,
  count: number,
  { destinations = ['archive'], status = 'pending' }: { destinations?: string[]; status?: string } = {},
): Promise<(number: number) => string> => {
  const prefix = routes.workspaceId.slice(0, 18)
  await db.raw(
    `
    with document as (
      insert into documents (
        id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at, request_id)
      select
        :prefix || lpad(number::text, 8, '0'), :workspaceId, :repositoryId, 'Z1', 'DOC' || number, 'data', 'text/plain', 5, 'pending', now(),
        now(), 'REQUEST' || number
      from generate_series(1, :count::integer) as number
      returning id
    )
    insert into deliveries (document_id, destination_id, workspace_id, connection_id, status, path)
    select document.id, destination_id, :workspaceId, :connectionId, :status, 'Z1/' || document.id
    from document, unnest(:destinationIds::text[]) as destination_id
    `,
    {
      workspaceId: routes.workspaceId,
      repositoryId: routes.repositoryId,
      connectionId: routes.connections['archive']!,
      destinationIds: destinations.map((name) => routes.destinations[name]!),
      status,
      prefix,
      count,
    },
  )
  return (number) => `${prefix}${String(number).padStart(8, '0')}`
}

/** Inserts a captured request with a body, as of `moment`. @returns its id */
export const captureAt = async (db: Database, workspaceId: string, moment: Date): Promise<string> => {
  const id = ulid(moment.getTime())
  await db('captured_requests').insert({
    id,
    workspace_id: workspaceId,
    channel: 'receiver',
    http_method: 'GET',
    uri: '/',
    query_string: '',
    request_headers: '{}',
    source_ip: '127.0.0.1',
    request_at: moment,
    status_code: 200,
    response_headers: '{}',
    duration_ms: 1,
    response_at: moment,
  })
  await db('captured_bodies').insert({ request_id: id, kind: 'request', workspace_id: workspaceId, data: Buffer.from('x') })
  return id
}

/** The round of the attempts for which tests load a delivery. */
export const firstRound = { round: 'first' }
