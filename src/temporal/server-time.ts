import { setTimeout as delay } from 'node:timers/promises'
import type { Connection } from '@temporalio/client'
import { newId } from '../base/ids.ts'

// A normal task queue (not a sticky one) of its own, on which no task ever waits.
const taskQueue = { name: 'relay-doctor', kind: 1 }
// The server refuses a short poll. This one is aborted as soon as the server has listed it.
const pollTimeoutMs = 30_000
const intervalMs = 20

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
  const poll = () => workflowService.pollWorkflowTaskQueue({ namespace, taskQueue, identity })
  connection
    .withAbortSignal(found.signal, () => connection.withDeadline(before + pollTimeoutMs, poll))
    .catch((thrown: unknown) => {
      refusal = thrown
    })
  try {
    for (;;) {
      const { pollers } = await connection.withDeadline(before + timeoutMs, () =>
        workflowService.describeTaskQueue({ namespace, taskQueue }),
      )
      const time = pollers?.find((poller) => poller.identity === identity)?.lastAccessTime
      if (time) return { before, theirs: Number(time.seconds ?? 0) * 1_000 + (time.nanos ?? 0) / 1e6, after: Date.now() }
      if (refusal) throw refusal
      await delay(intervalMs)
    }
  } finally {
    found.abort()
  }
}
