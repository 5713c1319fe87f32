import pLimit, { type LimitFunction } from 'p-limit'
import type { ThreadTask } from '../base/thread-task.ts'
import { unlessAborted } from '../base/unless-aborted.ts'

/** Limits of a task. Each is counted for the task alone: neither its waiting nor what else the process does counts as its work. */
interface TaskLimits {
  /** Milliseconds until the task is taken. */
  waitMaxMs?: number
  /** Milliseconds from the moment at which its function runs. */
  workMaxMs?: number
}

/** The task was not taken in time. It has not begun: nothing is known of its input, and a later try may succeed. */
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

type ReadInput<Input> = (ended: AbortSignal) => Promise<Input>

const isReadInput = (input: unknown): input is ReadInput<unknown> => typeof input === 'function'

/**
 * Runs a task outside of the thread that serves all requests. Input and result are copied.
 * @param workspace the workspace for which it runs, which has one task at a time. Its other tasks wait, in their order
 * @param input or a function that reads it when the workspace's turn has come: what waits is not held in memory. To read counts as to wait
 * @param signal ends the task, while it waits and while it runs
 * @throws what the task throws, the reason of the signal, `NotBegunError` or `TaskLimitError`
 */
export type RunTask = <Input, Result>(
  task: ThreadTask<Input, Result>,
  workspace: string,
  input: Input | ReadInput<Input>,
  signal?: AbortSignal,
  limits?: TaskLimits,
) => Promise<Result>

// Loading a program takes a second on a slow machine. What is silent for longer is ended, because others wait for it.
const loadMaxMs = 30_000

/** A task whose turn it is. */
interface TurnOfTask {
  file: string
  name: string
  input: unknown
  /** Aborted if the task is to end. */
  ended: AbortSignal
  /** Called when a thread or a process has taken the task. */
  noteTaken(): void
  /** Called when the program is loaded and its function begins. */
  noteWorking(): void
}

/**
 * Creates a function that runs tasks within their limits, and lets the tasks of each workspace take turns.
 * @param what waits to be free, for messages: `thread`
 * @param execute runs a task, waits for a free thread or process before
 */
export const createRunTask = (what: string, execute: (task: TurnOfTask) => Promise<unknown>): RunTask => {
  const workspaces = new Map<string, { inTurn: LimitFunction; tasks: number }>()

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

  return async ({ file, name }, workspace, input, signal, { waitMaxMs, workMaxMs } = {}) => {
    signal?.throwIfAborted()
    const limited = new AbortController()
    const ended = signal ? AbortSignal.any([signal, limited.signal]) : limited.signal
    const endAfter = (ms: number | undefined, error: () => Error) =>
      ms === undefined ? undefined : setTimeout(() => limited.abort(error()), ms)
    let timer = endAfter(waitMaxMs, () => new NotBegunError(`no ${what} became free within ${waitMaxMs! / 1_000} s`))
    // The time in which a program is loaded for the first time counts neither as waiting nor as work.
    const noteTaken = () => {
      clearTimeout(timer)
      timer = endAfter(loadMaxMs, () => new NotBegunError(`its program was not loaded within ${loadMaxMs / 1_000} s`))
    }
    const noteWorking = () => {
      clearTimeout(timer)
      timer = endAfter(workMaxMs, () => new TaskLimitError('time'))
    }
    // A caller whose task still waits learns of its end at once, and not only in its turn.
    const isEnded = new Promise<never>((_, reject) => {
      ended.addEventListener('abort', () => reject(ended.reason as Error), { once: true })
    })
    const result = inTurn(workspace, async () => {
      // A read that hangs does not hold the turn of the workspace after the end of its task.
      const read = isReadInput(input) ? await unlessAborted(() => input(ended), ended) : input
      ended.throwIfAborted()
      return execute({ file, name, input: read, ended, noteTaken, noteWorking })
    })
    try {
      return (await Promise.race([result, isEnded])) as never
    } catch (thrown) {
      ended.throwIfAborted()
      throw thrown
    } finally {
      clearTimeout(timer)
    }
  }
}
