import type { Metric } from 'prom-client'
import type { Log } from '../base/log.ts'
import { counterOf } from '../base/metrics.ts'
import { isOutage } from './errors.ts'

/** The loops whose objects do not stop each other. */
const loops = [
  'aggregates',
  'call-lines',
  'dispatcher',
  'homes',
  'incidents',
  'manifests',
  'migrations',
  'orphans',
  'outbox',
  'reconcile',
  'retention',
  'side-work',
  'upstreams',
] as const
export type Loop = (typeof loops)[number]

/**
 * Does the part of a loop that belongs to one object. If it fails, the object is passed over: that is logged with its cause and counted, and
 * the next run of the loop tries the object again.
 * @param subject what the log line says about the object: ids, no data
 * @param signal ends the loop: its error is no failure of an object
 * @returns the result, or `undefined` if the object was passed over
 * @throws what no object is the cause of: the reason of the signal, or that the database or Temporal is away
 */
export type OnItsOwn = <Result>(
  loop: Loop,
  subject: Record<string, string>,
  work: () => Promise<Result> | Result,
  signal?: AbortSignal,
) => Promise<Result | undefined>

interface Reports {
  log?: Pick<Log, 'error'>
  /** Returns true if the error is not about one object: every other object would fail in the same way. */
  concernsAll?: (thrown: unknown) => boolean
}

/** Creates the function that the loops of a process use, with its metric. Without a log, nothing is logged. */
export const createOnItsOwn = ({ log, concernsAll = isOutage }: Reports = {}) => {
  const counter = counterOf(
    'relay_passed_over_total',
    'Objects that a loop has passed over because its work for them failed, by loop. Its next run tries them again',
    ['loop'],
    loops.map((loop) => ({ loop })),
  )

  /** Notes an object that was passed over. */
  const passOver = (loop: Loop, subject: Record<string, string>, thrown: unknown): void => {
    counter.inc({ loop })
    log?.error({ loop, ...subject, err: thrown }, 'passed over, the next run tries again')
  }

  const onItsOwn: OnItsOwn = async (loop, subject, work, signal) => {
    try {
      return await work()
    } catch (thrown) {
      signal?.throwIfAborted()
      if (concernsAll(thrown)) throw thrown
      passOver(loop, subject, thrown)
      return undefined
    }
  }

  return { onItsOwn, passOver, metrics: [counter] as Metric[] }
}

export type PassOver = ReturnType<typeof createOnItsOwn>['passOver']
