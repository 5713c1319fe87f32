import type { ZodError } from 'zod'
import { connectorTypes, type ConnectorType } from '../domain/connector-type.ts'
import type { Connector, Target } from './connector.ts'
import { createDrive } from './drive.ts'
import { createBlob } from './blob.ts'
import { email } from './email.ts'
import { createEntraTokens } from './entra-token.ts'
import { objstore } from './objstore.ts'
import { withLimits } from './limits.ts'
import { sftp } from './sftp.ts'
import { createTeamsite } from './teamsite.ts'
import { webhook } from './webhook.ts'

// one memory of tokens, for every kind that signs in with Microsoft
const entraTokens = createEntraTokens()

/** Every kind of target there is code for. docs/adding-a-connector.md tells how another one comes in. */
const kinds: Record<ConnectorType, Connector> = {
  objstore,
  blob: createBlob(entraTokens),
  teamsite: createTeamsite(entraTokens),
  drive: createDrive(),
  sftp,
  email,
  webhook,
}

const connectors: Connector[] = connectorTypes.map((kind) => ({ ...kinds[kind], config: withLimits(kinds[kind].config) }))

/** In the order in which the API names them. */
export const allConnectors = (): Connector[] => connectors

/** Undefined for a kind that only a later version of the relay knows. */
export const findConnector = (kind: ConnectorType): Connector | undefined => connectors.find((connector) => connector.kind === kind)

interface TargetFault {
  /** Like `config.bucket` */
  path: string
  message: string
}

/** Config and credentials as the connector takes them, defaults filled in, or everything that does not fit. */
export const parseTarget = (
  connector: Connector,
  input: { config: unknown; credentials: unknown },
): { target: Target<unknown, unknown> } | { faults: TargetFault[] } => {
  const config = connector.config.safeParse(input.config)
  const credentials = connector.credentials.safeParse(input.credentials)
  if (config.success && credentials.success) return { target: { config: config.data, credentials: credentials.data } }
  return { faults: [...faultsOf('config', config.error), ...faultsOf('credentials', credentials.error)] }
}

const faultsOf = (field: string, error: ZodError | undefined): TargetFault[] =>
  (error?.issues ?? []).map(({ path, message }) => ({ path: [field, ...path].join('.'), message }))
