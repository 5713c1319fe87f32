import { z } from 'zod'
import { createCertificates } from '../db/certificates.ts'
import type { Database } from '../db/database.ts'
import { createRepositories } from '../db/repositories.ts'
import { AppError } from '../errors.ts'
import { actorOf } from './actor.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { notFound } from './faults.ts'
import { activity, idParams, name, one, pageOfMany, pageQuery, resource, resourceOf, timestamp, toPage } from './schemas.ts'

const repoIdMaxCharacters = 64

const signatureVerification = z.boolean().describe('Whether requests of the source system must be signed')

const attributes = z.object({
  repo_id: z.string(),
  name: z.string(),
  status: activity,
  signature_verification: z.boolean(),
  document_count: z.int(),
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

export const repositoryEndpoints = ({ db }: { db: Database }): Endpoint[] => {
  const repositories = createRepositories(db)
  const certificates = createCertificates(db)
  return [
    endpoint({
      method: 'GET',
      path: '/repositories',
      level: 'viewer',
      summary: 'The repositories of the workspace, in order of creation',
      query: pageQuery.extend({ status: activity.optional().describe('Active ones or inactive ones only') }),
      response: pageOfMany(repository),
      status: 200,
      handle: async ({ query }, { workspaceId }) => toPage(await repositories.list(workspaceId, query), query, present),
    }),

    endpoint({
      method: 'GET',
      path: '/repositories/:id',
      level: 'viewer',
      summary: 'One repository, with its certificates and the connections that start from it',
      params: idParams,
      response: one(singleRepository),
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
      summary: 'Creates a repository; repo_id is what the source system calls it, and cannot be changed later',
      body: z.strictObject({
        repo_id: z
          .string()
          .max(repoIdMaxCharacters)
          .regex(/^[\x21-\x7e]+$/, 'must be one word of printable ASCII characters')
          .describe('What the source system calls it: `contRep` in its requests'),
        name,
        signature_verification: signatureVerification.default(false),
      }),
      response: one(repository),
      status: 201,
      conflict: 'The workspace has a repository with this repo_id already',
      handle: async ({ body }, { workspaceId, actor }) => {
        const created = await repositories.insert(workspaceId, body, actorOf(actor))
        if (!created) throw new AppError('conflict', `This workspace has a repository with repo_id ${body.repoId} already.`)
        return { data: present(created) }
      },
    }),

    endpoint({
      method: 'PATCH',
      path: '/repositories/:id',
      level: 'member',
      audit: 'repository.updated',
      summary: 'Changes a repository; an inactive one refuses documents',
      params: idParams,
      body: z
        .strictObject({
          name,
          status: activity.describe('An inactive one refuses documents'),
          signature_verification: signatureVerification,
        })
        .partial(),
      response: one(repository),
      status: 200,
      handle: async ({ params, body }, { workspaceId, actor }) => {
        const updated = await repositories.update(workspaceId, params.id, body, actorOf(actor))
        if (!updated) throw notFound()
        return { data: present(updated) }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/repositories/:id',
      level: 'admin',
      audit: ['repository.deleted', 'cert.deleted', 'connection.deleted'],
      summary:
        'Deletes a repository, its certificates and its active connections, whatever else they link; documents already received stay',
      params: idParams,
      response: 'none',
      status: 204,
      handle: async ({ params }, { workspaceId, actor }) => {
        if (!(await repositories.remove(workspaceId, params.id, actorOf(actor)))) throw notFound()
      },
    }),
  ]
}
