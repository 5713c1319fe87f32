import type { StartPace } from './start-pace.ts'

interface QueueLimits {
  /** Starts under way at a time. */
  maxConcurrent: number
  /** Further starts that wait. */
  maxWaiting: number
}

interface WaitingStart {
  /** Begins the start before it returns. Never rejects. */
  run(): Promise<void>
  /** Is called instead of `run` if the start waits until `expiresAt` or the queue is closed. */
  drop(): void
  /** On the clock of `performance.now()`. */
  expiresAt: number
}

/**
 * Runs the starts of a process, as many at a time and as fast as the pace allows. The starts of a workspace
 * keep their order, and workspaces take turns.
 */
export const createStartQueue = (pace: Pick<StartPace, 'delayMs'>, { maxConcurrent, maxWaiting }: QueueLimits) => {
  // In the order of their turns.
  const workspaces = new Map<string, WaitingStart[]>()
  const underWay = new Set<Promise<void>>()
  let waiting = 0
  let timer: NodeJS.Timeout | undefined
  let closed = false

  /** Removes the first start of a workspace, whose next turn is after those of the others. */
  const take = (workspace: string, starts: WaitingStart[]): void => {
    starts.shift()
    workspaces.delete(workspace)
    if (starts.length > 0) workspaces.set(workspace, starts)
    waiting -= 1
  }

  const runNext = () => {
    while (underWay.size < maxConcurrent) {
      const turn = workspaces.entries().next().value
      if (!turn) return
      const [workspace, starts] = turn
      const next = starts[0]!
      if (performance.now() >= next.expiresAt) {
        take(workspace, starts)
        next.drop()
        continue
      }
      const delayMs = pace.delayMs()
      if (delayMs > 0) {
        timer ??= setTimeout(() => {
          timer = undefined
          runNext()
        }, delayMs)
        return
      }
      take(workspace, starts)
      const running = next.run().finally(() => {
        underWay.delete(running)
        runNext()
      })
      underWay.add(running)
    }
  }

  const add = (workspace: string, start: WaitingStart): void => {
    if (closed) return start.drop()
    const own = workspaces.get(workspace)
    if (own) own.push(start)
    else workspaces.set(workspace, [start])
    waiting += 1
    runNext()
  }

  return {
    add,
    /** Adds a start unless its workspace has as many in the queue as the queue has room for. @returns true if it was added */
    offer: (workspace: string, start: WaitingStart): boolean => {
      const room = maxConcurrent + maxWaiting - underWay.size - waiting
      if ((workspaces.get(workspace)?.length ?? 0) >= room) return false
      add(workspace, start)
      return true
    },
    /** Drops what waits, and waits for the starts under way. */
    close: async (): Promise<void> => {
      closed = true
      clearTimeout(timer)
      for (const start of [...workspaces.values()].flat()) start.drop()
      workspaces.clear()
      await Promise.all(underWay)
    },
  }
}
