import type { Connection } from '@temporalio/client'
import { isNotFound } from '../temporal/errors.ts'

// Closed workflows stay visible for this time, as with docker-compose.yml.
const retentionSeconds = 72 * 3_600
const alreadyExists = 6

/** Creates the namespace of the relay, unless it exists. */
export const ensureNamespace = async ({ workflowService }: Pick<Connection, 'workflowService'>, namespace: string): Promise<void> => {
  try {
    await workflowService.describeNamespace({ namespace })
  } catch (thrown) {
    if (!isNotFound(thrown)) throw thrown
    try {
      await workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: { seconds: retentionSeconds as never } })
    } catch (again) {
      if ((again as { code?: unknown }).code !== alreadyExists) throw again
    }
  }
}
