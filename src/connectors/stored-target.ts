import { DeliveryError, type Connector, type Target } from './connector.ts'
import { parseTarget } from './index.ts'

interface StoredDestination {
  id: string
  /** Connector type. */
  connector: string
  config: Record<string, unknown>
}

/**
 * Returns the connector and the target of a stored destination.
 * @param openCredentials decrypts the stored credentials
 * @throws DeliveryError if this worker does not have the connector, or the config does not fit it
 */
export const readTarget = (
  findConnector: (kind: string) => Connector | undefined,
  { id, connector: kind, config }: StoredDestination,
  openCredentials: (connector: Connector) => unknown,
): { connector: Connector; target: Target<unknown, unknown> } => {
  const connector = findConnector(kind)
  if (!connector) throw new DeliveryError('connector_unknown', `this worker has no connector of type ${kind}`)
  const parsed = parseTarget(connector, { config, credentials: openCredentials(connector) })
  if ('issues' in parsed) {
    const issues = parsed.issues.map(({ path, message }) => `${path}: ${message}`).join('; ')
    throw new DeliveryError('config_invalid', `the stored config of destination ${id} is invalid, save it again: ${issues}`)
  }
  return { connector, target: parsed.target }
}
