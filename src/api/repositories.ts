import { z } from 'zod'
import type { Certificates } from '../access/certificates.ts'
import { docIdFormat } from '../content-server/parameters.ts'
import { actorOf } from '../db/audit.ts'
import { timestamp } from '../domain/date-range.ts'
import { upstreamFields } from '../domain/upstream.ts'
import type { DocumentMigrations } from '../migration/migrations.ts'
import { createUpstreams, type UpstreamsDeps } from '../migration/upstreams.ts'
import type { SendTestDocument } from '../receiver/test-document.ts'
import { repositoryConnection, repositoryKind, weakensSignatures, type Repositories, type Repository } from '../routing/repositories.ts'
import type { UpstreamDeps } from '../routing/repository-upstream.ts'
import { repositoryWarningCodes } from '../routing/repository-warnings.ts'
import { createTestUpstream } from '../routing/test-upstream.ts'
import { demandLevel } from '../security/levels.ts'
import type { KeyRing } from '../security/seal.ts'
import { activity, changedRepository, newRepository, parameterOrder, repositoryValues } from '../workspace/inputs.ts'
import { answered, changeOf, configuredEndpoints } from './configured.ts'
import { testResult } from './destination-tests.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { deletionEndpoint } from './removal.ts'
import { idParams, one, resource, warningOf } from './schemas.ts'

const warning = warningOf(
  'RepositoryWarning',
  repositoryWarningCodes,
  '`open_to_all`: neither signatures nor source addresses are checked. `not_connected`: documents are discarded. ' +
    '`no_active_certificate`: signatures are required, and no certificate is active, so every signed request is refused. ' +
    '`similar_name`: another repository, whose name begins alike, accepts signatures of the same signer. ' +
    '`upstream_failing`: the upstream has failed for 5 minutes, and documents that only it has, and new ones, are answered with 503. ' +
    '`requests_refused`: the latest 5 requests of the source system were all refused.',
  'What the condition means, and how to end it.',
)

const attributes = answered(repositoryValues).extend({
  status: activity,
  signed_parameter_order: parameterOrder,
  upstream: upstreamFields
    .meta({ id: 'Upstream' })
    .nullable()
    .describe(
      'The content server that the source system used before. Null if there is none. The private key is never returned, nor user and password of the proxy.',
    ),
  document_count: z.int(),
  active_certificates: z.int().describe('The number of active certificates.'),
  last_request_at: timestamp
    .nullable()
    .describe('When the last request that names the repository arrived, refused ones included. Null if none is stored.'),
  warnings: z.array(warning).describe('Conditions that an operator should know. Empty for an inactive repository.'),
  created_at: timestamp,
  updated_at: timestamp,
})

const repository = resource('Repository', 'repository', attributes)
const singleRepository = resource(
  'SingleRepository',
  'repository',
  attributes.extend({
    certificates: z.array(
      z
        .object({ id: z.string(), subject: z.string(), valid_from: timestamp, valid_to: timestamp, status: activity })
        .meta({ id: 'RepositoryCertificate' }),
    ),
    connections: z.array(repositoryConnection),
  }),
)

const testDocument = one(
  z
    .object({
      document_id: z.string().describe('The document.'),
      request_id: z.string().describe('The captured request that contains it.'),
    })
    .meta({ id: 'TestDocument' }),
)

interface RepositoryDeps extends LaunchDeps {
  repositories: Repositories
  certificates: Pick<Certificates, 'listAll'>
  sendTestDocument: SendTestDocument
  documentMigrations: Pick<DocumentMigrations, 'firstListed'>
  keyRing: KeyRing
  outbound: UpstreamsDeps['outbound'] & UpstreamDeps['outbound']
  installation: UpstreamsDeps['installation']
}

export const repositoryEndpoints = (deps: RepositoryDeps): Endpoint[] => {
  const { repositories, certificates, sendTestDocument, documentMigrations, keyRing, outbound, installation, launch, batchSize } = deps
  const testUpstream = createTestUpstream(createUpstreams({ outbound, keyRing, installation }), (id) => documentMigrations.firstListed(id))
  return [
    ...configuredEndpoints<Repository, typeof newRepository, ReturnType<typeof changeOf<typeof changedRepository.shape>>>(
      {
        type: 'repository',
        id: 'Repository',
        singular: 'a repository',
        path: '/repositories',
        descriptions: {
          list: 'Returns the repositories of the workspace in the order in which they were created.',
          retrieve: 'Returns the repository with its certificates and the connections that use it.',
          create:
            '`repo_id` must match the content repository in the source system and cannot be changed later. ' +
            'The value `any` of `signed_parameter_order` requires a key of level `admin`.',
          update:
            'An inactive repository refuses all requests of the source system. Turning `signature_verification` off, or setting ' +
            '`signed_parameter_order` to `any`, or `accepts_mcreate` from false to true, or changing the `upstream` of a repository that ' +
            'verifies signatures, requires a key of level `admin`.',
        },
        resource: repository,
        single: singleRepository,
        input: newRepository,
        change: changeOf(changedRepository),
        filter: { status: activity.optional().describe('Only repositories with this status.') },
        refusals: { conflict: 'The workspace already has a repository with this `repo_id`.' },
        permit: (actor, change, current) => {
          if (weakensSignatures(current ?? { signedParameterOrder: 'fixed' }, change)) demandLevel(actor, 'admin')
        },
        deletion: deletionEndpoint({
          path: '/repositories/:id',
          audit: ['repository.deleted', 'cert.deleted', 'connection.deleted', 'connection.updated'],
          summary: 'Delete a repository',
          description:
            'Also deletes its certificates and its active connections, even if a connection has other repositories. ' +
            'Deliveries that these connections held are cancelled. Documents that were already received are kept.',
          objects: repositories,
          versionOf: repositoryKind.versionOf,
          launch,
          batchSize,
        }),
      },
      {
        list: (workspaceId, page) => repositories.list(workspaceId, page),
        versionOf: repositoryKind.versionOf,
        find: async (workspaceId, id) => {
          const found = await repositories.find(workspaceId, id)
          const [listed, connections] = await Promise.all([certificates.listAll(id), repositories.listConnections(id)])
          return { ...found, certificates: listed, connections }
        },
        insert: (workspaceId, values, actor) => repositories.insert(workspaceId, values, actor, deps),
        update: (workspaceId, id, change, actor, check) => repositories.update(workspaceId, id, change, actor, deps, check),
      },
    ),

    endpoint({
      method: 'POST',
      path: '/repositories/:id/test-document',
      operation: 'sendTestDocument',
      level: 'member',
      audit: 'repository.test_document_sent',
      summary: 'Send a test document',
      description:
        'Stores a PDF of one page in the repository as if the source system had sent it, so that it is delivered to every destination. ' +
        'Neither signature nor source address are checked. The document stays until it is erased, like any other.',
      params: idParams,
      response: testDocument,
      isTest: true,
      status: 201,
      conflict: 'The repository is inactive, no connection leads from it to a destination, or the workspace stores as much as it may.',
      handle: async ({ params }, { workspaceId, actor }) => {
        const found = await repositories.find(workspaceId, params.id)
        return { data: await sendTestDocument(actor.workspace, found, actorOf(actor)) }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/repositories/:id/test-upstream',
      operation: 'testUpstream',
      level: 'member',
      summary: 'Test the upstream of a repository',
      description:
        'Asks the content server for the repository and, signed if a certificate is set, for a document that does not exist. Then it reads one ' +
        'that does: that of `doc_id`, else the first one of the list of the last migration. `message` says what was read, or that nothing was. ' +
        'Changes nothing, here or there.',
      params: idParams,
      query: z.object({
        doc_id: z
          .string()
          .regex(docIdFormat.pattern, `must be ${docIdFormat.expected}`)
          .optional()
          .describe('A document that the content server has.'),
      }),
      response: testResult,
      isTest: true,
      changesNothing: true,
      conflict: 'The repository has no upstream.',
      handle: async ({ params, query }, { workspaceId, signal }) => ({
        data: await testUpstream(workspaceId, await repositories.find(workspaceId, params.id), query.docId, signal),
      }),
    }),
  ]
}
