import { Piscina } from 'piscina'
import { createRunTask, TaskLimitError, type RunTask } from './task-limits.ts'
import { runTaskTask, type SentTask, type TaskNews } from './thread-entry.ts'

// A workspace uses at most one of a kind at a time.
const threadsPerKind = 2

// After a minute without work a thread ends, and its memory is free. Starting it again takes about 50 ms.
const idleTimeoutMs = 60_000

// Reading the largest answer of a remote function call takes 120 MB. A task that needs more than this heap fails.
const heapMaxMebibytes = 256

const isOutOfHeap = (thrown: unknown): boolean => thrown instanceof Error && 'code' in thrown && thrown.code === 'ERR_WORKER_OUT_OF_MEMORY'

/**
 * Creates threads for one kind of work: the tasks of another kind have threads of their own, and do not wait behind these. A thread starts with
 * the first task that needs it.
 */
export const createThreads = (maxThreads = threadsPerKind) => {
  const pool = new Piscina<SentTask, unknown>({
    filename: runTaskTask.file,
    name: runTaskTask.name,
    minThreads: 0,
    maxThreads,
    idleTimeout: idleTimeoutMs,
    resourceLimits: { maxOldGenerationSizeMb: heapMaxMebibytes },
  })
  /** What the news of a task lead to, by its number. */
  const listeners = new Map<number, (news: TaskNews) => void>()
  pool.on('message', (news: TaskNews) => listeners.get(news.id)?.(news))
  let lastId = 0

  const run: RunTask = createRunTask('thread', async ({ file, name, input, ended, noteTaken, noteWorking }) => {
    lastId += 1
    const id = lastId
    listeners.set(id, ({ state }) => (state === 'loading' ? noteTaken() : noteWorking()))
    try {
      return await pool.run({ id, file, name, input }, { signal: ended })
    } catch (thrown) {
      throw isOutOfHeap(thrown) ? new TaskLimitError('memory', { cause: thrown }) : thrown
    } finally {
      listeners.delete(id)
    }
  })

  return { run, close: (): Promise<void> => pool.destroy() }
}
