import type { BeginAs } from '../db/starts.ts'

/** Documents of a workspace that wait. */
interface WaitingQueue {
  workspaceId: string
  beginAs: BeginAs
}

// A workspace gets this many starts of new documents for each one of a release, a bulk retry or a restart.
const weights: Record<BeginAs, number> = { document: 4, delivery: 1, retry: 1 }

const keyOf = ({ workspaceId, beginAs }: WaitingQueue) => `${workspaceId}/${beginAs}`

/**
 * Lets queues take turns by start-time fair queueing: each turn moves the clock of its queue forward, and the queue with the earliest clock
 * is next. A queue that was idle starts at the time of the others, so that it has saved nothing up.
 */
export const createTurns = () => {
  const clocks = new Map<string, number>()
  let time = 0

  return {
    /**
     * Distributes free places.
     * @param queues every queue in which something waits
     * @param busy workspaces that have something open
     * @param free places; the last one is kept for a workspace that has nothing open
     * @returns the queues whose turn it is, with the number of documents
     */
    take: <Queue extends WaitingQueue>(queues: Queue[], busy: ReadonlySet<string>, free: number): (Queue & { documents: number })[] => {
      const waiting = new Set(queues.map(keyOf))
      for (const key of clocks.keys()) if (!waiting.has(key)) clocks.delete(key)
      const taken = new Map<Queue, number>()
      const hasOpen = new Set(busy)
      const clockOf = (queue: Queue) => clocks.get(keyOf(queue)) ?? time
      for (let left = free; left > 0; left -= 1) {
        const candidates = left === 1 ? queues.filter(({ workspaceId }) => !hasOpen.has(workspaceId)) : queues
        const next = candidates.reduce<Queue | undefined>(
          (earliest, queue) => (earliest === undefined || clockOf(queue) < clockOf(earliest) ? queue : earliest),
          undefined,
        )
        if (!next) break
        time = clockOf(next)
        clocks.set(keyOf(next), time + 1 / weights[next.beginAs])
        taken.set(next, (taken.get(next) ?? 0) + 1)
        hasOpen.add(next.workspaceId)
      }
      return [...taken].map(([queue, documents]) => ({ ...queue, documents }))
    },
  }
}
