import { setTimeout as sleep } from 'node:timers/promises'
import type { CircuitSignal } from '../domain/circuit.ts'
import { decideRetry } from '../domain/retry.ts'
import type { OnItsOwn } from './on-its-own.ts'
import type { RunEnd } from './side-work.ts'

// The run of a queue whose pieces of work do not depend on each other, with a circuit of the queue: after several failures in a row, one piece
// of work at a time tries the system, after pauses that become longer. The others wait in the database.

const runLimits = {
  /** Pieces of work of a queue that are done at a time. A system that hangs keeps so many calls of a worker, whatever waits. */
  maxConcurrent: 10,
  /** Afterwards, other queues have the place. */
  runMs: 20_000,
  /** If a piece of work hangs at that time, the others go on after this pause, until the run has taken `longestRunMs`. */
  drainMs: 2_000,
  longestRunMs: 90_000,
  /** A run that has done something waits for more: to end and to start again for each of a few documents would cost more. */
  lingerMs: 1_000,
  /** Time between two looks of a run. */
  lookMs: 100,
}

export type RunLimits = typeof runLimits

// Consecutive failures of the system.
const opensAfter = 5
// The first pause, and the longest. Who waits for the system waits in the database, so there is no last one.
const pauses = { maxRetries: Infinity, ttlMs: Infinity, initialIntervalMs: 5_000, maxIntervalMs: 300_000 }

/** Returns true if so many consecutive failures mean that one piece of work at a time tries the system. */
export const isTrial = (failures: number): boolean => failures >= opensAfter

/** What a piece of work says about the system, and why it has failed. */
export interface Worked {
  signal: CircuitSignal
  error?: string
}

export interface Pieces<Piece> {
  idOf(piece: Piece): string
  /** Finds the pieces of work that are due, the oldest first. @param except ids of those that are under way */
  take(limit: number, except: string[]): Promise<Piece[]>
  /** Does one. @throws failures of the relay itself */
  work(piece: Piece): Promise<Worked>
  /** Lets one wait in which the relay itself has failed, so that it does not hold up the others. */
  postpone(piece: Piece): Promise<void>
}

/**
 * Works through what is due in a queue.
 * @param failures consecutive failures of the system before the run
 * @throws the reason of `cancelled`, and failures of the relay itself
 */
export const workThrough = async <Piece>(
  { idOf, take, work, postpone }: Pieces<Piece>,
  { failures, cancelled, onItsOwn, limits }: { failures: number; cancelled: AbortSignal; onItsOwn: OnItsOwn; limits?: Partial<RunLimits> },
): Promise<RunEnd> => {
  const { maxConcurrent, runMs, drainMs, longestRunMs, lingerMs, lookMs } = { ...runLimits, ...limits }
  const beganAt = performance.now()
  const running = new Map<string, Promise<void>>()
  let workedAt = Number.NEGATIVE_INFINITY
  let isOpened = false
  let lastError = ''
  let failed: { reason: unknown } | undefined

  const note = ({ signal, error = '' }: Worked): void => {
    if (signal === 'answered') {
      failures = 0
      isOpened = false
    } else if (signal === 'failed' && !isOpened) {
      failures += 1
      isOpened = isTrial(failures)
      lastError = error
    }
  }

  const doOne = async (piece: Piece): Promise<void> => {
    try {
      const worked = await onItsOwn('side-work', { id: idOf(piece) }, () => work(piece), cancelled)
      if (worked) note(worked)
      else await postpone(piece)
    } catch (reason) {
      failed ??= { reason }
    }
  }

  const start = (piece: Piece): void => {
    const id = idOf(piece)
    const done = doOne(piece).finally(() => {
      running.delete(id)
      workedAt = performance.now()
    })
    running.set(id, done)
  }

  const mayTake = (): boolean => {
    const elapsedMs = performance.now() - beganAt
    const isTime = elapsedMs < runMs || (elapsedMs > runMs + drainMs && elapsedMs < longestRunMs)
    return isTime && !isOpened && !failed && !cancelled.aborted
  }

  for (;;) {
    const lookedAt = performance.now()
    // After a failure, no more are begun than may fail before the circuit opens.
    const free = (failures === 0 ? maxConcurrent : Math.max(1, opensAfter - failures)) - running.size
    if (mayTake() && free > 0) {
      try {
        for (const piece of await take(free, [...running.keys()])) start(piece)
      } catch (reason) {
        failed = { reason }
      }
    }
    // A look that began before the last piece of work ended has not seen what this one has left.
    if (running.size === 0 && !(mayTake() && lookedAt - workedAt < lingerMs)) break
    await Promise.race([...running.values(), ...(free > 0 || running.size === 0 ? [sleep(lookMs)] : [])])
  }
  cancelled.throwIfAborted()
  if (failed) throw failed.reason
  if (isOpened) {
    const pause = decideRetry(pauses, { failures: failures - opensAfter + 1, remainingMs: Infinity }, 0)
    return { status: 'retrying', failures, delayMs: pause.retry ? pause.delayMs : pauses.maxIntervalMs, error: lastError }
  }
  return { status: mayTake() ? 'idle' : 'more', failures }
}
