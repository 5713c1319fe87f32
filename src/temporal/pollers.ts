import { setTimeout as delay } from 'node:timers/promises'
import type { Connection } from '@temporalio/client'
import { newId } from '../base/ids.ts'
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

// A normal task queue (not a sticky one) of its own, on which no task ever waits.
const clockQueue = { name: 'relay-doctor', kind: 1 }
// The server refuses a short poll. This one is aborted as soon as the server has listed it.
const clockPollTimeoutMs = 30_000
const clockIntervalMs = 20

/** A reading of another clock, and the times by the clock of this machine before and after it, in milliseconds. */
export interface ClockReading {
  before: number
  theirs: number
  after: number
}

/**
 * Reads the clock of the server. No call returns it, but the server notes when a worker has polled last.
 * @throws if the server does not answer in time, or does not permit the poll
 */
export const readServerTime = async (
  connection: Pick<Connection, 'withDeadline' | 'withAbortSignal' | 'workflowService'>,
  namespace: string,
  timeoutMs: number,
): Promise<ClockReading> => {
  const { workflowService } = connection
  const identity = `relay doctor ${newId()}`
  const found = new AbortController()
  const before = Date.now()
  let refusal: unknown
  const poll = () => workflowService.pollWorkflowTaskQueue({ namespace, taskQueue: clockQueue, identity })
  connection
    .withAbortSignal(found.signal, () => connection.withDeadline(before + clockPollTimeoutMs, poll))
    .catch((thrown: unknown) => {
      refusal = thrown
    })
  try {
    for (;;) {
      const { pollers } = await connection.withDeadline(before + timeoutMs, () =>
        workflowService.describeTaskQueue({ namespace, taskQueue: clockQueue }),
      )
      const time = pollers?.find((poller) => poller.identity === identity)?.lastAccessTime
      if (time) return { before, theirs: Number(time.seconds ?? 0) * 1_000 + (time.nanos ?? 0) / 1e6, after: Date.now() }
      if (refusal) throw refusal
      await delay(clockIntervalMs)
    }
  } finally {
    found.abort()
  }
}
