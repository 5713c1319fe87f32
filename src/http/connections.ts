import { z } from 'zod'
import { createConnections, type UnknownIds } from '../db/connections.ts'
import type { Database } from '../db/database.ts'
import { connectionSettingsFields } from '../domain/connection-settings.ts'
import { connectorTypes } from '../domain/connector-type.ts'
import { actorOf } from './actor.ts'
import type { LaunchDeps } from './launch.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { detailsOf, notFound, validationFailed } from './faults.ts'
import { idParams, name, one, openObject, timestamp } from './schemas.ts'

const idsMax = 1_000

const connection = z
  .object({
    id: z.string(),
    name: z.string(),
    is_active: z.boolean(),
    repositories: z.array(z.object({ id: z.string(), repo_id: z.string(), description: z.string() })),
    destinations: z.array(z.object({ id: z.string(), type: z.enum(connectorTypes), name: z.string() })),
    settings: openObject,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Connection' })

const ids = (what: string) => z.array(z.string()).min(1).max(idsMax).describe(`${what}: the whole set of their ids`)
const links = {
  name,
  repository_ids: ids('Where documents come from'),
  destination_ids: ids('Where they go'),
}
const isActive = z.boolean().describe('An inactive one holds what arrives')
// an open object here: what does not fit in it is well-formed but wrong, and answered 422
const settings = openObject.describe('on_resume, path_template, filter')

const checkSettings = (value: unknown) => {
  const parsed = connectionSettingsFields.safeParse(value)
  if (!parsed.success) throw validationFailed(detailsOf(parsed.error.issues, ['settings']))
}

type Links = { repositoryIds?: string[] | undefined; destinationIds?: string[] | undefined }

const faultsOf = (field: string, asked: string[], unknown: string[], noun: string) =>
  unknown.map((id) => ({ path: `${field}.${asked.indexOf(id)}`, message: `there is no such ${noun} in this workspace` }))

/** The result, unless ids of the request were unknown. @throws AppError 422 that names each of them */
const orRefuse = <Result extends object>(result: Result | UnknownIds, { repositoryIds = [], destinationIds = [] }: Links): Result => {
  if (!('unknownRepositoryIds' in result)) return result
  throw validationFailed([
    ...faultsOf('repository_ids', repositoryIds, result.unknownRepositoryIds, 'repository'),
    ...faultsOf('destination_ids', destinationIds, result.unknownDestinationIds, 'destination'),
  ])
}

export const connectionEndpoints = ({ db, launch, config }: LaunchDeps & { db: Database }): Endpoint[] => {
  const connections = createConnections(db)
  return [
    endpoint({
      method: 'GET',
      path: '/connections',
      level: 'viewer',
      summary: 'The connections of the workspace, in order of creation',
      query: z.strictObject({
        is_active: z
          .enum(['true', 'false'])
          .transform((value) => value === 'true')
          .optional()
          .describe('Active ones or inactive ones only'),
      }),
      response: z.object({ data: z.array(connection) }),
      status: 200,
      handle: async ({ query }, { workspaceId }) => ({ data: await connections.list(workspaceId, query.isActive ?? null) }),
    }),

    endpoint({
      method: 'GET',
      path: '/connections/:id',
      level: 'viewer',
      summary: 'One connection, with the repositories and destinations it links',
      params: idParams,
      response: one(connection),
      status: 200,
      handle: async ({ params }, { workspaceId }) => {
        const found = await connections.find(workspaceId, params.id)
        if (!found) throw notFound()
        return { data: found }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/connections',
      level: 'member',
      audit: 'connection.created',
      summary: 'Links repositories to destinations',
      body: z.strictObject({
        ...links,
        is_active: isActive.default(true),
        settings: settings.default({}),
      }),
      response: one(connection),
      status: 201,
      handle: async ({ body }, { workspaceId, actor }) => {
        checkSettings(body.settings)
        return { data: orRefuse(await connections.insert(workspaceId, body, actorOf(actor)), body) }
      },
    }),

    endpoint({
      method: 'PATCH',
      path: '/connections/:id',
      level: 'member',
      audit: 'connection.toggled',
      summary: 'Changes a connection: a given set of ids, and given settings, replace the whole; activating it releases what it held',
      params: idParams,
      body: z.strictObject({ ...links, is_active: isActive, settings }).partial(),
      response: one(connection),
      status: 200,
      handle: async ({ params, body }, { workspaceId, actor }) => {
        if (body.settings) checkSettings(body.settings)
        const updated = await connections.update(workspaceId, params.id, body, actorOf(actor))
        if (!updated) throw notFound()
        const { connection: data, messages } = orRefuse(updated, body)
        launch(messages)
        return { data }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/connections/:id',
      level: 'admin',
      audit: 'connection.deleted',
      summary: 'Deletes a connection; what it held is cancelled, what it has forwarded goes on',
      params: idParams,
      response: z.object({ message: z.string() }),
      status: 200,
      handle: async ({ params }, { workspaceId, actor }) => {
        const messages = await connections.remove(workspaceId, params.id, actorOf(actor), config.DELIVERY_BATCH_SIZE)
        if (!messages) throw notFound()
        launch(messages)
        return { message: 'The connection is deleted.' }
      },
    }),
  ]
}
