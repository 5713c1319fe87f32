import { z } from 'zod'
import type { Config } from '../config/config.ts'
import type { FindConnector } from '../connectors/connector.ts'
import { maskedConfig, maskedKeys } from '../connectors/target.ts'
import { timestamp } from '../domain/date-range.ts'
import { createConfigureDestinations } from '../routing/configure-destinations.ts'
import { destinationConnection, destinationKind, destinationState, type Destination } from '../routing/destinations.ts'
import type { KeyLevel } from '../security/levels.ts'
import { connectorTypeName, name, openObject } from '../workspace/inputs.ts'
import { configuredEndpoints } from './configured.ts'
import { targetBody, targetChange, type DestinationTestDeps } from './destination-tests.ts'
import type { Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { deletionEndpoint } from './removal.ts'
import { resource, warningOf } from './schemas.ts'

const destinationWarningCodes = ['leads_back'] as const

type SlotsConfig = Pick<Config, 'DELIVERY_MAX_CONCURRENT_PER_DESTINATION'>

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

  return (row: Destination, { level }: { level: KeyLevel }) => ({
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
const warningsOf = (config: Record<string, unknown>, baseUrl: string | undefined): z.output<typeof warning>[] => {
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

const warning = warningOf(
  'DestinationWarning',
  destinationWarningCodes,
  '`leads_back`: an address of the config has the origin of this relay.',
  'What the condition means, and how to end it.',
)

const attributes = z.object({
  name: z.string(),
  connector_type: connectorTypeName,
  status: z.enum(['connected', 'failing']).meta({ id: 'DestinationStatus' }),
  config: openObject.describe('Path, query and header values of a webhook are masked for viewers.'),
  warnings: z.array(warning).describe('Conditions that an operator should know.'),
  ...destinationState.shape,
  created_at: timestamp,
  updated_at: timestamp,
})

const destination = resource('Destination', 'destination', attributes)
const singleDestination = resource('SingleDestination', 'destination', attributes.extend({ connections: z.array(destinationConnection) }))
type DestinationDeps = DestinationTestDeps &
  LaunchDeps & {
    config: Pick<Config, 'RELAY_BASE_URL' | 'DELIVERY_MAX_CONCURRENT_PER_DESTINATION'>
  }

export const destinationEndpoints = (deps: DestinationDeps): Endpoint[] => {
  const { destinations } = deps
  const configure = createConfigureDestinations(deps)

  return configuredEndpoints(
    {
      type: 'destination',
      id: 'Destination',
      singular: 'a destination',
      path: '/destinations',
      descriptions: {
        list: 'Returns the destinations of the workspace in the order in which they were created.',
        retrieve: 'Returns the destination with the connections that use it.',
        update:
          '`config` is merged into the current config; null removes a key. `credentials` replace the current credentials. They are required ' +
          'if the request changes where stored credentials are sent, for example `host` or `url`; ' +
          'the page of each connector lists these keys.',
      },
      resource: destination,
      single: singleDestination,
      input: targetBody.extend({ name }),
      change: targetChange.extend({ name: name.optional() }),
      filter: { type: connectorTypeName.optional().describe('Only destinations of this connector type.') },
      deletion: deletionEndpoint({
        path: '/destinations/:id',
        audit: ['destination.deleted', 'connection.deleted', 'connection.updated', 'notification.deleted'],
        summary: 'Delete a destination',
        description:
          'Also deletes every connection that uses the destination, even if the connection has other destinations, ' +
          'and every notification that is sent to it. ' +
          'Cancels the deliveries to the destination that have not succeeded. Erases its config and credentials.',
        conflict: 'The destination is the home of a repository, or alone has the contents of documents.',
        objects: destinations,
        versionOf: destinationKind.versionOf,
        launch: deps.launch,
        batchSize: deps.batchSize,
      }),
      shown: createDestinationView(deps),
    },
    {
      list: (workspaceId, page) => destinations.list(workspaceId, page),
      find: async (workspaceId, id) => {
        const found = await destinations.find(workspaceId, id)
        return { ...found, connections: await destinations.listConnections(id) }
      },
      versionOf: destinationKind.versionOf,
      insert: configure.add,
      update: async (workspaceId, id, change, actor, check) => {
        const changed = await configure.change(workspaceId, id, change, actor, check)
        await deps.wakeNext(id)
        return changed
      },
    },
  )
}
