import { z } from 'zod'
import { actorOf } from '../db/audit.ts'
import type { WakeNext } from '../delivery/wake.ts'
import { createTestDestinations, type TestDeps } from '../routing/configure-destinations.ts'
import { openObject } from '../workspace/inputs.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { connectorPart, idParams, one } from './schemas.ts'

export const targetBody = z.strictObject({
  // Any string, so that an unknown type gets 422 and not 400.
  connector_type: z.string().describe('The connector type.'),
  config: openObject.meta({ [connectorPart]: 'config' }).describe('The connector-specific configuration. Returned in responses.'),
  credentials: openObject.meta({ [connectorPart]: 'credentials' }).describe('The connector-specific credentials. Never returned.'),
})

// Only the merged config has to match the schema of the connector.
export const targetChange = targetBody.omit({ connector_type: true }).partial()

const testStatus = z.enum(['success', 'failed']).meta({ id: 'TestStatus' })
export const testResult = one(
  z
    .object({
      status: testStatus,
      message: z.string(),
      error_code: z.string().optional().describe('The error code of a delivery that would fail like the test, if there is one.'),
    })
    .meta({ id: 'TestResult' }),
)

export type DestinationTestDeps = TestDeps & { wakeNext: WakeNext }

/** Endpoints of a destination beside those that read and write it. */
export const destinationTestEndpoints = (deps: DestinationTestDeps): Endpoint[] => {
  const { testNew, test, testChange } = createTestDestinations(deps)

  return [
    endpoint({
      method: 'POST',
      path: '/destinations/test',
      operation: 'testDestinationConfig',
      level: 'member',
      summary: 'Test a destination before creating it',
      description: 'Checks that the relay can authenticate to the target and write to it; `message` says what was tried. Stores nothing.',
      body: targetBody.meta({ id: 'DestinationTest' }),
      response: testResult,
      isTest: true,
      changesNothing: true,
      handle: async ({ body }, { workspaceId, signal }) => ({ data: await testNew(workspaceId, body, signal) }),
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
      isTest: true,
      handle: async ({ params: { id } }, { workspaceId, signal }) => {
        const result = await test(workspaceId, id, signal)
        await deps.wakeNext(id)
        return { data: result }
      },
    }),

    endpoint({
      method: 'POST',
      path: '/destinations/:id/test-change',
      operation: 'testDestinationChange',
      level: 'member',
      summary: 'Test a change of a destination before saving it',
      description:
        'Takes what an update takes, and tests the destination as the update would leave it. Without `credentials`, the test uses the stored ' +
        'ones. They are required if the change alters where stored credentials are sent. Stores nothing.',
      params: idParams,
      body: targetChange.meta({ id: 'DestinationTestChange' }),
      response: testResult,
      isTest: true,
      changesNothing: true,
      handle: async ({ params: { id }, body }, { workspaceId, signal }) => ({ data: await testChange(workspaceId, id, body, signal) }),
    }),

    endpoint({
      method: 'POST',
      path: '/destinations/:id/download-links/revoke',
      level: 'admin',
      audit: 'destination.links_revoked',
      summary: 'Revoke download links',
      description:
        'Revokes every download link that was sent to this destination in an e-mail. Links in later e-mails are valid. To revoke the link ' +
        'of one document, erase its content.',
      params: idParams,
      response: 'none',
      handle: ({ params }, { workspaceId, actor }) => deps.destinations.revokeDownloadLinks(workspaceId, params.id, actorOf(actor)),
    }),
  ]
}
