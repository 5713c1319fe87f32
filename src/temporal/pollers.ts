import type { Connection } from '@temporalio/client'
import type { Config } from '../config/config.ts'

// The server lists a poller for 5 minutes after its last poll, and one poll lasts at most a minute.
const maxSilenceMs = 120_000

/** Lists the workers that wait for tasks of the relay, by their identity. */
export const listPollers = async (
  connection: Pick<Connection, 'withDeadline' | 'workflowService'>,
  namespace: string,
  config: Pick<Config, 'TEMPORAL_TASK_QUEUE' | 'TEMPORAL_START_TIMEOUT_MS'>,
): Promise<string[]> => {
  // Without a type, the server describes the queue of workflow tasks, which every worker polls.
  const describe = () => connection.workflowService.describeTaskQueue({ namespace, taskQueue: { name: config.TEMPORAL_TASK_QUEUE } })
  const { pollers } = await connection.withDeadline(Date.now() + config.TEMPORAL_START_TIMEOUT_MS, describe)
  const oldest = Date.now() - maxSilenceMs
  const active = (pollers ?? []).filter(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000 >= oldest)
  return [...new Set(active.map(({ identity }) => identity ?? 'unknown'))].toSorted()
}
