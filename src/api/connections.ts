import { z } from 'zod'
import { actorOf } from '../db/audit.ts'
import { deliveriesPerBatch } from '../delivery/release.ts'
import { timestamp } from '../domain/date-range.ts'
import { filterConditions } from '../domain/fan-out.ts'
import { flag } from '../http/filters.ts'
import { connectionKind, heldMaxCount, type Connection, type Connections } from '../routing/connections.ts'
import { previewMaxDocuments } from '../routing/preview.ts'
import { connectorTypeName, newConnection, openObject, previewedConnection, settingsNames } from '../workspace/inputs.ts'
import { answered, changeOf } from './configured.ts'
import { metadata } from './document-resource.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { allOrPageOf, optionalPageQuery, pageOrAll } from './pagination.ts'
import { idParams, one } from './schemas.ts'

const connection = z
  .object({
    id: z.string(),
    ...answered(newConnection.omit({ repository_ids: true, destination_ids: true, settings: true })).shape,
    repositories: z.array(z.object({ id: z.string(), repo_id: z.string(), description: z.string() }).meta({ id: 'ConnectionRepository' })),
    destinations: z.array(z.object({ id: z.string(), type: connectorTypeName, name: z.string() }).meta({ id: 'ConnectionDestination' })),
    settings: openObject.meta(settingsNames),
    held_deliveries: z.int().describe(`Deliveries that the connection holds, counted up to ${heldMaxCount}.`),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Connection' })

const previewedDocument = z
  .object({
    document_id: z.string(),
    doc_id: z.string(),
    repo_id: z.string(),
    repository_name: z.string(),
    comp_id: z.string(),
    content_type: z.string(),
    size_bytes: z.int(),
    received_at: timestamp,
    metadata,
    path: z
      .string()
      .nullable()
      .describe('The path at each destination, below its folder or prefix. Null if the filter passes the document over.'),
    unmet_condition: z
      .enum(filterConditions)
      .meta({ id: 'FilterCondition' })
      .nullable()
      .describe('The first condition of the filter that the document does not meet. Null if it meets all.'),
  })
  .meta({ id: 'PreviewedDocument' })
const connectionPreview = z.object({ documents: z.array(previewedDocument) }).meta({ id: 'ConnectionPreview' })

const version = ({ data }: { data: Connection }) => connectionKind.versionOf(data)

type ConnectionDeps = LaunchDeps & { connections: Connections }

export const connectionEndpoints = ({ connections, launch, batchSize = deliveriesPerBatch }: ConnectionDeps): Endpoint[] => {
  return [
    endpoint({
      method: 'GET',
      path: '/connections',
      level: 'viewer',
      summary: 'List connections',
      description:
        'Returns the connections of the workspace in the order in which they were created: all of them, ' +
        'or one page with `meta` if the query has `page` or `per_page`.',
      query: optionalPageQuery.extend({
        is_active: flag.optional().describe('Only active connections (`true`) or only inactive ones (`false`).'),
      }),
      response: allOrPageOf(connection),
      handle: async ({ query }, { workspaceId }) => {
        const page = pageOrAll(query)
        const { items: data, total } = await connections.list(workspaceId, query.isActive ?? null, page)
        return page && total !== undefined ? { data, meta: { currentPage: page.page, perPage: page.perPage, total } } : { data }
      },
    }),

    endpoint({
      method: 'GET',
      path: '/connections/:id',
      level: 'viewer',
      summary: 'Retrieve a connection',
      description: 'Returns the connection with its repositories and destinations.',
      params: idParams,
      response: one(connection),
      version,
      handle: async ({ params }, { workspaceId }) => {
        return { data: await connections.find(workspaceId, params.id) }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/connections',
      level: 'member',
      audit: 'connection.created',
      summary: 'Create a connection',
      description: 'Documents that arrive at one of the repositories are delivered to all of the destinations.',
      body: newConnection.meta({ id: 'ConnectionInput' }),
      response: one(connection),
      version,
      status: 201,
      handle: async ({ body }, { workspaceId, actor }) => {
        return { data: await connections.insert(workspaceId, body, actorOf(actor)) }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/connections/preview',
      operation: 'previewConnection',
      level: 'viewer',
      summary: 'Preview the settings of a connection',
      description:
        `Returns the newest documents of the repositories, at most ${previewMaxDocuments}, and what a connection with these settings would do ` +
        'with each: the path that it would get at a destination, or the condition of the filter that passes it over. Changes nothing.',
      body: previewedConnection.meta({ id: 'ConnectionPreviewInput' }),
      response: one(connectionPreview),
      changesNothing: true,
      handle: async ({ body }, { workspaceId }) => {
        return { data: { documents: await connections.preview(workspaceId, body.repositoryIds, body.settings) } }
      },
    }),

    endpoint({
      method: 'PATCH',
      path: '/connections/:id',
      level: 'member',
      audit: ['connection.updated', 'connection.toggled'],
      summary: 'Update a connection',
      description:
        '`repository_ids`, `destination_ids` and `settings` replace the current value as a whole. ' +
        'Activating a connection releases the deliveries that it held, with a new retry budget. Deactivating it also holds what is ' +
        'being retried, from the next attempt on. What it held for a destination that `destination_ids` no longer contains is cancelled.',
      params: idParams,
      body: changeOf(newConnection).meta({ id: 'ConnectionChange' }),
      response: one(connection)
        .extend({
          meta: z
            .object({ cancelled_deliveries: z.int().describe('Held deliveries that are cancelled because their destination was removed.') })
            .meta({ id: 'UpdatedConnectionMeta' })
            .optional()
            .describe('Present if deliveries are cancelled.'),
        })
        .meta({ id: 'UpdatedConnectionResponse' }),
      version,
      checksVersion: true,
      handle: async ({ params, body }, { workspaceId, actor, checkVersion }) => {
        const check = (current: Connection) => checkVersion(connectionKind.versionOf(current))
        const updated = await connections.update(workspaceId, params.id, body, actorOf(actor), batchSize, check)
        const { connection: data, cancelledDeliveries, messages } = updated
        launch(messages)
        return { data, ...(cancelledDeliveries > 0 && { meta: { cancelledDeliveries } }) }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/connections/:id',
      level: 'admin',
      audit: 'connection.deleted',
      summary: 'Delete a connection',
      description: 'Cancels the deliveries that the connection held. Deliveries that have already started continue.',
      params: idParams,
      response: z.object({ message: z.string() }).meta({ id: 'DeletedConnection' }),
      checksVersion: true,
      handle: async ({ params }, { workspaceId, actor, checkVersion }) => {
        const check = (current: Connection) => checkVersion(connectionKind.versionOf(current))
        const messages = await connections.delete(workspaceId, params.id, actorOf(actor), batchSize, check)
        launch(messages)
        return { message: 'The connection was deleted.' }
      },
    }),
  ]
}
