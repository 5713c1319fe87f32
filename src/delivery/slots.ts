export interface DestinationLimits {
  /** Concurrent attempts of the installation. */
  maxConcurrent: number
  /** Attempts that the installation starts per minute; 0 is no limit. */
  maxPerMinute: number
}

/** Permission of this worker process for one attempt to run against a destination. */
export interface Slot {
  /** Slots of the destination that this attempt must leave free: for attempts that have waited. */
  reserved: 0 | 1
  /** Notes that the attempt has a lease of the destination. */
  confirm(limits: DestinationLimits): void
  /**
   * Releases the slot, because the destination has no lease for the attempt.
   * @param why `oldestAgeMs`: duration so far of the oldest attempt that holds a lease. `circuit`: the circuit that is not closed
   * @returns how long to wait in milliseconds
   */
  refuse(limits: DestinationLimits, why: Refusal): number
  /** Releases the slot. Safe to repeat. */
  release(): void
}

interface Refusal {
  oldestAgeMs?: number | undefined
  circuit?: { trialInMs: number } | undefined
}

interface Occupancy {
  limits: DestinationLimits
  /** Start of each running attempt, the oldest first. */
  running: Set<{ startedAt: number }>
  /** Moving average of the duration of an attempt, in milliseconds. */
  meanMs: number
  /** Time up to which the next free slots are promised to deliveries that wait. */
  promisedUntil: number
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
// Behind a circuit, one delivery a second asks, so that a trial that is due starts soon.
const trialSpacingMs = 1_000
// Weight of the latest attempt in the moving average.
const weight = 0.2

// Deliveries that waited come back a little late, so a rate may catch up on five seconds. The interval is longer in return, so that no
// minute sees more attempts than the limit.
export const catchUpMs = 5_000
export const intervalMs = ({ maxPerMinute }: Pick<DestinationLimits, 'maxPerMinute'>) =>
  maxPerMinute === 0 ? 0 : (60_000 + catchUpMs) / maxPerMinute

/**
 * Divides the attempts of one worker process among the destinations, so that a destination that hangs fills its own slots and no others,
 * and tells deliveries how long to wait. The limits of a destination itself hold across all workers, by the leases that the statement in
 * delivery-job.ts takes. No attempt waits here: an attempt that gets no slot gets a time after which to ask again. These times follow one
 * another at the pace at which slots should become free, so a line of any length asks about as often as it is served. None exceeds
 * `maxWaitMs`, because the destination may recover at any time.
 * @param now clock in milliseconds that no change of the time of day affects
 * @param random from 0 to 1
 */
export const createSlots = ({ total, limits: defaults, maxWaitMs }: SlotOptions, now: () => number, random: () => number) => {
  const destinations = new Map<string, Occupancy>()
  let taken = 0
  let cleanedAt = now()

  const removeIdle = () => {
    if (now() - cleanedAt < forgetAfterMs) return
    cleanedAt = now()
    for (const [id, { running, promisedUntil }] of destinations) {
      if (running.size === 0 && promisedUntil + forgetAfterMs < now()) destinations.delete(id)
    }
  }

  const occupancyOf = (id: string): Occupancy => {
    const occupancy = destinations.get(id) ?? { limits: defaults, running: new Set(), meanMs: 0, promisedUntil: 0 }
    destinations.set(id, occupancy)
    return occupancy
  }

  /** Returns how long to wait for the next free slot, and promises the slot. */
  const promiseSlot = (occupancy: Occupancy, { oldestAgeMs = 0, circuit }: Refusal = {}): number => {
    const [oldest] = occupancy.running
    // An attempt that hangs has no duration yet.
    const durationMs = Math.max(occupancy.meanMs, oldestAgeMs, now() - (oldest?.startedAt ?? now()))
    const paceMs = circuit ? trialSpacingMs : durationMs / Math.max(1, occupancy.running.size)
    const slotMs = Math.max(paceMs, intervalMs(occupancy.limits))
    const freeAt = Math.max(occupancy.promisedUntil, now() + (circuit?.trialInMs ?? 0)) + slotMs
    const waitMs = minWaitMs + freeAt - now()
    if (waitMs > maxWaitMs) return Math.round(maxWaitMs * (0.5 + random() / 2))
    occupancy.promisedUntil = freeAt
    return Math.round(waitMs + minWaitMs * random())
  }

  return {
    /**
     * Acquires a slot of this process.
     * @param options.hasWaited the delivery has waited for a slot before
     * @param options.resumes the attempt continues one of a lost worker
     * @returns the slot, or how long to wait in milliseconds
     */
    acquire: (id: string, { hasWaited = false, resumes = false } = {}): Slot | { waitMs: number } => {
      removeIdle()
      const occupancy = occupancyOf(id)
      const { running, promisedUntil, limits } = occupancy
      // One slot is left to deliveries that have waited; otherwise, new deliveries could always overtake them.
      const reserved = !hasWaited && promisedUntil > now() && limits.maxConcurrent > 1 ? 1 : 0
      // A destination never takes more slots than it leaves free. However many destinations hang, none takes the last slot.
      const isFull = running.size + reserved >= limits.maxConcurrent || running.size >= Math.max(1, total - taken)
      if (isFull && !resumes) return { waitMs: promiseSlot(occupancy) }

      const attempt = { startedAt: now() }
      running.add(attempt)
      taken += 1
      let isConfirmed = false
      let isReleased = false
      const release = () => {
        if (isReleased) return
        isReleased = true
        running.delete(attempt)
        taken -= 1
        if (!isConfirmed) return
        const durationMs = now() - attempt.startedAt
        occupancy.meanMs = occupancy.meanMs === 0 ? durationMs : occupancy.meanMs * (1 - weight) + durationMs * weight
      }
      return {
        reserved,
        release,
        confirm: (current) => {
          occupancy.limits = current
          isConfirmed = true
        },
        refuse: (current, why) => {
          occupancy.limits = current
          release()
          return promiseSlot(occupancy, why)
        },
      }
    },
  }
}

export type Slots = ReturnType<typeof createSlots>
