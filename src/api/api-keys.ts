import { z } from 'zod'
import { apiKeyFields, type ApiKeys } from '../access/api-keys.ts'
import { actorOf } from '../db/audit.ts'
import { timestamp } from '../domain/date-range.ts'
import { newKeyFields } from '../workspace/inputs.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { idParams, one, resource, resourceOf } from './schemas.ts'

const apiKey = resource('ApiKey', 'api_key', apiKeyFields)
const newKey = resource(
  'ApiKeyWithSecret',
  'api_key',
  apiKeyFields.extend({ key: z.string().describe('The key. Returned only in this response.') }),
)
const present = resourceOf('api_key')

export const apiKeyEndpoints = ({ apiKeys }: { apiKeys: Pick<ApiKeys, 'list' | 'create' | 'revoke'> }): Endpoint[] => {
  return [
    endpoint({
      method: 'GET',
      path: '/api-keys',
      level: 'admin',
      summary: 'List API keys',
      description: 'Returns the API keys that have not been revoked, newest first.',
      query: pageQuery,
      response: pageOfMany(apiKey),
      handle: async ({ query }, { workspaceId }) => toPage(await apiKeys.list(workspaceId, query), query, present),
    }),

    endpoint({
      method: 'POST',
      path: '/api-keys',
      level: 'admin',
      audit: 'apikey.created',
      summary: 'Create an API key',
      description: 'The response contains the key. No later response does.',
      body: newKeyFields
        .extend({
          expires_at: timestamp.nullable().default(null).describe('The time at which the key expires. Null means never.'),
          user_id: z.string().nullable().default(null).describe('The member to whom the key belongs. Audit log entries name this member.'),
        })
        .meta({ id: 'ApiKeyInput' }),
      response: one(newKey),
      status: 201,
      handle: async ({ body }, { workspaceId, actor }) => {
        return { data: present(await apiKeys.create({ ...body, workspaceId, memberId: body.userId }, actorOf(actor))) }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/api-keys/:id',
      level: 'admin',
      audit: 'apikey.revoked',
      summary: 'Revoke an API key',
      description: 'The key is refused from the next request on.',
      params: idParams,
      response: 'none',
      handle: ({ params }, { workspaceId, actor }) => apiKeys.revoke(params.id, actorOf(actor), workspaceId),
    }),
  ]
}
