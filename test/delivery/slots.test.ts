import { createSlots, type DestinationLimits, type Slot } from '../../src/delivery/slots.ts'

const limits: DestinationLimits = { maxConcurrent: 4, maxPerMinute: 0 }
const minute = 60_000

/** Creates slots whose clock moves only by `advance`. */
const arrange = (options: { total?: number; limits?: DestinationLimits; maxWaitMs?: number } = {}) => {
  let clock = 1_000_000
  const slots = createSlots(
    { total: 100, limits, maxWaitMs: 30 * minute, ...options },
    () => clock,
    () => 0.5,
  )
  const acquire = (
    id: string,
    more: { hasWaited?: boolean; resumes?: boolean; wake?: number; limits?: DestinationLimits } = {},
  ): Slot | number => {
    const slot = slots.acquire(id, more)
    if ('waitMs' in slot) return slot.waitMs
    slot.confirm(more.limits ?? options.limits ?? limits)
    return slot
  }
  const refuse = (id: string, oldestAgeMs: number | undefined): number => {
    const slot = slots.acquire(id, { hasWaited: true })
    if ('waitMs' in slot) throw new Error(`${id} has no free slot`)
    return slot.refuse(limits, { oldestAgeMs })
  }
  /** An attempt that the circuit refuses. */
  const refuseByCircuit = (id: string, trialInMs: number): number => {
    const slot = slots.acquire(id, { hasWaited: true })
    if ('waitMs' in slot) throw new Error(`${id} has no free slot`)
    return slot.refuse(limits, { circuit: { trialInMs, pauseMs: minute } })
  }
  const mustAcquire = (id: string, more = {}): Slot => {
    const slot = acquire(id, more)
    if (typeof slot === 'number') throw new Error(`${id} has no free slot`)
    return slot
  }
  return {
    acquire,
    refuse,
    refuseByCircuit,
    mustAcquire,
    advance: (ms: number) => {
      clock += ms
    },
    now: () => clock,
  }
}

describe('the slots of a destination', () => {
  test('are limited, and become free when attempts end', () => {
    const { acquire, mustAcquire } = arrange()
    const [first] = Array.from({ length: 4 }, () => mustAcquire('archive'))
    expect(acquire('archive')).toEqual(expect.any(Number))
    mustAcquire('other')
    first!.release()
    first!.release()
    mustAcquire('archive', { hasWaited: true })
    expect(acquire('archive', { hasWaited: true })).toEqual(expect.any(Number))
  })

  test('follow the config of the destination, once it is loaded', () => {
    const { acquire, mustAcquire } = arrange()
    mustAcquire('archive', { limits: { maxConcurrent: 1, maxPerMinute: 0 } })
    expect(acquire('archive')).toEqual(expect.any(Number))
    mustAcquire('other', { limits: { maxConcurrent: 8, maxPerMinute: 0 } })
    for (let count = 1; count < 8; count += 1) mustAcquire('other', { limits: { maxConcurrent: 8, maxPerMinute: 0 } })
    expect(acquire('other')).toEqual(expect.any(Number))
  })

  test('never use up all slots of the worker, however many destinations hang', () => {
    const { acquire, mustAcquire } = arrange({ total: 20, limits: { maxConcurrent: 16, maxPerMinute: 0 } })
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) {
      for (let count = 0; count < 20; count += 1) if (typeof acquire(id) === 'number') break
    }
    expect(() => mustAcquire('healthy')).not.toThrow()
  })

  test('work on a worker that has only one slot', () => {
    const { mustAcquire } = arrange({ total: 1 })
    expect(() => mustAcquire('archive').release()).not.toThrow()
    expect(() => mustAcquire('other')).not.toThrow()
  })

  test('include one that is reserved for attempts that have waited', () => {
    const { acquire, mustAcquire, advance } = arrange()
    const occupied = Array.from({ length: 4 }, () => mustAcquire('archive'))
    advance(1_000)
    acquire('archive')
    occupied[0]!.release()
    expect(acquire('archive')).toEqual(expect.any(Number))
    mustAcquire('archive', { hasWaited: true })
  })

  test('are exceeded by an attempt that continues the work of a lost worker', () => {
    const { mustAcquire } = arrange()
    for (let count = 0; count < 4; count += 1) mustAcquire('archive')
    expect(() => mustAcquire('archive', { resumes: true })).not.toThrow()
  })
})

describe('a wait for a slot', () => {
  test('follows the attempts of other workers, if they hold all leases of the destination', () => {
    const { refuse } = arrange()
    expect(Math.round(refuse('archive', 40_000) / 10_000)).toBe(4)
    expect(Math.round(refuse('archive', 40_000) / 10_000)).toBe(8)
    // The refused attempts have left no slot in use.
    expect(Math.round(refuse('other', undefined) / 10_000)).toBe(0)
  })

  test('grows with each waiting attempt by the share of one attempt duration', () => {
    const { acquire, mustAcquire, advance } = arrange()
    const occupied = Array.from({ length: 4 }, () => mustAcquire('archive'))
    advance(40_000)
    occupied[0]!.release()
    mustAcquire('archive')
    const waits = Array.from({ length: 10 }, () => acquire('archive') as number)
    // Attempts take 40 s, four at a time, so a slot becomes free every 10 s.
    expect(waits.map((wait) => Math.round(wait / 10_000))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  test('is limited, and spread below the limit once it would exceed the limit', () => {
    const { acquire, mustAcquire, advance } = arrange({ maxWaitMs: 10 * minute })
    for (let count = 0; count < 4; count += 1) mustAcquire('archive')
    advance(minute)
    const waits = Array.from({ length: 10_000 }, () => acquire('archive') as number)
    expect(Math.max(...waits)).toBeLessThanOrEqual(10 * minute)
    expect(waits.at(-1)).toBe(7.5 * minute)
  })

  test('lets 10,000 documents behind a hanging target ask at most 3.5 times an hour each, and keeps the target busy', () => {
    const { acquire, mustAcquire, advance, now } = arrange()
    // Each attempt runs into its timeout after a minute.
    const running: { slot: Slot; endsAt: number }[] = []
    const requestTimes: number[] = []
    for (let count = 0; count < 4; count += 1) running.push({ slot: mustAcquire('archive'), endsAt: now() + minute })
    const due = new Map<number, number>()
    const scheduleRequest = (waitMs: number) => {
      const second = Math.ceil((now() + waitMs) / 1_000)
      due.set(second, (due.get(second) ?? 0) + 1)
    }
    for (let document = 0; document < 10_000; document += 1) scheduleRequest(acquire('archive') as number)
    const startedAt = now()
    let attempts = 0
    for (; now() < startedAt + 60 * minute; advance(1_000)) {
      for (const { slot } of running.filter(({ endsAt }) => endsAt <= now())) slot.release()
      running.splice(0, running.length, ...running.filter(({ endsAt }) => endsAt > now()))
      const second = Math.ceil(now() / 1_000)
      for (let remaining = due.get(second) ?? 0; remaining > 0; remaining -= 1) {
        requestTimes.push(now())
        const slot = acquire('archive', { hasWaited: true })
        if (typeof slot === 'number') scheduleRequest(slot)
        else {
          attempts += 1
          running.push({ slot, endsAt: now() + minute })
        }
      }
      due.delete(second)
    }
    expect(requestTimes.length / 10_000).toBeLessThan(3.5)
    // The limit of the target is four attempts a minute.
    expect(attempts).toBeGreaterThan(0.9 * 4 * 60)
  })
})

describe('a wait behind a circuit', () => {
  test('ends after the pause, for ten deliveries in the time of each further pause', () => {
    const { refuseByCircuit } = arrange()
    const waits = Array.from({ length: 10 }, () => refuseByCircuit('archive', minute))
    expect(waits.map((wait) => Math.round(wait / 6_000))).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19, 20])
  })

  test('delays no delivery that waits for a slot', () => {
    const { acquire, mustAcquire, refuseByCircuit } = arrange()
    for (let count = 0; count < 100; count += 1) refuseByCircuit('archive', minute)
    // Nobody waits for a slot, so none is reserved.
    for (let count = 0; count < 4; count += 1) mustAcquire('archive')
    expect(acquire('archive')).toBeLessThan(minute)
  })
})

describe('a wake', () => {
  test('ends all lines of the destination once, and begins new ones', () => {
    const { acquire, mustAcquire, refuse, refuseByCircuit, advance } = arrange()
    for (let count = 0; count < 50; count += 1) refuse('archive', 10 * minute)
    for (let count = 0; count < 50; count += 1) refuseByCircuit('archive', minute)
    const occupied = Array.from({ length: 4 }, () => mustAcquire('archive', { hasWaited: true, wake: 1_000 }))
    advance(8_000)
    expect(acquire('archive', { hasWaited: true, wake: 1_000 })).toBeLessThan(4_000)
    // A later page of the same wake, and a wake that arrives late, keep the new line.
    expect(acquire('archive', { hasWaited: true, wake: 1_000 })).toBeGreaterThan(4_000)
    expect(acquire('archive', { hasWaited: true, wake: 900 })).toBeGreaterThan(6_000)
    occupied[0]!.release()
    expect(refuseByCircuit('archive', 0)).toBeLessThan(8_000)
  })

  test('ignores attempts at the target from the time when it hung', () => {
    const { acquire, mustAcquire, advance } = arrange()
    const hanging = Array.from({ length: 4 }, () => mustAcquire('archive'))
    advance(5 * minute)
    hanging[0]!.release()
    mustAcquire('archive', { hasWaited: true, wake: 1_000 })
    advance(400)
    hanging[1]!.release()
    mustAcquire('archive', { hasWaited: true, wake: 1_000 })
    expect(acquire('archive', { hasWaited: true, wake: 1_000 })).toBeLessThan(2_000)
  })
})
