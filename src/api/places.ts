import type { Metric } from 'prom-client'
import { AppError } from '../base/errors.ts'
import { counterOf, gaugeOf } from '../base/metrics.ts'
import type { Actor } from '../security/api-keys.ts'

// A request that waits longer for its turn is answered 429. As long as a statement waits for a connection: a page that asks for much at a
// time is served, and a client that asks without pause is slowed down instead of being answered at once and asking again.
const waitMaxMs = 5_000
const retryAfterSeconds = 5
// While other requests of its workspace wait, a place is as long without work as its last request took, up to this time. A client that asks
// without pause would otherwise have the processor for itself, which the source systems need as well.
const restMaxMs = 250
// Requests of one workspace that may wait. Further ones are refused, because each holds memory. An address has 500 running requests.
const maxWaitingPerWorkspace = 500

/** A place of a running request. */
export interface Place {
  /** Gives the place up while the request waits for something else than the database, and then waits for another one, without a limit. */
  whileElsewhere<Result>(work: () => Promise<Result>): Promise<Result>
  /** Ends the request. Later calls have no effect. */
  leave(): void
}

export interface PlaceLimits {
  total: number
  waitMaxMs?: number
  restMaxMs?: number
}

type Caller = Pick<Actor, 'type' | 'id'> & { workspace: Pick<Actor['workspace'], 'id'> }

interface Waiter {
  caller: string
  admit(): void
}

/** Returns how many of the places one workspace, and one API key or person, can have. */
const placesPerCaller = (total: number) => ({ perWorkspace: Math.ceil(total / 2), perCaller: Math.ceil(total / 3) })

/**
 * Creates the places of the requests that run at a time in the management API. They are as many as the connections that it may use, so a
 * request that has a place also has a connection. A workspace has at most half of them, and an API key or person a third. Further requests
 * wait, and each place that becomes free goes to the next workspace in turn.
 */
export const createPlaces = ({ total, waitMaxMs: maxMs = waitMaxMs, restMaxMs: restMs = restMaxMs }: PlaceLimits) => {
  const { perWorkspace, perCaller } = placesPerCaller(total)
  const running = new Map<string, number>()
  const lines = new Map<string, Set<Waiter>>()
  let runningInAll = 0

  const refused = counterOf(
    'relay_api_requests_refused_total',
    'Requests to the management API that were answered 429, because their workspace or key had too many that run or wait',
  )
  const waiting = gaugeOf('relay_api_requests_waiting', 'Requests to the management API that wait for their turn', () =>
    [...lines.values()].reduce((sum, line) => sum + line.size, 0),
  )

  const count = (keys: string[], change: number) => {
    for (const key of keys) {
      const now = (running.get(key) ?? 0) + change
      if (now === 0) running.delete(key)
      else running.set(key, now)
    }
  }

  const hasRoom = (key: string, max: number) => (running.get(key) ?? 0) < max

  /** Finds the first request of a workspace whose caller has room. */
  const nextOf = (workspaceId: string, line: Set<Waiter>): Waiter | undefined =>
    hasRoom(workspaceId, perWorkspace) ? [...line].find(({ caller }) => hasRoom(caller, perCaller)) : undefined

  /** Gives the free places to those who wait: one to each workspace in turn. */
  const distribute = () => {
    for (const [workspaceId, line] of lines) {
      if (runningInAll >= total) return
      const next = nextOf(workspaceId, line)
      if (!next) continue
      line.delete(next)
      lines.delete(workspaceId)
      // Behind the others. The loop comes to it again.
      if (line.size > 0) lines.set(workspaceId, line)
      next.admit()
    }
  }

  const refuse = () => {
    refused.inc()
    return new AppError(
      'rate_limited',
      'Too many requests of this workspace, or of this API key or person, are running. Ask for less at a time.',
      {
        retryAfterSeconds,
      },
    )
  }

  const take = (workspaceId: string, caller: string, isLimited: boolean): Promise<void> => {
    const keys = [workspaceId, caller]
    const line = lines.get(workspaceId) ?? new Set<Waiter>()
    if (isLimited && line.size >= maxWaitingPerWorkspace) return Promise.reject(refuse())
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined
      const waiter: Waiter = {
        caller,
        admit: () => {
          clearTimeout(timer)
          runningInAll += 1
          count(keys, 1)
          resolve()
        },
      }
      if (isLimited) {
        timer = setTimeout(() => {
          line.delete(waiter)
          if (line.size === 0) lines.delete(workspaceId)
          reject(refuse())
        }, maxMs).unref()
      }
      lines.set(workspaceId, line.add(waiter))
      distribute()
    })
  }

  return {
    metrics: [refused, waiting] as Metric[],

    /** Waits for a place. @throws `AppError` `rate_limited` if the workspace or the caller has too many requests */
    enter: async ({ type, id, workspace }: Caller): Promise<Place> => {
      const keys: [string, string] = [workspace.id, `${workspace.id} ${type} ${id}`]
      let since = 0
      const release = () => {
        // Other workspaces need not wait for the rest of this one.
        runningInAll -= 1
        const rest = lines.has(workspace.id) ? Math.min(performance.now() - since, restMs) : 0
        const end = () => {
          count(keys, -1)
          distribute()
        }
        if (rest >= 1) setTimeout(end, rest).unref()
        else end()
        distribute()
      }
      await take(...keys, true)
      since = performance.now()
      let isHeld = true
      let hasLeft = false
      return {
        whileElsewhere: async (work) => {
          isHeld = false
          release()
          try {
            return await work()
          } finally {
            if (!hasLeft) {
              await take(...keys, false)
              since = performance.now()
              isHeld = true
            }
          }
        },
        leave: () => {
          if (!hasLeft && isHeld) release()
          hasLeft = true
        },
      }
    },
  }
}

export type Places = ReturnType<typeof createPlaces>

// Number of the connections of the management API that lookups of keys may use at a time. The lookup of a key takes less than a millisecond.
const concurrentLookups = 2

/**
 * Looks up API keys in turn: each key has one lookup at a time, so a client that asks without pause keeps no other one from being
 * authenticated, which comes before its request can have a place.
 */
export const createFindInTurn = <Found>(find: (keyId: string) => Promise<Found>): ((keyId: string) => Promise<Found>) => {
  const lookups = createPlaces({ total: concurrentLookups, restMaxMs: 0 })
  return async (keyId) => {
    const place = await lookups.enter({ type: 'api_key', id: keyId, workspace: { id: keyId } })
    return find(keyId).finally(place.leave)
  }
}
