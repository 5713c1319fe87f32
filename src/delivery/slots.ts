export interface DestinationLimits {
  /** Concurrent attempts of one worker process. */
  maxConcurrent: number
  /** Attempts that one worker process starts per minute; 0 is no limit. */
  maxPerMinute: number
}

/** Permission for one attempt to run against a destination. */
export interface Slot {
  /**
   * Checks the slot against the limits of the destination's own config, once they are loaded.
   * @returns how long to wait in milliseconds, if the slot had to be given back
   */
  confirm(limits: DestinationLimits): number | undefined
  /** Releases the slot. Safe to repeat. */
  release(): void
}

interface Occupancy {
  limits: DestinationLimits
  /** Start of each running attempt, the oldest first. */
  running: Set<{ startedAt: number }>
  confirmed: number
  /** Moving average of the duration of an attempt, in milliseconds. */
  meanMs: number
  /** Time up to which the next free slots are promised to deliveries that wait. */
  promisedUntil: number
  /** Time at which the rate allows the next attempt, if attempts were evenly spread. */
  nextStartAt: number
}

interface SlotOptions {
  /** Attempts that this process runs at a time, to all destinations together. */
  total: number
  /** Limits of a destination whose config sets none. */
  limits: DestinationLimits
  /** The longest time after which a waiting delivery asks again, in milliseconds. */
  maxWaitMs: number
}

const minWaitMs = 500
const forgetAfterMs = 60_000
// Weight of the latest attempt in the moving average.
const weight = 0.2
// Deliveries that waited come back a little late, so a rate may catch up on five seconds. The interval is longer in return, so that no
// minute sees more attempts than the limit.
const catchUpMs = 5_000
const intervalMs = ({ maxPerMinute }: DestinationLimits) => (maxPerMinute === 0 ? 0 : (60_000 + catchUpMs) / maxPerMinute)

/**
 * Limits concurrent attempts and the attempt rate per destination, in one worker process. A destination that hangs fills its own slots
 * and no others. No attempt waits here: an attempt that gets no slot gets a time after which to ask again. These times follow one
 * another at the pace at which slots should become free, so a line of any length asks about as often as it is served. None exceeds
 * `maxWaitMs`, because the destination may recover at any time.
 * @param now clock, in milliseconds
 * @param random from 0 to 1
 */
export const createSlots = ({ total, limits: defaults, maxWaitMs }: SlotOptions, now: () => number, random: () => number) => {
  const destinations = new Map<string, Occupancy>()
  let taken = 0
  let cleanedAt = now()

  const removeIdle = () => {
    if (now() - cleanedAt < forgetAfterMs) return
    cleanedAt = now()
    for (const [id, { running, promisedUntil, nextStartAt }] of destinations) {
      if (running.size === 0 && Math.max(promisedUntil, nextStartAt) + forgetAfterMs < now()) destinations.delete(id)
    }
  }

  const occupancyOf = (id: string): Occupancy => {
    const occupancy = destinations.get(id) ?? {
      limits: defaults,
      running: new Set(),
      confirmed: 0,
      meanMs: 0,
      promisedUntil: 0,
      nextStartAt: 0,
    }
    destinations.set(id, occupancy)
    return occupancy
  }

  /** Returns how long to wait for the next free slot, and promises the slot. */
  const promiseSlot = (occupancy: Occupancy): number => {
    const [oldest] = occupancy.running
    // An attempt that hangs has no duration yet.
    const durationMs = Math.max(occupancy.meanMs, oldest ? now() - oldest.startedAt : 0)
    const slotMs = Math.max(durationMs / Math.max(1, occupancy.running.size), intervalMs(occupancy.limits))
    const freeAt = Math.max(occupancy.promisedUntil, now()) + slotMs
    const waitMs = minWaitMs + freeAt - now()
    if (waitMs > maxWaitMs) return Math.round(maxWaitMs * (0.5 + random() / 2))
    occupancy.promisedUntil = freeAt
    return Math.round(waitMs + minWaitMs * random())
  }

  const isFull = ({ running, promisedUntil, limits }: Occupancy, hasWaited: boolean) => {
    // One slot is left to deliveries that have waited; otherwise, new deliveries could always overtake them.
    const reserved = !hasWaited && promisedUntil > now() && limits.maxConcurrent > 1 ? 1 : 0
    if (running.size + reserved >= limits.maxConcurrent) return true
    // A destination never takes more slots than it leaves free. However many destinations hang, none takes the last slot.
    return running.size >= Math.max(1, total - taken)
  }
  const isTooSoon = ({ limits, nextStartAt }: Occupancy) => limits.maxPerMinute > 0 && nextStartAt - catchUpMs > now()

  return {
    /**
     * Acquires a slot.
     * @param options.hasWaited the delivery has waited for a slot before
     * @param options.resumes the attempt continues one of a lost worker, whose slot it inherits
     * @returns the slot, or how long to wait in milliseconds
     */
    acquire: (id: string, { hasWaited = false, resumes = false } = {}): Slot | { waitMs: number } => {
      removeIdle()
      const occupancy = occupancyOf(id)
      if (!resumes && (isFull(occupancy, hasWaited) || isTooSoon(occupancy))) return { waitMs: promiseSlot(occupancy) }

      const attempt = { startedAt: now() }
      occupancy.running.add(attempt)
      taken += 1
      let isConfirmed = false
      let isReleased = false
      const release = () => {
        if (isReleased) return
        isReleased = true
        occupancy.running.delete(attempt)
        taken -= 1
        if (!isConfirmed) return
        occupancy.confirmed -= 1
        const durationMs = now() - attempt.startedAt
        occupancy.meanMs = occupancy.meanMs === 0 ? durationMs : occupancy.meanMs * (1 - weight) + durationMs * weight
      }
      return {
        release,
        confirm: (limits) => {
          occupancy.limits = limits
          if (!resumes && (occupancy.confirmed >= limits.maxConcurrent || isTooSoon(occupancy))) {
            release()
            return promiseSlot(occupancy)
          }
          isConfirmed = true
          occupancy.confirmed += 1
          occupancy.nextStartAt = Math.max(occupancy.nextStartAt, now()) + intervalMs(limits)
          return undefined
        },
      }
    },
  }
}

export type Slots = ReturnType<typeof createSlots>
