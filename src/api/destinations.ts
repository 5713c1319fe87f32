import { z } from 'zod'
import type { Config } from '../config/config.ts'
import type { FindConnector } from '../connectors/connector.ts'
import { maskedConfig, maskedKeys } from '../connectors/target.ts'
import { actorOf } from '../db/audit.ts'
import { circuitStates } from '../domain/circuit.ts'
import { createConfigureDestinations } from '../routing/configure-destinations.ts'
import type { Destination } from '../routing/destinations.ts'
import type { KeyLevel } from '../security/levels.ts'
import { activity, connectorTypeName, name, openObject } from '../workspace/inputs.ts'
import { targetBody, targetChange, type DestinationTestDeps } from './destination-tests.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { deletionEndpoint } from './removal.ts'
import { idParams, one, resource, resourceOf, timestamp } from './schemas.ts'

const present = resourceOf('destination')

const destinationWarningCodes = ['leads_back'] as const

type SlotsConfig = Pick<Config, 'DELIVERY_MAX_CONCURRENT_PER_DESTINATION'>

interface DestinationWarning {
  code: (typeof destinationWarningCodes)[number]
  message: string
}

/** Creates a function that presents a destination to a caller: with warnings, and without what a viewer must not see. */
const createDestinationView = (deps: { findConnector: FindConnector; config: Pick<Config, 'RELAY_BASE_URL'> & SlotsConfig }) => {
  // The keys follow from the schema of the connector, whose conversion takes milliseconds.
  const keysByKind = new Map<string, string[]>()
  const keysOf = (kind: string): string[] => {
    const known = keysByKind.get(kind)
    if (known) return known
    const connector = deps.findConnector(kind)
    const keys = connector ? maskedKeys(connector.config) : []
    keysByKind.set(kind, keys)
    return keys
  }

  return <Row extends Destination>(row: Row, { level }: { level: KeyLevel }) =>
    present({
      ...row,
      config: level === 'viewer' ? maskedConfig(keysOf(row.connectorType), row.config) : row.config,
      slots: slotsOf(row.config, deps.config),
      warnings: warningsOf(row.config, deps.config.RELAY_BASE_URL),
    })
}

/** Returns how many deliveries may run at a time, as the statement in src/delivery/delivery-job.ts decides it. */
const slotsOf = (
  { max_concurrent_deliveries: own }: Record<string, unknown>,
  { DELIVERY_MAX_CONCURRENT_PER_DESTINATION: fallback }: SlotsConfig,
) => (typeof own === 'number' ? own : fallback)

/** Returns what an operator should know about a config that is valid. */
const warningsOf = (config: Record<string, unknown>, baseUrl: string | undefined): DestinationWarning[] => {
  const own = originOf(baseUrl)
  if (own === undefined) return []
  return Object.keys(config)
    .filter((key) => originOf(config[key]) === own)
    .map((key) => ({
      code: 'leads_back',
      message: `config.${key} leads back to this relay (RELAY_BASE_URL), which refuses documents that it has sent itself.`,
    }))
}

const originOf = (url: unknown): string | undefined => (typeof url === 'string' && URL.canParse(url) ? new URL(url).origin : undefined)

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
  credentials_expire_at: timestamp
    .nullable()
    .describe('When the credentials expire, if they contain a client certificate. The incident `certificate.expiring` announces it.'),
  sign_in: z
    .string()
    .nullable()
    .describe(
      'The way in which the credentials sign in, by its name in `x-sign-in` of their schema, such as `sas_token`. Null if the connector type has only one.',
    ),
  last_error: z
    .string()
    .nullable()
    .describe('The error of the last attempt that failed. Null once an attempt or a test has succeeded since.'),
  last_error_code: z.string().nullable().describe('The code of `last_error`.'),
  last_error_at: timestamp.nullable().describe('When `last_error` occurred.'),
  failed_attempts: z.int().describe('Attempts that have failed since the last success.'),
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

const connections = z.array(
  z
    .object({ id: z.string(), name: z.string(), source_repo_id: z.string(), source_name: z.string(), status: activity })
    .meta({ id: 'DestinationConnection' }),
)

const destination = resource('Destination', 'destination', attributes)
const singleDestination = resource('SingleDestination', 'destination', attributes.extend({ connections }))
type Versioned = Pick<Destination, 'name' | 'config'>
const versionOf = ({ name: displayName, config }: Versioned) => [displayName, config]
const version = ({ data }: { data: { attributes: Versioned } }) => versionOf(data.attributes)

export type DestinationDeps = DestinationTestDeps &
  LaunchDeps & {
    config: Pick<Config, 'RELAY_BASE_URL' | 'DELIVERY_MAX_CONCURRENT_PER_DESTINATION'>
  }

export const destinationEndpoints = (deps: DestinationDeps): Endpoint[] => {
  const { destinations } = deps
  const configure = createConfigureDestinations(deps)
  const view = createDestinationView(deps)

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
        const found = await destinations.find(workspaceId, params.id)
        return { data: view({ ...found, connections: await destinations.listConnections(params.id) }, actor) }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/destinations',
      level: 'member',
      audit: 'destination.created',
      summary: 'Create a destination',
      body: targetBody.extend({ name }).meta({ id: 'DestinationInput' }),
      response: one(destination),
      version,
      status: 201,
      handle: async ({ body }, { workspaceId, actor }) => ({ data: view(await configure.add(workspaceId, body, actorOf(actor)), actor) }),
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
      body: targetChange.extend({ name: name.optional() }).meta({ id: 'DestinationChange' }),
      response: one(destination),
      version,
      status: 200,
      checksVersion: true,
      handle: async ({ params: { id }, body }, { workspaceId, actor, checkVersion }) => {
        const check = (current: Destination) => checkVersion(versionOf(current))
        const changed = await configure.change(workspaceId, id, body, actorOf(actor), check)
        await deps.wakeNext(id)
        return { data: view(changed, actor) }
      },
    }),

    deletionEndpoint({
      path: '/destinations/:id',
      audit: ['destination.deleted', 'connection.deleted', 'connection.updated', 'notification.deleted'],
      summary: 'Delete a destination',
      description:
        'Also deletes every connection that uses the destination, even if the connection has other destinations, ' +
        'and every notification that is sent to it. ' +
        'Cancels the deliveries to the destination that have not succeeded. Erases its config and credentials.',
      objects: destinations,
      versionOf,
      launch: deps.launch,
      batchSize: deps.batchSize,
    }),
  ]
}
