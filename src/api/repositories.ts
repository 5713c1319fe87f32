import { z } from 'zod'
import { AppError } from '../base/errors.ts'
import { notFound } from '../base/refusals.ts'
import { demandLevel, type KeyLevel } from '../security/levels.ts'
import { actorOf } from '../workspace/authenticator.ts'
import type { Certificates } from '../workspace/certificates.ts'
import type { Repositories, Repository, SignedParameterOrder } from '../workspace/repositories.ts'
import { repositoryWarningCodes } from '../workspace/repository-warnings.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { dryRunAlternative, dryRunQuery, presentRemoval, removalHeaders, setRemovalHeader } from './removal.ts'
import { activity, idParams, name, one, resource, resourceOf, timestamp } from './schemas.ts'

const repoIdMaxCharacters = 64

const signatureVerification = z.boolean().describe('If true, requests of the source system without a valid signature are refused.')

const parameterOrder = z.enum(['fixed', 'any']).meta({ id: 'SignedParameterOrder' })
const signedParameterOrder = parameterOrder.describe(
  'The order of the signed parameters in a signed URL. `fixed`: contRep, docId, compId, docProt, scanPerformed, accessMode, authId, ' +
    'expiration, as far as a command has them; all known clients use it. `any`: for a client that uses another order; a signed URL is ' +
    'then easier to misuse.',
)

export const repositoryStatus = activity.describe('An inactive repository refuses all requests of the source system.')

export const newRepository = z.strictObject({
  repo_id: z
    .string()
    .max(repoIdMaxCharacters)
    .regex(/^[\x21-\x7e]+$/, 'must consist of printable ASCII characters without spaces')
    .describe('The repository identifier in the source system (`contRep`).'),
  name,
  signature_verification: signatureVerification.default(false),
  signed_parameter_order: signedParameterOrder.default('fixed'),
})

const warning = z
  .object({
    code: z
      .enum(repositoryWarningCodes)
      .meta({ id: 'RepositoryWarningCode' })
      .describe(
        '`open_to_all`: neither signatures nor source addresses are checked. `not_connected`: documents are discarded. ' +
          '`similar_name`: another repository, whose name begins alike, accepts signatures of the same signer.',
      ),
    message: z.string().describe('What the condition means, and how to end it.'),
  })
  .meta({ id: 'RepositoryWarning' })

const attributes = z.object({
  repo_id: z.string(),
  name: z.string(),
  status: activity,
  signature_verification: z.boolean(),
  signed_parameter_order: parameterOrder,
  document_count: z.int(),
  active_certificates: z.int().describe('The number of active certificates.'),
  last_request_at: timestamp
    .nullable()
    .describe('When the last request that names the repository arrived, refused ones included. Null if none is stored.'),
  warnings: z.array(warning).describe('Conditions that an operator should know. Empty for an inactive repository.'),
  created_at: timestamp,
  updated_at: timestamp,
})

const repository = resource('repository', attributes).meta({ id: 'Repository' })
const singleRepository = resource(
  'repository',
  attributes.extend({
    certificates: z.array(z.object({ id: z.string(), subject: z.string(), valid_from: timestamp, valid_to: timestamp, status: activity })),
    connections: z.array(z.object({ id: z.string(), destination_name: z.string(), status: activity })),
  }),
).meta({ id: 'SingleRepository' })

const present = resourceOf('repository')

type Versioned = Pick<Repository, 'name' | 'status' | 'signatureVerification' | 'signedParameterOrder'>
const versionOf = (current: Versioned) => [current.name, current.status, current.signatureVerification, current.signedParameterOrder]
const version = ({ data }: { data: { attributes: Versioned } }) => versionOf(data.attributes)

interface SignatureSettings {
  signatureVerification?: boolean | undefined
  signedParameterOrder?: SignedParameterOrder | undefined
}

/** Checks that the key may make the verification of signatures weaker, if a change does so. @throws `AppError` 403 */
const demandLevelToWeaken = (level: KeyLevel, current: SignatureSettings, change: SignatureSettings): void => {
  const switchesOff = current.signatureVerification === true && change.signatureVerification === false
  const allowsAnyOrder = current.signedParameterOrder === 'fixed' && change.signedParameterOrder === 'any'
  if (switchesOff || allowsAnyOrder) demandLevel(level, 'admin')
}

export interface RepositoryDeps extends LaunchDeps {
  repositories: Repositories
  certificates: Pick<Certificates, 'listAll'>
}

export const repositoryEndpoints = ({ repositories, certificates, launch, config }: RepositoryDeps): Endpoint[] => {
  return [
    endpoint({
      method: 'GET',
      path: '/repositories',
      level: 'viewer',
      summary: 'List repositories',
      description: 'Returns the repositories of the workspace in the order in which they were created.',
      query: pageQuery.extend({ status: activity.optional().describe('Only repositories with this status.') }),
      response: pageOfMany(repository),
      status: 200,
      handle: async ({ query }, { workspaceId }) => toPage(await repositories.list(workspaceId, query), query, present),
    }),

    endpoint({
      method: 'GET',
      path: '/repositories/:id',
      level: 'viewer',
      summary: 'Retrieve a repository',
      description: 'Returns the repository with its certificates and the connections that use it.',
      params: idParams,
      response: one(singleRepository),
      version,
      status: 200,
      handle: async ({ params }, { workspaceId }) => {
        const found = await repositories.find(workspaceId, params.id)
        if (!found) throw notFound()
        const [listed, connections] = await Promise.all([certificates.listAll(params.id), repositories.listConnections(params.id)])
        return { data: present({ ...found, certificates: listed, connections }) }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/repositories',
      level: 'member',
      audit: 'repository.created',
      summary: 'Create a repository',
      description:
        '`repo_id` must match the content repository in the source system and cannot be changed later. ' +
        '`signed_parameter_order: any` requires a key of level `admin`.',
      body: newRepository,
      response: one(repository),
      version,
      status: 201,
      conflict: 'The workspace already has a repository with this `repo_id`.',
      handle: async ({ body }, { workspaceId, actor }) => {
        demandLevelToWeaken(actor.level, { signedParameterOrder: 'fixed' }, body)
        const created = await repositories.insert(workspaceId, body, actorOf(actor))
        if (!created) throw new AppError('conflict', `This workspace already has a repository with repo_id ${body.repoId}.`)
        return { data: present(created) }
      },
    }),

    endpoint({
      method: 'PATCH',
      path: '/repositories/:id',
      level: 'member',
      audit: 'repository.updated',
      summary: 'Update a repository',
      description:
        'An inactive repository refuses all requests of the source system. Turning `signature_verification` off, or setting ' +
        '`signed_parameter_order` to `any`, requires a key of level `admin`.',
      params: idParams,
      body: z
        .strictObject({
          name,
          status: repositoryStatus,
          signature_verification: signatureVerification,
          signed_parameter_order: signedParameterOrder,
        })
        .partial(),
      response: one(repository),
      version,
      status: 200,
      checksVersion: true,
      handle: async ({ params, body }, { workspaceId, actor, checkVersion }) => {
        const check = (current: Repository) => {
          demandLevelToWeaken(actor.level, current, body)
          checkVersion(versionOf(current))
        }
        const updated = await repositories.update(workspaceId, params.id, body, actorOf(actor), check)
        if (!updated) throw notFound()
        return { data: present(updated) }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/repositories/:id',
      level: 'admin',
      audit: ['repository.deleted', 'cert.deleted', 'connection.deleted'],
      summary: 'Delete a repository',
      description:
        'Also deletes its certificates and its active connections, even if a connection has other repositories. ' +
        'Deliveries that these connections held are cancelled. Documents that were already received are kept.',
      params: idParams,
      query: dryRunQuery,
      response: 'none',
      status: 204,
      headers: removalHeaders,
      alternative: dryRunAlternative,
      checksVersion: true,
      handle: async ({ params, query }, { workspaceId, actor, setHeader, checkVersion }) => {
        if (query.dryRun) {
          const removal = await repositories.findRemoval(workspaceId, params.id)
          if (!removal) throw notFound()
          return presentRemoval(removal)
        }
        const check = (current: Repository) => checkVersion(versionOf(current))
        const deleted = await repositories.delete(workspaceId, params.id, actorOf(actor), config.DELIVERY_BATCH_SIZE, check)
        if (!deleted) throw notFound()
        launch(deleted.messages)
        return setRemovalHeader(deleted, setHeader)
      },
    }),
  ]
}
