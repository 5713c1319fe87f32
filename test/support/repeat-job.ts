import type { Client } from '@temporalio/client'

/**
 * Has the workers of a relay run a maintenance job more often than its schedule does, until the server stops: a workflow beside the one of
 * the schedule. The job must be safe to run twice at the same time, as every one is.
 */
export const repeatJob = async (client: Client, job: string, everyMs: number): Promise<void> => {
  await client.workflow.start('maintenance', {
    taskQueue: 'document-relay',
    workflowId: `often-${job}`,
    args: [{ job, everyMs, forMs: 3_600_000 }],
  })
}
