/** Limits how many pieces of work run at a time, in this process and per workspace. */
export interface ConcurrencyLimit {
  /** Begins a piece of work. @returns a function that ends it, to be called once, or undefined if a limit is reached */
  begin(workspaceId: string): (() => void) | undefined
}

/** @param limits is asked when work begins: the API reference is generated without a configuration */
export const createConcurrencyLimit = (limits: () => { total: number; perWorkspace: number }): ConcurrencyLimit => {
  const running = new Map<string, number>()
  let runningInAll = 0

  const count = (workspaceId: string, change: number) => {
    const now = (running.get(workspaceId) ?? 0) + change
    runningInAll += change
    if (now === 0) running.delete(workspaceId)
    else running.set(workspaceId, now)
  }
  return {
    begin: (workspaceId) => {
      const { total, perWorkspace } = limits()
      if (runningInAll >= total || (running.get(workspaceId) ?? 0) >= perWorkspace) return undefined
      count(workspaceId, 1)
      return () => count(workspaceId, -1)
    },
  }
}
