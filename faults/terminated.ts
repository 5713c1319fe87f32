import { setTimeout as pause } from 'node:timers/promises'
import { Connection } from '@temporalio/client'
import { until } from '../test/support/until.ts'
import type { TemporalServer } from './temporal.ts'

const everyMs = 5_000
const callMs = 3_000
const pageSize = 1_000
// Its servers look once a second at what their lists have to show.
const listsLagMs = 2_000

/** Lists the runs of workflows that have ended as terminated. @throws if Temporal does not answer within 3 s */
const listTerminated = async (port: number): Promise<string[]> => {
  const connection = Connection.lazy({ address: `127.0.0.1:${port}` })
  try {
    const request = { namespace: 'default', query: `ExecutionStatus = 'Terminated'`, pageSize }
    const runIds: string[] = []
    for (let nextPageToken: Uint8Array | undefined; ;) {
      const answer = await connection.withDeadline(Date.now() + callMs, () =>
        connection.workflowService.listWorkflowExecutions({ ...request, ...(nextPageToken && { nextPageToken }) }),
      )
      runIds.push(...(answer.executions ?? []).map(({ execution }) => execution!.runId!))
      if (!answer.nextPageToken?.length) return runIds
      nextPageToken = answer.nextPageToken
    }
  } finally {
    await connection.close()
  }
}

export interface TerminatedCounter {
  /** Looks a last time. @returns the number of workflows that were terminated since the start */
  stop(): Promise<number>
  close(): Promise<void>
}

/**
 * Counts the workflows that are terminated. Only the relay terminates workflows in a row. Temporal is asked from time to time, because it
 * may lose its data before the row ends.
 */
export const countTerminated = async (temporal: Pick<TemporalServer, 'port'>): Promise<TerminatedCounter> => {
  const list = () => listTerminated(temporal.port()).catch(() => undefined)
  const before = new Set(await until('Temporal lists its workflows', list))
  const found = new Set<string>()
  const note = (runIds: string[]) => {
    for (const runId of runIds) if (!before.has(runId)) found.add(runId)
  }
  const stopped = new AbortController()
  const watch = async () => {
    while (!stopped.signal.aborted) {
      await pause(everyMs, undefined, { signal: stopped.signal }).catch(() => {})
      note((await list()) ?? [])
    }
  }
  const watching = watch()
  const close = async () => {
    stopped.abort()
    await watching
  }
  return {
    close,
    stop: async () => {
      await close()
      await pause(listsLagMs)
      note((await until('Temporal lists its workflows', list)) ?? [])
      return found.size
    },
  }
}
