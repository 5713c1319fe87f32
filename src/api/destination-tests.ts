import { z } from 'zod'
import { notFound } from '../base/refusals.ts'
import type { FindConnector } from '../connectors/connector.ts'
import { credentialsOwner } from '../connectors/target.ts'
import { SealError, type KeyRing } from '../security/seal.ts'
import type { Destinations, SealedDestination } from '../workspace/destinations.ts'
import type { PinConfig } from '../workspace/pin-config.ts'
import { storedCredentialsFor } from '../workspace/stored-credentials.ts'
import {
  checkTarget,
  connectorOf,
  mergeConfig,
  type OpenObject,
  type ProbeDeps,
  requireEncryption,
  type TestResult,
  testTarget,
} from '../workspace/targets.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { connectorPart, idParams, one, openObject } from './schemas.ts'

export const targetBody = z.strictObject({
  // Any string, so that an unknown type gets 422 and not 400.
  connector_type: z.string().describe('The connector type.'),
  config: openObject.meta({ [connectorPart]: 'config' }).describe('The connector-specific configuration. Returned in responses.'),
  credentials: openObject.meta({ [connectorPart]: 'credentials' }).describe('The connector-specific credentials. Never returned.'),
})

// Only the merged config has to match the schema of the connector.
export const targetChange = targetBody.omit({ connector_type: true }).partial()

const testStatus = z.enum(['success', 'failed']).meta({ id: 'TestStatus' })
const testResult = one(z.object({ status: testStatus, message: z.string() }).meta({ id: 'TestResult' }))

const undecryptable = (why = '') => `The stored credentials cannot be decrypted${why}. Save the credentials again.`

/** Finds a destination with its sealed credentials. @throws AppError 404 */
export const findDestination = async (destinations: Destinations, workspaceId: string, id: string): Promise<SealedDestination> => {
  const found = await destinations.find(workspaceId, id)
  if (!found) throw notFound()
  return found
}

export type DestinationTestDeps = ProbeDeps &
  LaunchDeps & {
    destinations: Destinations
    keyRing: KeyRing
    findConnector: FindConnector
    pinConfig: PinConfig
  }

export const destinationTestEndpoints = (deps: DestinationTestDeps): Endpoint[] => {
  const { destinations, findConnector, keyRing } = deps

  return [
    endpoint({
      method: 'POST',
      path: '/destinations/test',
      level: 'member',
      summary: 'Test a destination before creating it',
      description: 'Checks that the relay can authenticate to the target and write to it; `message` says what was tried. Stores nothing.',
      body: targetBody,
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
        const { connectorType, config, credentialsSealed } = await findDestination(destinations, workspaceId, id)
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
      body: targetChange,
      response: testResult,
      status: 200,
      handle: async ({ params: { id }, body }, { workspaceId, signal }) => {
        const current = await findDestination(destinations, workspaceId, id)
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
