import type { Worker } from 'node:worker_threads'
import pLimit, { type LimitFunction } from 'p-limit'
import { Piscina } from 'piscina'
import type { ThreadTask } from '../base/thread-task.ts'
import type { Config } from '../config/config.ts'
import { runTaskTask, type SentTask, type TaskNews } from './thread-entry.ts'

/** Limits of a task. Each is counted for the task alone: neither its waiting nor what else the process does counts as its work. */
interface TaskLimits {
  /** Milliseconds until a thread takes the task. */
  waitMaxMs?: number
  /** Milliseconds from the moment at which the thread works on it. */
  workMaxMs?: number
  /** Bytes of memory of the thread, beside what other threads and the process itself need. */
  memoryMaxBytes?: number
}

/** No thread became free in time. The task has not begun: nothing is known of its input, and a later try may succeed. */
export class NotBegunError extends Error {
  constructor(why: string) {
    super(`not begun: ${why}`)
    this.name = 'NotBegunError'
  }
}

/** The work of a task was ended, because it took longer, or needed more memory, than it may. */
export class TaskLimitError extends Error {
  readonly limit: 'time' | 'memory'

  constructor(limit: 'time' | 'memory', options?: ErrorOptions) {
    super(limit === 'time' ? 'the work took too long' : 'the work needed too much memory', options)
    this.name = 'TaskLimitError'
    this.limit = limit
  }
}

/**
 * Runs a task on a thread of its own, so that it does not hold the thread that serves all requests. Input and result are copied.
 * @param workspace the workspace for which it runs, which uses one thread at a time. Its other tasks wait, in their order
 * @param signal ends the task, while it waits and while it runs
 * @throws what the task throws, the reason of the signal, `NotBegunError` or `TaskLimitError`
 */
export type RunOnThread = <Input, Result>(
  task: ThreadTask<Input, Result>,
  workspace: string,
  input: Input,
  signal?: AbortSignal,
  limits?: TaskLimits,
) => Promise<Result>

export interface Threads {
  run: RunOnThread
  close(): Promise<void>
}

// After a minute without work a thread ends, and its memory is free. Starting it again takes about 50 ms.
const idleTimeoutMs = 60_000

// Reading the largest answer of a remote function call takes 120 MB. A task that needs more than this heap fails.
const heapMaxMebibytes = 512

const watchMs = 50

/**
 * Calls `end` once a thread needs more memory than a limit: its heap, and what it has allocated outside of it. What an earlier task has left
 * there does not count. @returns a function that stops watching
 */
const watchMemory = (thread: Worker, maxBytes: number, end: () => void): (() => void) => {
  let least = Infinity
  let isAsking = false
  const ask = async () => {
    if (isAsking) return
    isAsking = true
    // A busy thread answers all the same, between two steps of its program. One that has ended needs nothing.
    const memory = await thread.getHeapStatistics().catch(() => undefined)
    isAsking = false
    if (!memory) return
    const bytes = memory.total_heap_size + memory.external_memory
    least = Math.min(least, bytes)
    if (bytes - least > maxBytes) end()
  }
  const timer = setInterval(() => void ask(), watchMs)
  void ask()
  return () => clearInterval(timer)
}

const isOutOfHeap = (thrown: unknown): boolean => thrown instanceof Error && 'code' in thrown && thrown.code === 'ERR_WORKER_OUT_OF_MEMORY'

/** Creates the threads of this process. A thread starts with the first task that needs it. */
export const createThreads = ({ RELAY_THREADS }: Pick<Config, 'RELAY_THREADS'>): Threads => {
  const pool = new Piscina<SentTask, unknown>({
    filename: runTaskTask.file,
    name: runTaskTask.name,
    minThreads: 0,
    maxThreads: RELAY_THREADS,
    idleTimeout: idleTimeoutMs,
    resourceLimits: { maxOldGenerationSizeMb: heapMaxMebibytes },
  })
  const workspaces = new Map<string, { inTurn: LimitFunction; tasks: number }>()
  /** What the news of a task lead to, by its number. */
  const listeners = new Map<number, (news: TaskNews) => void>()
  pool.on('message', (news: TaskNews) => listeners.get(news.id)?.(news))
  let lastId = 0

  /** Runs a task in the turn of its workspace. */
  const inTurn = async <Result>(workspace: string, work: () => Promise<Result>): Promise<Result> => {
    const own = workspaces.get(workspace) ?? { inTurn: pLimit(1), tasks: 0 }
    workspaces.set(workspace, own)
    own.tasks += 1
    try {
      return await own.inTurn(work)
    } finally {
      own.tasks -= 1
      if (own.tasks === 0) workspaces.delete(workspace)
    }
  }

  const run: RunOnThread = async ({ file, name }, workspace, input, signal, { waitMaxMs, workMaxMs, memoryMaxBytes } = {}) => {
    signal?.throwIfAborted()
    lastId += 1
    const id = lastId
    const limited = new AbortController()
    const ended = signal ? AbortSignal.any([signal, limited.signal]) : limited.signal
    const endAfter = (ms: number | undefined, error: () => Error) =>
      ms === undefined ? undefined : setTimeout(() => limited.abort(error()), ms)
    let timer = endAfter(waitMaxMs, () => new NotBegunError(`no thread became free within ${waitMaxMs! / 1_000} s`))
    let unwatch = () => {}
    listeners.set(id, ({ state, threadId }) => {
      clearTimeout(timer)
      // The time in which a thread loads a program for the first time is none of the task.
      if (state === 'loading') return
      timer = endAfter(workMaxMs, () => new TaskLimitError('time'))
      const thread = pool.threads.find((each) => each.threadId === threadId)
      if (thread && memoryMaxBytes !== undefined) {
        unwatch = watchMemory(thread, memoryMaxBytes, () => limited.abort(new TaskLimitError('memory')))
      }
    })
    // Whoever waits for a thread learns of the end at once, and not only in its turn.
    const isEnded = new Promise<never>((_, reject) => {
      ended.addEventListener('abort', () => reject(ended.reason as Error), { once: true })
    })
    const result = inTurn(workspace, () => pool.run({ id, file, name, input }, { signal: ended }))
    try {
      return (await Promise.race([result, isEnded])) as never
    } catch (thrown) {
      ended.throwIfAborted()
      throw isOutOfHeap(thrown) ? new TaskLimitError('memory', { cause: thrown }) : thrown
    } finally {
      clearTimeout(timer)
      unwatch()
      listeners.delete(id)
    }
  }

  return { run, close: () => pool.destroy() }
}
