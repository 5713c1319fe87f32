import { pathToFileURL } from 'node:url'
import { parentPort, threadId } from 'node:worker_threads'
import { threadTask } from '../base/thread-task.ts'

/** A task, as it is sent to a thread. */
export interface SentTask {
  id: number
  file: string
  name: string
  input: unknown
}

/** What a thread says of its task: it has taken it, and loads its program; then it works. */
export interface TaskNews {
  id: number
  threadId: number
  state: 'loading' | 'working'
}

type TaskModule = Record<string, (input: unknown) => unknown>

/** Runs on a thread: loads a task and runs it, and says so, because the limits of the waiting and of the work end and begin there. */
export const runTask = async ({ id, file, name, input }: SentTask): Promise<unknown> => {
  const tell = (state: TaskNews['state']) => parentPort!.postMessage({ id, threadId, state } satisfies TaskNews, [])
  tell('loading')
  const task = ((await import(pathToFileURL(file).href)) as TaskModule)[name]!
  tell('working')
  return task(input)
}

export const runTaskTask = threadTask(import.meta.url, runTask)
