import { z } from 'zod'
import { createApiKeys } from '../db/api-keys.ts'
import type { Database } from '../db/database.ts'
import { createWorkspaces } from '../db/workspaces.ts'
import { newApiKey } from '../security/api-keys.ts'
import { keyLevels } from '../security/levels.ts'
import { actorOf } from './actor.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { notFound, validationFailed } from './faults.ts'
import { idParams, name, one, pageOfMany, pageQuery, resource, resourceOf, timestamp, toPage } from './schemas.ts'

const attributes = z.object({
  name: z.string(),
  level: z.enum(keyLevels),
  user_id: z.string().nullable(),
  expires_at: timestamp.nullable(),
  last_used_at: timestamp.nullable(),
  created_at: timestamp,
})

const apiKey = resource('api_key', attributes).meta({ id: 'ApiKey' })
const newKey = resource('api_key', attributes.extend({ key: z.string().describe('Shown this once') })).meta({ id: 'NewApiKey' })
const present = resourceOf('api_key')

export const apiKeyEndpoints = ({ db }: { db: Database }): Endpoint[] => {
  const keys = createApiKeys(db)
  const workspaces = createWorkspaces(db)
  return [
    endpoint({
      method: 'GET',
      path: '/api-keys',
      level: 'admin',
      summary: 'The API keys that have not been revoked, newest first',
      query: pageQuery,
      response: pageOfMany(apiKey),
      status: 200,
      handle: async ({ query }, { workspaceId }) => toPage(await keys.list(workspaceId, query), query, present),
    }),

    endpoint({
      method: 'POST',
      path: '/api-keys',
      level: 'admin',
      audit: 'apikey.created',
      summary: 'Creates an API key; the answer shows it, this once',
      body: z.strictObject({
        name,
        level: z.enum(keyLevels).describe('What it may do'),
        expires_at: timestamp.nullable().default(null).describe('From then on it is refused; null: never'),
        user_id: z.string().nullable().default(null).describe('The member it belongs to, whom the audit log then names'),
      }),
      response: one(newKey),
      status: 201,
      handle: async ({ body }, { workspaceId, actor }) => {
        const { name: keyName, level, expiresAt, userId } = body
        if (expiresAt && expiresAt.getTime() <= Date.now()) throw validationFailed([{ path: 'expires_at', message: 'must lie ahead' }])
        if (userId !== null && !(await workspaces.hasMember(workspaceId, userId))) {
          throw validationFailed([{ path: 'user_id', message: 'there is no such member in this workspace' }])
        }
        const { id, key, secretSha256 } = newApiKey()
        const newRow = { id, workspaceId, memberId: userId, name: keyName, level, secretSha256, expiresAt }
        const row = await keys.insert(newRow, actorOf(actor))
        return { data: present({ ...row, key }) }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/api-keys/:id',
      level: 'admin',
      audit: 'apikey.revoked',
      summary: 'Revokes an API key, from the next request on',
      params: idParams,
      response: 'none',
      status: 204,
      handle: async ({ params }, { workspaceId, actor }) => {
        if (!(await keys.revoke(params.id, actorOf(actor), workspaceId))) throw notFound()
      },
    }),
  ]
}
