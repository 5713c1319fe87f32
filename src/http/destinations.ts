import { z } from 'zod'
import { createDestinations, type Destination, type DestinationChange, type SealedDestination } from '../db/destinations.ts'
import type { Database } from '../db/database.ts'
import { connectorTypes } from '../domain/connector-type.ts'
import { newId } from '../ids.ts'
import { credentialsOf, SealError, type KeyRing } from '../security/seal.ts'
import { actorOf } from './actor.ts'
import { connectorPart } from './destination-schemas.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { notFound } from './faults.ts'
import type { LaunchDeps } from './launch.ts'
import { activity, idParams, name, one, openObject, pageOfMany, pageQuery, resource, resourceOf, timestamp, toPage } from './schemas.ts'
import { checkTarget, connectorOf, mergeConfig, testTarget, type FindConnector, type ProbeDeps, type TestResult } from './targets.ts'

const attributes = z.object({
  name: z.string(),
  connector_type: z.enum(connectorTypes),
  status: z.enum(['connected', 'failing']),
  config: openObject,
  last_error: z.string().nullable(),
  last_delivered_at: timestamp.nullable(),
  created_at: timestamp,
  updated_at: timestamp,
})

const connections = z.array(z.object({ id: z.string(), source_repo_id: z.string(), source_name: z.string(), status: activity }))

const destination = resource('destination', attributes).meta({ id: 'Destination' })
const singleDestination = resource('destination', attributes.extend({ connections })).meta({ id: 'SingleDestination' })
const testResult = one(z.object({ status: z.enum(['success', 'failed']), message: z.string() }))

const target = z.strictObject({
  // any string: an unknown one is well-formed, and answered 422
  connector_type: z.string().describe('What kind of target it is'),
  config: openObject.meta({ [connectorPart]: 'config' }).describe('Where it is; shown in answers'),
  credentials: openObject.meta({ [connectorPart]: 'credentials' }).describe('How to get in; in no answer'),
})

const present = resourceOf('destination')

export type DestinationDeps = ProbeDeps & LaunchDeps & { db: Database; keyRing: KeyRing; findConnector: FindConnector }

export const destinationEndpoints = (deps: DestinationDeps): Endpoint[] => {
  const { findConnector, keyRing } = deps
  const destinations = createDestinations(deps.db)

  const find = async (workspaceId: string, id: string): Promise<SealedDestination> => {
    const found = await destinations.find(workspaceId, id)
    if (!found) throw notFound()
    return found
  }

  return [
    endpoint({
      method: 'GET',
      path: '/destinations',
      level: 'viewer',
      summary: 'The destinations of the workspace, in order of creation',
      query: pageQuery.extend({ type: z.enum(connectorTypes).optional().describe('Of this connector type only') }),
      response: pageOfMany(destination),
      status: 200,
      handle: async ({ query }, { workspaceId }) => toPage(await destinations.list(workspaceId, query), query, present),
    }),

    endpoint({
      method: 'GET',
      path: '/destinations/:id',
      level: 'viewer',
      summary: 'One destination, with the connections that lead to it',
      params: idParams,
      response: one(singleDestination),
      status: 200,
      handle: async ({ params }, { workspaceId }) => {
        const found = await find(workspaceId, params.id)
        return { data: present({ ...found, connections: await destinations.listConnections(params.id) }) }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/destinations',
      level: 'member',
      audit: 'destination.created',
      summary: 'Creates a destination',
      body: target.extend({ name }),
      response: one(destination),
      status: 201,
      handle: async ({ body }, { workspaceId, actor }) => {
        const { config, credentials } = body
        const connector = connectorOf(findConnector, body.connectorType)
        checkTarget(connector, { config, credentials })
        const id = newId()
        const credentialsSealed = keyRing.seal(credentials, credentialsOf(workspaceId, id))
        const row = { id, name: body.name, connectorType: connector.kind, config, credentialsSealed }
        return { data: present(await destinations.insert(workspaceId, row, actorOf(actor))) }
      },
    }),

    endpoint({
      method: 'PATCH',
      path: '/destinations/:id',
      level: 'member',
      audit: 'destination.updated',
      summary: 'Changes a destination: config is merged (null removes a key), credentials are replaced',
      params: idParams,
      body: target.omit({ connector_type: true }).extend({ name }).partial(),
      response: one(destination),
      status: 200,
      handle: async ({ params: { id }, body }, { workspaceId, actor }) => {
        const { credentials } = body
        const change = (current: Destination): DestinationChange => {
          const config = body.config && mergeConfig(current.config, body.config)
          checkTarget(connectorOf(findConnector, current.connectorType), { config, credentials })
          const credentialsSealed = credentials && keyRing.seal(credentials, credentialsOf(workspaceId, id))
          return { name: body.name, config, credentialsSealed }
        }
        const updated = await destinations.update(workspaceId, id, change, actorOf(actor))
        if (!updated) throw notFound()
        return { data: present(updated) }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/destinations/:id',
      level: 'admin',
      audit: ['destination.deleted', 'connection.deleted'],
      summary:
        'Deletes a destination and the connections that use it, whatever else they link; what was not delivered there yet is cancelled',
      params: idParams,
      response: 'none',
      status: 204,
      handle: async ({ params }, { workspaceId, actor }) => {
        const messages = await destinations.remove(workspaceId, params.id, actorOf(actor), deps.config.DELIVERY_BATCH_SIZE)
        if (!messages) throw notFound()
        deps.launch(messages)
      },
    }),

    endpoint({
      method: 'POST',
      path: '/destinations/test',
      level: 'member',
      summary: 'Tries out a configuration before it is created; nothing is kept',
      body: target,
      response: testResult,
      status: 200,
      handle: async ({ body }, { signal }) => {
        const connector = connectorOf(findConnector, body.connectorType)
        checkTarget(connector, body)
        return { data: await testTarget(deps, connector, body, signal) }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/destinations/:id/test',
      level: 'member',
      summary: 'Tries out a destination as it is; a success makes it connected again',
      params: idParams,
      response: testResult,
      status: 200,
      handle: async ({ params: { id } }, { workspaceId, signal }) => {
        const { connectorType, config, credentialsSealed } = await find(workspaceId, id)
        const connector = connectorOf(findConnector, connectorType)
        try {
          const credentials = keyRing.open(credentialsSealed, credentialsOf(workspaceId, id))
          checkTarget(connector, { config, credentials })
          const result = await testTarget(deps, connector, { config, credentials }, signal)
          if (result.status === 'success') await destinations.markConnected(workspaceId, id)
          return { data: result }
        } catch (thrown) {
          if (!(thrown instanceof SealError)) throw thrown
          const data: TestResult = {
            status: 'failed',
            message: `The credentials cannot be opened: ${thrown.message}. Please save them again.`,
          }
          return { data }
        }
      },
    }),
  ]
}
