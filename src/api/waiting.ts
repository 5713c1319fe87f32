import type { Metric } from 'prom-client'
import { z } from 'zod'
import { createConcurrencyLimit } from '../base/concurrency-limit.ts'
import type { Log } from '../base/log.ts'
import { gaugeOf } from '../base/metrics.ts'
import type { Actor } from '../security/api-keys.ts'

// Half of the idle time after which nginx, the load balancers of AWS and the relay itself close a connection.
export const waitSecondsMax = 30

/** The query parameter of an endpoint that waits. */
export const waitSeconds = z.coerce.number().int().min(0).max(waitSecondsMax)

const waitingLimits = {
  /** Requests that wait at one process. */
  maxWaiting: 1_000,
  maxWaitingPerWorkspace: 300,
  maxWaitingPerActor: 100,
  intervalMs: 500,
}

// Until other requests have ended.
const retryAfterSeconds = 5

interface WaitOptions {
  actor: Pick<Actor, 'type' | 'id' | 'workspace'>
  seconds: number
  /** Aborted when the client disconnects. */
  signal: AbortSignal
}

/** Looks for what requests wait for. @returns what was found, by key; no entry for a key that still waits */
type Look<Found> = (keys: string[]) => Promise<ReadonlyMap<string, Found>>

/** What requests of one kind wait for, such as the end of a document. */
export interface Topic<Found> {
  /**
   * Waits until something is found for the key. The first look is made after the interval: ask by yourself before.
   * @returns what was found, or undefined after `seconds`, when the client has disconnected, and when the process stops
   * @throws AppError 429 if the key, the person or the workspace waits with too many requests, 503 if too many wait at the process
   */
  wait(key: string, options: WaitOptions): Promise<Found | undefined>
}

/**
 * Lets requests wait. All requests of a topic share one look per interval, and none is made while no request waits. A notification of
 * PostgreSQL would make the commits of writers wait for one another.
 */
export const createWaiting = (log: Log, otherLimits: Partial<typeof waitingLimits> = {}) => {
  const limits = { ...waitingLimits, ...otherLimits }
  const places = createConcurrencyLimit(() => ({
    total: limits.maxWaiting,
    perWorkspace: limits.maxWaitingPerWorkspace,
    perCaller: limits.maxWaitingPerActor,
  }))
  const ends = new Set<() => void>()
  let isClosed = false

  const topic = <Found>(look: Look<Found>): Topic<Found> => {
    const waiters = new Map<string, Set<(found: Found) => void>>()
    let timer: NodeJS.Timeout | undefined
    let isLooking = false

    const check = async () => {
      const found = await look([...waiters.keys()])
      for (const [key, value] of found) for (const resolve of waiters.get(key) ?? []) resolve(value)
    }

    const schedule = () => {
      if (timer || isLooking || waiters.size === 0) return
      timer = setTimeout(() => {
        timer = undefined
        isLooking = true
        check()
          // The request asks again when its time is over, and tells its client.
          .catch((thrown: unknown) => log.debug({ err: thrown }, 'the database could not be asked for what requests wait for'))
          .finally(() => {
            isLooking = false
            schedule()
          })
      }, limits.intervalMs)
    }

    const enter = (key: string, resolve: (found: Found) => void) => {
      waiters.set(key, (waiters.get(key) ?? new Set()).add(resolve))
      schedule()
    }

    const exit = (key: string, resolve: (found: Found) => void) => {
      const others = waiters.get(key)!
      others.delete(resolve)
      if (others.size === 0) waiters.delete(key)
      if (waiters.size > 0) return
      clearTimeout(timer)
      timer = undefined
    }

    return {
      wait: async (key, { actor, seconds, signal }) => {
        if (isClosed || signal.aborted || seconds === 0) return undefined
        const caller = `${actor.type} ${actor.id}`
        const leave = places.enter({ workspaceId: actor.workspace.id, caller, what: 'requests that wait', retryAfterSeconds })
        const { promise, resolve } = Promise.withResolvers<Found | undefined>()
        const end = () => resolve(undefined)
        const timeout = setTimeout(end, seconds * 1_000)
        signal.addEventListener('abort', end, { once: true })
        ends.add(end)
        enter(key, resolve)
        try {
          return await promise
        } finally {
          clearTimeout(timeout)
          signal.removeEventListener('abort', end)
          ends.delete(end)
          leave()
          exit(key, resolve)
        }
      },
    }
  }

  const gauge = gaugeOf('relay_waiting_requests', 'Requests that wait until something has happened', () => ends.size)

  return {
    topic,

    /** Counts the requests that wait. */
    count: (): number => ends.size,

    metrics: [gauge] as Metric[],

    /** Answers all requests that wait. Later ones do not wait. */
    close: async (): Promise<void> => {
      isClosed = true
      for (const end of ends) end()
    },
  }
}
