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
   * @param why `oldestAgeMs`: duration so far of the oldest attempt that holds a lease. `circuit`: the circuit that is not closed, with the
   *   time until the next trial and the pause between trials
   * @returns how long to wait in milliseconds
   */
  refuse(limits: DestinationLimits, why: Refusal): number
  /** Releases the slot. Safe to repeat. */
  release(): void
}

interface Refusal {
  oldestAgeMs?: number | undefined
  circuit?: { trialInMs: number; pauseMs: number } | undefined
}

interface Occupancy {
  limits: DestinationLimits
  /** Start of each running attempt, the oldest first. */
  running: Set<{ startedAt: number }>
  /** Moving average of the duration of an attempt, in milliseconds. */
  meanMs: number
  /** Time up to which the next free slots are promised to deliveries that wait. */
  promisedUntil: number
  /** Time up to which deliveries that wait are to ask for trials. */
  trialsUntil: number
  /** The latest wake of deliveries that waited, by the clock of Temporal, and the time at which this process learned of it. */
  wake: { startedAt: number; learnedAt: number }
}

// Before a delivery asks again for a free slot at its destination.
const longestWaitMs = 30 * 60_000

interface SlotOptions {
  /** Attempts that this process runs at a time, to all destinations together. */
  total: number
  /** Limits of a destination whose config sets none. */
  limits: DestinationLimits
  /** The longest time after which a waiting delivery asks again, in milliseconds. */
  maxWaitMs?: number
}

interface AcquireOptions {
  hasWaited?: boolean
  resumes?: boolean
  wake?: number | undefined
}

const minWaitMs = 500
const forgetAfterMs = 60_000
// Behind a circuit, this many deliveries ask in the time of a pause, so that a trial that is due starts soon. All are woken when it closes.
const asksPerPause = 10
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
export const createSlots = (
  { total, limits: defaults, maxWaitMs = longestWaitMs }: SlotOptions,
  now: () => number,
  random: () => number,
) => {
  const destinations = new Map<string, Occupancy>()
  let taken = 0
  let cleanedAt = now()

  const removeIdle = () => {
    if (now() - cleanedAt < forgetAfterMs) return
    cleanedAt = now()
    for (const [id, { running, promisedUntil, trialsUntil }] of destinations) {
      if (running.size === 0 && Math.max(promisedUntil, trialsUntil) + forgetAfterMs < now()) destinations.delete(id)
    }
  }

  const occupancyOf = (id: string): Occupancy => {
    const occupancy: Occupancy = destinations.get(id) ?? {
      limits: defaults,
      running: new Set(),
      meanMs: 0,
      promisedUntil: 0,
      trialsUntil: 0,
      wake: { startedAt: 0, learnedAt: -Infinity },
    }
    destinations.set(id, occupancy)
    return occupancy
  }

  /** Forgets the lines of deliveries that have been woken, and the durations of attempts at a target that was down. */
  const forgetLines = (occupancy: Occupancy, wakeStartedAt: number) => {
    if (wakeStartedAt <= occupancy.wake.startedAt) return
    const wake = { startedAt: wakeStartedAt, learnedAt: now() }
    Object.assign(occupancy, { wake, meanMs: 0, promisedUntil: 0, trialsUntil: 0 } satisfies Partial<Occupancy>)
  }

  /** Returns the time after which one slot follows another, as far as this process knows. */
  const paceOf = ({ running, meanMs, wake }: Occupancy, oldestAgeMs: number): number => {
    // An attempt that hangs has no duration yet. One that hung before the target came back says nothing.
    const ages = [oldestAgeMs, ...Array.from(running, ({ startedAt }) => now() - startedAt)]
    return Math.max(meanMs, ...ages.filter((age) => now() - age >= wake.learnedAt)) / Math.max(1, running.size)
  }

  /** Returns how long to wait until the delivery asks again, which is after all that wait in the same line. */
  const joinLine = (
    occupancy: Occupancy,
    line: 'promisedUntil' | 'trialsUntil',
    { startMs, paceMs }: { startMs: number; paceMs: number },
  ): number => {
    const askAt = Math.max(occupancy[line], now() + startMs) + Math.max(paceMs, intervalMs(occupancy.limits))
    const waitMs = minWaitMs + askAt - now()
    if (waitMs > maxWaitMs) return Math.round(maxWaitMs * (0.5 + random() / 2))
    occupancy[line] = askAt
    return Math.round(waitMs + minWaitMs * random())
  }

  /** Returns how long to wait for the next free slot, or for a trial, and promises it. */
  const promiseSlot = (occupancy: Occupancy, { oldestAgeMs = 0, circuit }: Refusal = {}): number =>
    circuit
      ? joinLine(occupancy, 'trialsUntil', { startMs: circuit.trialInMs, paceMs: circuit.pauseMs / asksPerPause })
      : joinLine(occupancy, 'promisedUntil', { startMs: 0, paceMs: paceOf(occupancy, oldestAgeMs) })

  return {
    /**
     * Acquires a slot of this process.
     * @param options.hasWaited the delivery has waited for a slot before
     * @param options.resumes the attempt continues one of a lost worker
     * @param options.wake start of the wake that has ended the wait of the delivery: what was promised before is void
     * @returns the slot, or how long to wait in milliseconds
     */
    acquire: (id: string, { hasWaited = false, resumes = false, wake }: AcquireOptions = {}): Slot | { waitMs: number } => {
      removeIdle()
      const occupancy = occupancyOf(id)
      if (wake !== undefined) forgetLines(occupancy, wake)
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
        if (!isConfirmed || attempt.startedAt < occupancy.wake.learnedAt) return
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
