import { z } from 'zod'
import type { Config } from '../config.ts'
import { credentialsOwner } from '../connectors/bound-config.ts'
import { circuitStates } from '../domain/circuit.ts'
import { newId } from '../ids.ts'
import type { Destination, DestinationChange, Destinations, SealedDestination } from '../routing/destinations.ts'
import type { PinConfig } from '../routing/pin-config.ts'
import { SealError, type KeyRing } from '../security/seal.ts'
import { actorOf } from './actor.ts'
import { createDestinationView, destinationWarningCodes } from './destination-view.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { notFound } from './refusals.ts'
import { dryRunAlternative, dryRunQuery, presentRemoval, removalHeaders, setRemovalHeader } from './removal.ts'
import { activity, connectorPart, connectorTypeName, idParams, name, one, openObject, resource, timestamp } from './schemas.ts'
import { resealCredentials, storedCredentialsFor } from './stored-credentials.ts'
import {
  checkTarget,
  connectorOf,
  mergeConfig,
  requireEncryption,
  testTarget,
  type FindConnector,
  type OpenObject,
  type ProbeDeps,
  type TestResult,
} from './targets.ts'

const warning = z
  .object({
    code: z
      .enum(destinationWarningCodes)
      .meta({ id: 'DestinationWarningCode' })
      .describe('`leads_back`: an address of the config has the origin of this relay.'),
    message: z.string().describe('What the condition means, and how to end it.'),
  })
  .meta({ id: 'DestinationWarning' })

const attributes = z.object({
  name: z.string(),
  connector_type: connectorTypeName,
  status: z.enum(['connected', 'failing']).meta({ id: 'DestinationStatus' }),
  config: openObject.describe('Path, query and header values of a webhook are masked for viewers.'),
  warnings: z.array(warning).describe('Conditions that an operator should know.'),
  last_error: z.string().nullable(),
  last_delivered_at: timestamp.nullable(),
  circuit: z
    .enum(circuitStates)
    .meta({ id: 'CircuitState' })
    .describe('`open`: deliveries wait, because the last attempts failed. `half_open`: one delivery tries the target. `closed` otherwise.'),
  circuit_since: timestamp.nullable().describe('When `circuit` changed last.'),
  next_trial_at: timestamp.nullable().describe('When the next delivery may try the target, if `circuit` is `open`.'),
  slots: z
    .int()
    .describe(
      'Deliveries that may run at this destination at a time: `max_concurrent_deliveries` of the config, or the default of the installation.',
    ),
  slots_in_use: z.int().describe('Deliveries that run at this destination at present.'),
  created_at: timestamp,
  updated_at: timestamp,
})

const connections = z.array(z.object({ id: z.string(), source_repo_id: z.string(), source_name: z.string(), status: activity }))

const destination = resource('destination', attributes).meta({ id: 'Destination' })
const singleDestination = resource('destination', attributes.extend({ connections })).meta({ id: 'SingleDestination' })
const testStatus = z.enum(['success', 'failed']).meta({ id: 'TestStatus' })
const testResult = one(z.object({ status: testStatus, message: z.string() }).meta({ id: 'TestResult' }))

const target = z.strictObject({
  // Any string, so that an unknown type gets 422 and not 400.
  connector_type: z.string().describe('The connector type.'),
  config: openObject.meta({ [connectorPart]: 'config' }).describe('The connector-specific configuration. Returned in responses.'),
  credentials: openObject.meta({ [connectorPart]: 'credentials' }).describe('The connector-specific credentials. Never returned.'),
})

// Only the merged config has to match the schema of the connector.
const change = target.omit({ connector_type: true }).partial()

type Versioned = Pick<Destination, 'name' | 'config'>
const versionOf = ({ name: displayName, config }: Versioned) => [displayName, config]
const version = ({ data }: { data: { attributes: Versioned } }) => versionOf(data.attributes)

const undecryptable = (why = '') => `The stored credentials cannot be decrypted${why}. Save the credentials again.`

export type DestinationDeps = ProbeDeps &
  LaunchDeps & {
    destinations: Destinations
    keyRing: KeyRing
    findConnector: FindConnector
    pinConfig: PinConfig
    config: Pick<Config, 'RELAY_BASE_URL' | 'DELIVERY_MAX_CONCURRENT_PER_DESTINATION'>
  }

export const destinationEndpoints = (deps: DestinationDeps): Endpoint[] => {
  const { destinations, findConnector, keyRing } = deps
  const view = createDestinationView(deps)

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
      summary: 'List destinations',
      description: 'Returns the destinations of the workspace in the order in which they were created.',
      query: pageQuery.extend({ type: connectorTypeName.optional().describe('Only destinations of this connector type.') }),
      response: pageOfMany(destination),
      status: 200,
      handle: async ({ query }, { workspaceId, actor }) =>
        toPage(await destinations.list(workspaceId, query), query, (row) => view(row, actor)),
    }),

    endpoint({
      method: 'GET',
      path: '/destinations/:id',
      level: 'viewer',
      summary: 'Retrieve a destination',
      description: 'Returns the destination with the connections that use it.',
      params: idParams,
      response: one(singleDestination),
      version,
      status: 200,
      handle: async ({ params }, { workspaceId, actor }) => {
        const found = await find(workspaceId, params.id)
        return { data: view({ ...found, connections: await destinations.listConnections(params.id) }, actor) }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/destinations',
      level: 'member',
      audit: 'destination.created',
      summary: 'Create a destination',
      body: target.extend({ name }),
      response: one(destination),
      version,
      status: 201,
      handle: async ({ body }, { workspaceId, actor }) => {
        const { config, credentials } = body
        const connector = connectorOf(findConnector, body.connectorType)
        checkTarget(connector, { config, credentials })
        await requireEncryption(deps, connector, body)
        const id = newId()
        const credentialsSealed = keyRing.seal(credentials, credentialsOwner(connector, { workspaceId, id, config }))
        const row = { id, name: body.name, connectorType: connector.kind, config, credentialsSealed }
        return { data: view(await destinations.insert(workspaceId, row, actorOf(actor)), actor) }
      },
    }),

    endpoint({
      method: 'PATCH',
      path: '/destinations/:id',
      level: 'member',
      audit: 'destination.updated',
      summary: 'Update a destination',
      description:
        '`config` is merged into the current config; null removes a key. `credentials` replace the current credentials. They are required ' +
        'if the request changes where stored credentials are sent, for example `host` or `url`; ' +
        'the page of each connector lists these keys.',
      params: idParams,
      body: change.extend({ name: name.optional() }),
      response: one(destination),
      version,
      status: 200,
      checksVersion: true,
      handle: async ({ params: { id }, body }, { workspaceId, actor, checkVersion }) => {
        const { credentials } = body
        // Before the row is locked, because it resolves a host name.
        if (credentials) {
          const current = await find(workspaceId, id)
          const config = mergeConfig(current.config, body.config ?? {})
          await requireEncryption(deps, connectorOf(findConnector, current.connectorType), { config, credentials })
        }
        const changeOf = (current: SealedDestination): DestinationChange => {
          checkVersion(versionOf(current))
          const connector = connectorOf(findConnector, current.connectorType)
          const config = body.config && mergeConfig(current.config, body.config)
          checkTarget(connector, { config, credentials })
          return {
            name: body.name,
            config,
            credentials: resealCredentials(keyRing, connector, { ...current, workspaceId }, { config, credentials }),
          }
        }
        const updated = await destinations.update(workspaceId, id, changeOf, actorOf(actor))
        if (!updated) throw notFound()
        deps.launch(updated.messages)
        return { data: view(updated.destination, actor) }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/destinations/:id',
      level: 'admin',
      audit: ['destination.deleted', 'connection.deleted', 'notification.deleted'],
      summary: 'Delete a destination',
      description:
        'Also deletes every connection that uses the destination, even if the connection has other destinations, ' +
        'and every notification that is sent to it. ' +
        'Cancels the deliveries to the destination that have not succeeded. Erases its config and credentials.',
      params: idParams,
      query: dryRunQuery,
      response: 'none',
      status: 204,
      headers: removalHeaders,
      alternative: dryRunAlternative,
      checksVersion: true,
      handle: async ({ params, query }, { workspaceId, actor, setHeader, checkVersion }) => {
        if (query.dryRun) {
          const removal = await destinations.findRemoval(workspaceId, params.id)
          if (!removal) throw notFound()
          return presentRemoval(removal)
        }
        const check = (current: Destination) => checkVersion(versionOf(current))
        const deleted = await destinations.delete(workspaceId, params.id, actorOf(actor), deps.config.DELIVERY_BATCH_SIZE, check)
        if (!deleted) throw notFound()
        deps.launch(deleted.messages)
        return setRemovalHeader(deleted, setHeader)
      },
    }),

    endpoint({
      method: 'POST',
      path: '/destinations/test',
      level: 'member',
      summary: 'Test a destination before creating it',
      description: 'Checks that the relay can authenticate to the target and write to it; `message` says what was tried. Stores nothing.',
      body: target,
      response: testResult,
      status: 200,
      handle: async ({ body }, { signal }) => {
        const connector = connectorOf(findConnector, body.connectorType)
        checkTarget(connector, body)
        await requireEncryption(deps, connector, body)
        return { data: await testTarget(deps, connector, body, signal) }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/destinations/:id/test',
      level: 'member',
      summary: 'Test a destination',
      description:
        'Checks that the relay can authenticate to the target and write to it; `message` says what was tried. A success sets the status to ' +
        '`connected`, and pins the host key of an SFTP server whose destination has none.',
      params: idParams,
      response: testResult,
      status: 200,
      handle: async ({ params: { id } }, { workspaceId, signal }) => {
        const { connectorType, config, credentialsSealed } = await find(workspaceId, id)
        const connector = connectorOf(findConnector, connectorType)
        try {
          const credentials = keyRing.open(credentialsSealed, credentialsOwner(connector, { workspaceId, id, config }))
          checkTarget(connector, { config, credentials })
          const result = await testTarget(deps, connector, { config, credentials }, signal)
          if (result.status === 'success') deps.launch(await destinations.markConnected(workspaceId, id))
          const { pinned = {} } = result
          if (Object.keys(pinned).length > 0) {
            await deps.pinConfig({ workspaceId, id, connector: connectorType, config, credentialsSealed }, pinned)
          }
          return { data: result }
        } catch (thrown) {
          if (!(thrown instanceof SealError)) throw thrown
          const data: TestResult = {
            status: 'failed',
            message: undecryptable(`: ${thrown.message}`),
          }
          return { data }
        }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/destinations/:id/test-change',
      level: 'member',
      summary: 'Test a change of a destination before saving it',
      description:
        'Takes what an update takes, and tests the destination as the update would leave it. Without `credentials`, the test uses the stored ' +
        'ones. They are required if the change alters where stored credentials are sent. Stores nothing.',
      params: idParams,
      body: change,
      response: testResult,
      status: 200,
      handle: async ({ params: { id }, body }, { workspaceId, signal }) => {
        const current = await find(workspaceId, id)
        const connector = connectorOf(findConnector, current.connectorType)
        const config = mergeConfig(current.config, body.config ?? {})
        checkTarget(connector, { config, credentials: body.credentials })
        const credentials = body.credentials ?? storedCredentialsFor(keyRing, connector, { ...current, workspaceId }, config)
        if (credentials === undefined) return { data: { status: 'failed' as const, message: undecryptable() } }
        const changed = { config, credentials: credentials as OpenObject }
        checkTarget(connector, changed)
        await requireEncryption(deps, connector, changed)
        return { data: await testTarget(deps, connector, changed, signal) }
      },
    }),
  ]
}
