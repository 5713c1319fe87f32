import type { Config } from '../config.ts'
import type { StartDocument } from '../db/outbox.ts'
import { isOverload } from './errors.ts'

type PaceConfig = Pick<
  Config,
  'TEMPORAL_START_MAX_LAG_MS' | 'TEMPORAL_MIN_UNTAKEN_STARTS' | 'TEMPORAL_MAX_CONCURRENT_STARTS' | 'TEMPORAL_START_TIMEOUT_MS'
>

interface Mark {
  message: StartDocument
  /** Number of workflows that had been started by then. */
  count: number
}

const askIntervalMs = 250
const estimateIntervalMs = 1_000
// Without workers, or if Temporal takes nothing, starts go on at this interval.
const trickleIntervalMs = 1_000
const marksPerLimit = 4
const firstConcurrent = 8
// A start that takes longer than this part of its timeout shows that the server has too many at a time.
const slowPart = 0.2

/**
 * Limits the workflows of documents that a process has started and no worker has taken. Starting more of them delivers nothing earlier:
 * they wait in Temporal instead of the outbox, and their starts take processor time from requests and deliveries.
 *
 * The limit is what the workers have lately taken in TEMPORAL_START_MAX_LAG_MS, at least TEMPORAL_MIN_UNTAKEN_STARTS. The process marks
 * some of the workflows that it starts, and asks Temporal about those when half of the limit is used up: about 4 calls per 100 documents.
 *
 * The starts under way are limited, too. The limit grows with each start, and is halved when one is slow or fails because the server is
 * overloaded: more of them would only time out, and be repeated.
 * @param isTaken returns true if a worker has taken the workflow that the message has started
 * @param now returns the time in milliseconds
 */
export const createStartPace = (isTaken: (message: StartDocument) => Promise<boolean>, config: PaceConfig, now: () => number) => {
  let limit = config.TEMPORAL_MIN_UNTAKEN_STARTS
  let started = 0
  let taken = 0
  let startedAt = 0
  let concurrent = Math.min(firstConcurrent, config.TEMPORAL_MAX_CONCURRENT_STARTS)
  let halvedAt = Number.NEGATIVE_INFINITY
  let pausedUntil = 0
  let marks: Mark[] = []
  let asking = false
  let askedAt = Number.NEGATIVE_INFINITY
  let estimate = { at: now(), taken: 0 }

  const untaken = () => started - taken

  const halveConcurrent = (beganAt: number) => {
    // The others that were under way are slow for the same reason.
    if (beganAt < halvedAt) return
    concurrent = Math.max(1, concurrent / 2)
    halvedAt = now()
  }

  const noteTaken = ({ count }: Mark) => {
    taken = count
    marks = marks.filter((mark) => mark.count > count)
  }

  const adjustLimit = () => {
    const ms = now() - estimate.at
    if (ms < estimateIntervalMs) return
    limit = Math.max(config.TEMPORAL_MIN_UNTAKEN_STARTS, ((taken - estimate.taken) / ms) * config.TEMPORAL_START_MAX_LAG_MS)
    estimate = { at: now(), taken }
  }

  const ask = async () => {
    asking = true
    askedAt = now()
    try {
      // Workers take workflows roughly in their order, so the newest usually decides for all.
      const newest = marks.at(-1)
      if (newest && (await isTaken(newest.message))) noteTaken(newest)
      else while (marks[0] && (await isTaken(marks[0].message))) noteTaken(marks[0])
      adjustLimit()
    } catch {
      // Temporal does not answer. Starts fail as well, and the next question comes with the next start.
    } finally {
      asking = false
    }
  }

  const askIfDue = () => {
    if (!asking && now() - askedAt >= askIntervalMs) void ask()
  }

  return {
    /** Returns the number of starts that may be under way. */
    concurrent: () => Math.floor(concurrent),
    /** Returns the number of starts that are allowed at once. */
    room: () => (now() < pausedUntil ? 0 : Math.max(0, Math.floor(Math.min(limit - untaken(), concurrent)))),
    /** Returns the time until the next start is allowed, or until it is of use to ask again. */
    delayMs: () => {
      if (now() < pausedUntil) return pausedUntil - now()
      if (untaken() < limit) return 0
      askIfDue()
      return Math.min(askIntervalMs, Math.max(0, startedAt + trickleIntervalMs - now()))
    },
    /** Notes that a start begins. */
    begin: () => {
      started += 1
      startedAt = now()
    },
    /** Notes that a workflow was started, or existed already. */
    succeeded: (message: StartDocument, beganAt: number) => {
      if (now() - beganAt > slowPart * config.TEMPORAL_START_TIMEOUT_MS) halveConcurrent(beganAt)
      else concurrent = Math.min(config.TEMPORAL_MAX_CONCURRENT_STARTS, concurrent + 1 / concurrent)
      // Before this workflow is marked: a worker needs a moment to take it.
      if (untaken() >= limit / 2) askIfDue()
      if (started - (marks.at(-1)?.count ?? taken) >= limit / marksPerLimit) marks.push({ message, count: started })
    },
    /** Notes that a start has failed. A server that takes no more calls gets none for a moment. */
    failed: (thrown: unknown, beganAt: number) => {
      started -= 1
      if (!isOverload(thrown)) return
      halveConcurrent(beganAt)
      pausedUntil = now() + trickleIntervalMs
    },
  }
}

export type StartPace = ReturnType<typeof createStartPace>
