import { AppError, type ErrorCode } from './errors.ts'

/** Limits how many pieces of work run at a time, in this process, per workspace and per caller. */
export interface ConcurrencyLimit {
  /** Begins a piece of work. @returns a function that ends it, to be called once, or undefined if a limit is reached */
  begin(workspaceId: string): (() => void) | undefined
  /**
   * Begins a piece of work for a caller.
   * @param work.caller the API key or person, for example `api_key 01K9...`
   * @param work.what names the pieces of work in a refusal, for example `running exports`
   * @returns a function that ends it, to be called once
   * @throws `AppError` `rate_limited` if the caller or the workspace has reached its own limit, `unavailable` if the process has
   */
  enter(work: { workspaceId: string; caller: string; what: string; retryAfterSeconds: number }): () => void
}

interface Limits {
  total: number
  perWorkspace: number
  perCaller?: number
}

/** @param limits is asked when work begins: the API reference is generated without a configuration */
export const createConcurrencyLimit = (limits: () => Limits): ConcurrencyLimit => {
  const running = new Map<string, number>()
  let runningInAll = 0

  const countOf = (key: string) => running.get(key) ?? 0

  const change = (keys: string[], by: number) => {
    runningInAll += by
    for (const key of keys) {
      const now = countOf(key) + by
      if (now === 0) running.delete(key)
      else running.set(key, now)
    }
  }

  const start = (keys: string[]) => {
    change(keys, 1)
    return () => change(keys, -1)
  }

  return {
    begin: (workspaceId) => {
      const { total, perWorkspace } = limits()
      if (runningInAll >= total || countOf(workspaceId) >= perWorkspace) return undefined
      return start([workspaceId])
    },

    enter: ({ workspaceId, caller, what, retryAfterSeconds }) => {
      const { total, perWorkspace, perCaller = Infinity } = limits()
      const key = `${workspaceId} ${caller}`
      const refuse = (code: ErrorCode, whose: string) =>
        new AppError(code, `${whose} has too many ${what}. Try again shortly.`, { retryAfterSeconds })
      if (countOf(key) >= perCaller) throw refuse('rate_limited', 'This API key or person')
      if (countOf(workspaceId) >= perWorkspace) throw refuse('rate_limited', 'This workspace')
      if (runningInAll >= total) throw refuse('unavailable', 'This process')
      return start([workspaceId, key])
    },
  }
}
