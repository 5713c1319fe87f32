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

type ThreadsConfig = Pick<Config, 'RELAY_THREADS' | 'RELAY_THREAD_HEAP_MAX_BYTES' | 'RELAY_THREAD_IDLE_TIMEOUT_MS'>

const bytesPerMebibyte = 1024 * 1024

/** Creates the threads of this process. A thread starts with the first task that needs it. */
export const createThreads = (config: ThreadsConfig): Threads => {
  const pool = new Piscina({
    minThreads: 0,
    maxThreads: config.RELAY_THREADS,
    idleTimeout: config.RELAY_THREAD_IDLE_TIMEOUT_MS,
    resourceLimits: { maxOldGenerationSizeMb: Math.ceil(config.RELAY_THREAD_HEAP_MAX_BYTES / bytesPerMebibyte) },
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
