export interface DestinationLimits {
  /** Attempts at work at a time in one worker process. */
  maxConcurrent: number
  /** Attempts begun in any minute by one worker process; 0 is no limit. */
  maxPerMinute: number
}

/** An attempt's leave to work at its destination. */
export interface Place {
  /** Holds it against the limits of the destination's own config. @returns how long to wait, where there was no room after all */
  confirm(limits: DestinationLimits): number | undefined
  /** Once: somebody else may have it. */
  leave(): void
}

interface Occupancy {
  limits: DestinationLimits
  /** When each attempt at work there began, the longest first. */
  since: Set<{ at: number }>
  confirmed: number
  /** How long attempts take, as a moving average. */
  meanMs: number
  /** Up to when the next places are promised to those who wait. */
  promisedUntil: number
  /** When the rate would allow the next attempt, were they evenly spread. */
  nextStartAt: number
}

interface PlacesOptions {
  /** Attempts this process runs at a time, whatever their destination. */
  slots: number
  /** For a destination whose config says nothing else. */
  limits: DestinationLimits
  /** The longest a delivery waits before it asks again. */
  maxWaitMs: number
}

const minWaitMs = 500
const forgetAfterMs = 60_000
// what the next attempt counts for in the mean
const weight = 0.2
// How evenly a rate must be kept: those who wait come back a little late, and may catch up on five seconds. The interval is longer
// in turn, so that no minute sees more than its limit.
const catchUpMs = 5_000
const intervalMs = ({ maxPerMinute }: DestinationLimits) => (maxPerMinute === 0 ? 0 : (60_000 + catchUpMs) / maxPerMinute)

/**
 * Who may work at which destination, in one worker process. One that hangs or crawls fills its own places and no others: nobody
 * waits here, whoever finds no place is told when to ask again. The times given are those at which places should fall free, one after the other, so
 * that a queue of any length asks about as often as it is served; and at the latest after `maxWaitMs`, as the destination may be well again.
 * @param now the clock, in milliseconds
 * @param random from 0 to 1
 */
export const createPlaces = ({ slots, limits: defaults, maxWaitMs }: PlacesOptions, now: () => number, random: () => number) => {
  const destinations = new Map<string, Occupancy>()
  let taken = 0
  let forgottenAt = now()

  const forgetIdle = () => {
    if (now() - forgottenAt < forgetAfterMs) return
    forgottenAt = now()
    for (const [id, { since, promisedUntil, nextStartAt }] of destinations) {
      if (since.size === 0 && Math.max(promisedUntil, nextStartAt) + forgetAfterMs < now()) destinations.delete(id)
    }
  }

  const at = (id: string): Occupancy => {
    const known = destinations.get(id) ?? {
      limits: defaults,
      since: new Set(),
      confirmed: 0,
      meanMs: 0,
      promisedUntil: 0,
      nextStartAt: 0,
    }
    destinations.set(id, known)
    return known
  }

  const promise = (there: Occupancy): number => {
    const [longest] = there.since
    // one that hangs has no end to be averaged yet
    const lastsMs = Math.max(there.meanMs, longest ? now() - longest.at : 0)
    const eachMs = Math.max(lastsMs / Math.max(1, there.since.size), intervalMs(there.limits))
    const free = Math.max(there.promisedUntil, now()) + eachMs
    const waitMs = minWaitMs + free - now()
    if (waitMs > maxWaitMs) return Math.round(maxWaitMs * (0.5 + random() / 2))
    there.promisedUntil = free
    return Math.round(waitMs + minWaitMs * random())
  }

  const isFull = (there: Occupancy, waited: boolean) => {
    // one place is left to those who have waited, that newcomers cannot always be quicker
    const spare = !waited && there.promisedUntil > now() && there.limits.maxConcurrent > 1 ? 1 : 0
    if (there.since.size + spare >= there.limits.maxConcurrent) return true
    // nobody holds more than is left free for all others: however many destinations hang, none has the last place
    return there.since.size >= Math.max(1, slots - taken)
  }
  const isTooSoon = (there: Occupancy) => there.limits.maxPerMinute > 0 && there.nextStartAt - catchUpMs > now()

  return {
    /**
     * @param options.waited whether it has been told to wait before
     * @param options.resumes whether it goes on with what a lost worker began: that had a place, which this one takes over
     */
    enter: (id: string, { waited = false, resumes = false } = {}): Place | { waitMs: number } => {
      forgetIdle()
      const there = at(id)
      if (!resumes && (isFull(there, waited) || isTooSoon(there))) return { waitMs: promise(there) }

      const mine = { at: now() }
      there.since.add(mine)
      taken += 1
      let confirmed = false
      let left = false
      const leave = () => {
        if (left) return
        left = true
        there.since.delete(mine)
        taken -= 1
        if (!confirmed) return
        there.confirmed -= 1
        there.meanMs = there.meanMs === 0 ? now() - mine.at : there.meanMs * (1 - weight) + (now() - mine.at) * weight
      }
      return {
        leave,
        confirm: (limits) => {
          there.limits = limits
          if (!resumes && (there.confirmed >= limits.maxConcurrent || isTooSoon(there))) {
            leave()
            return promise(there)
          }
          confirmed = true
          there.confirmed += 1
          there.nextStartAt = Math.max(there.nextStartAt, now()) + intervalMs(limits)
          return undefined
        },
      }
    },
  }
}
