import type { StartDocument } from '../db/outbox.ts'
import { isOverload } from './errors.ts'

export const paceLimits = {
  /** Time from the start of a workflow in which workers should begin to deliver its document. If they take longer, the limit shrinks. */
  maxLagMs: 1_000,
  /** Starts that are open in any case. With 8 instead of 16, a third fewer documents are delivered per second: see docs/performance.md. */
  minimum: 16,
  /** However fast the workers are. */
  maximum: 1_000,
}

/** A start whose document no worker is known to have begun with. */
interface OpenStart {
  message: StartDocument
  beganAt: number
  /** False until Temporal has confirmed the start. */
  isStarted: boolean
  /** True if no worker has begun with it for so long that it says nothing about the workers. */
  isStuck: boolean
}

const askIntervalMs = 50
// Without workers, or if Temporal takes nothing, starts go on at this interval.
const trickleIntervalMs = 1_000
const stuckAfterMs = 10_000
const growth = 1.5
const shrinkage = 0.5
// Place of the start that Temporal is asked about among the open ones. One further back allows more starts at a time, after a longer pause.
const askedShare = 0.25

/**
 * Limits the open starts of a process: the workflows of documents that it has started and whose deliveries no worker has begun. More of
 * them deliver nothing earlier. They would wait in Temporal instead of the outbox, in front of the documents of other workspaces, and take
 * processor time from requests and deliveries.
 *
 * The limit works like the congestion window of TCP: it grows while workers begin with a document within `maxLagMs` of its
 * start, and is halved when they take longer. The process asks Temporal about one workflow at a time, and only when half of the limit is
 * used up.
 * @param hasBegun returns false while the first tasks of the deliveries of a document wait for a worker
 * @param now returns the time in milliseconds
 */
export const createStartPace = (
  hasBegun: (message: StartDocument) => Promise<boolean>,
  now: () => number,
  { maxLagMs, minimum, maximum } = paceLimits,
) => {
  let limit = minimum
  let limitChangedAt = Number.NEGATIVE_INFINITY
  // In the order of their starts, in which workers roughly begin with them.
  let open: OpenStart[] = []
  let startedAt = 0
  let isAsking = false
  let askedAt = Number.NEGATIVE_INFINITY
  let hasBeenReached = false
  let pausedUntil = 0

  const changeLimit = (factor: number) => {
    limit = Math.min(maximum, Math.max(minimum, limit * factor))
    limitChangedAt = now()
  }

  const judge = (asked: OpenStart, hasBegunNow: boolean) => {
    const lagMs = now() - asked.beganAt
    const isLate = lagMs > maxLagMs
    // A start from before the last change says nothing about the limit of now.
    const isCurrent = asked.beganAt >= limitChangedAt
    if (isLate && isCurrent) changeLimit(shrinkage)
    if (hasBegunNow) {
      open = open.slice(open.indexOf(asked) + 1)
      if (!isLate && isCurrent && hasBeenReached) changeLimit(growth)
      hasBeenReached = false
    } else {
      asked.isStuck = lagMs > stuckAfterMs
    }
  }

  const ask = async (asked: OpenStart) => {
    isAsking = true
    askedAt = now()
    try {
      judge(asked, await hasBegun(asked.message))
    } catch {
      // A workflow that Temporal does not describe says nothing about the workers.
      asked.isStuck = now() - asked.beganAt > stuckAfterMs
    } finally {
      isAsking = false
    }
  }

  const askIfDue = () => {
    if (isAsking || now() - askedAt < askIntervalMs) return
    const candidates = open.filter(({ isStarted, isStuck }) => isStarted && !isStuck)
    const asked = candidates[Math.floor(candidates.length * askedShare)]
    if (asked) void ask(asked)
  }

  return {
    /** Returns the number of starts that are allowed at once. */
    room: () => (now() < pausedUntil ? 0 : Math.max(0, Math.ceil(limit - open.length))),
    /** Returns the time until the next start is allowed, or until it is of use to ask again. */
    delayMs: () => {
      if (now() < pausedUntil) return pausedUntil - now()
      if (open.length < limit) return 0
      hasBeenReached = true
      askIfDue()
      return Math.min(askIntervalMs, Math.max(0, startedAt + trickleIntervalMs - now()))
    },
    /** Notes that a start begins. Call one of the returned functions when it has ended. */
    begin: (message: StartDocument) => {
      startedAt = now()
      const start: OpenStart = { message, beganAt: startedAt, isStarted: false, isStuck: false }
      open.push(start)
      // Without workers, they would become ever more.
      if (open.length > maximum) open.shift()
      return {
        /** Notes that the workflow was started, or existed already. */
        succeeded: () => {
          start.isStarted = true
          if (open.length >= limit / 2) askIfDue()
        },
        /** Notes a failure. A server that takes no more calls gets none for a moment. */
        failed: (thrown: unknown) => {
          open = open.filter((other) => other !== start)
          if (!isOverload(thrown)) return
          changeLimit(shrinkage)
          pausedUntil = now() + trickleIntervalMs
        },
      }
    },
  }
}

export type StartPace = ReturnType<typeof createStartPace>
