import type { Config } from '../config/config.ts'
import type { FindConnector } from '../connectors/connector.ts'
import { maskedConfig, maskedKeys } from '../connectors/target.ts'
import type { KeyLevel } from '../security/levels.ts'
import type { Destination } from '../workspace/destinations.ts'
import { resourceOf } from './schemas.ts'

const present = resourceOf('destination')

export const destinationWarningCodes = ['leads_back'] as const

type SlotsConfig = Pick<Config, 'DELIVERY_MAX_CONCURRENT_PER_DESTINATION'>

interface DestinationWarning {
  code: (typeof destinationWarningCodes)[number]
  message: string
}

/** Creates a function that presents a destination to a caller: with warnings, and without what a viewer must not see. */
export const createDestinationView = (deps: { findConnector: FindConnector; config: Pick<Config, 'RELAY_BASE_URL'> & SlotsConfig }) => {
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
