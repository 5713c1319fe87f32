import pLimit, { type LimitFunction } from 'p-limit'
import { Piscina } from 'piscina'
import type { ThreadTask } from '../base/thread-task.ts'
import type { Config } from '../config/config.ts'

/**
 * Runs a task on a thread of its own, so that it does not hold the thread that serves all requests. Input and result are copied.
 * @param workspace the workspace for which it runs, which uses one thread at a time. Its other tasks wait, in their order
 * @param signal ends the task, even while it runs
 */
export type RunOnThread = <Input, Result>(
  task: ThreadTask<Input, Result>,
  workspace: string,
  input: Input,
  signal?: AbortSignal,
) => Promise<Result>

export interface Threads {
  run: RunOnThread
  close(): Promise<void>
}

// After a minute without work a thread ends, and its memory is free. Starting it again takes about 50 ms.
const idleTimeoutMs = 60_000

// Reading the largest answer of a remote function call takes 120 MB. A task that needs more than this heap fails.
const heapMaxMebibytes = 512

/** Creates the threads of this process. A thread starts with the first task that needs it. */
export const createThreads = ({ RELAY_THREADS }: Pick<Config, 'RELAY_THREADS'>): Threads => {
  const pool = new Piscina({
    minThreads: 0,
    maxThreads: RELAY_THREADS,
    idleTimeout: idleTimeoutMs,
    resourceLimits: { maxOldGenerationSizeMb: heapMaxMebibytes },
  })
  const workspaces = new Map<string, { inTurn: LimitFunction; tasks: number }>()

  return {
    run: async ({ file, name }, workspace, input, signal) => {
      const own = workspaces.get(workspace) ?? { inTurn: pLimit(1), tasks: 0 }
      workspaces.set(workspace, own)
      own.tasks += 1
      try {
        return await own.inTurn(() => pool.run(input, { filename: file, name, signal: signal ?? null }))
      } finally {
        own.tasks -= 1
        if (own.tasks === 0) workspaces.delete(workspace)
      }
    },
    close: () => pool.destroy(),
  }
}
