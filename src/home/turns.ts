/** Lets pieces of work wait for their turn, in the order in which they come. */
export interface Turns {
  /** Waits for a turn. @returns a function that ends it, to be called once, or undefined if none was free in time */
  take(workspaceId: string, signal: AbortSignal): Promise<(() => void) | undefined>
}

interface Waiting {
  workspaceId: string
  begin(): void
}

/** @param limits how many may work at a time, in this process and for one workspace, and how long one waits */
export const createTurns = ({ total, perWorkspace, waitMs }: { total: number; perWorkspace: number; waitMs: number }): Turns => {
  const running = new Map<string, number>()
  const waiting = new Set<Waiting>()
  let runningInAll = 0

  const isFree = (workspaceId: string) => runningInAll < total && (running.get(workspaceId) ?? 0) < perWorkspace
  const change = (workspaceId: string, by: number) => {
    const now = (running.get(workspaceId) ?? 0) + by
    runningInAll += by
    if (now === 0) running.delete(workspaceId)
    else running.set(workspaceId, now)
  }
  const leave = (workspaceId: string) => () => {
    change(workspaceId, -1)
    for (const next of waiting) {
      if (!isFree(next.workspaceId)) continue
      waiting.delete(next)
      change(next.workspaceId, 1)
      next.begin()
      return
    }
  }

  return {
    take: async (workspaceId, signal) => {
      if (isFree(workspaceId)) {
        change(workspaceId, 1)
        return leave(workspaceId)
      }
      const turn = Promise.withResolvers<boolean>()
      const mine: Waiting = { workspaceId, begin: () => turn.resolve(true) }
      waiting.add(mine)
      const end = () => {
        if (waiting.delete(mine)) turn.resolve(false)
      }
      const timer = setTimeout(end, waitMs)
      signal.addEventListener('abort', end, { once: true })
      if (signal.aborted) end()
      const hasTurn = await turn.promise
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      return hasTurn ? leave(workspaceId) : undefined
    },
  }
}
