import { createPlaces, type DestinationLimits, type Place } from '../../activities/places.ts'

const limits: DestinationLimits = { maxConcurrent: 4, maxPerMinute: 0 }
const minute = 60_000

/** Places whose clock stands until the test moves it. */
const arrange = (options: { slots?: number; limits?: DestinationLimits; maxWaitMs?: number } = {}) => {
  let clock = 1_000_000
  const places = createPlaces(
    { slots: 100, limits, maxWaitMs: 30 * minute, ...options },
    () => clock,
    () => 0.5,
  )
  const enter = (id: string, more: { waited?: boolean; resumes?: boolean; limits?: DestinationLimits } = {}): Place | number => {
    const entered = places.enter(id, more)
    if ('waitMs' in entered) return entered.waitMs
    return entered.confirm(more.limits ?? options.limits ?? limits) ?? entered
  }
  const mustEnter = (id: string, more = {}): Place => {
    const entered = enter(id, more)
    if (typeof entered === 'number') throw new Error(`${id} is full`)
    return entered
  }
  return {
    enter,
    mustEnter,
    pass: (ms: number) => {
      clock += ms
    },
    now: () => clock,
  }
}

describe('the places of a destination', () => {
  it('are as many as its limit, and fall free as attempts end', () => {
    const { enter, mustEnter } = arrange()
    const [first] = Array.from({ length: 4 }, () => mustEnter('archive'))
    expect(enter('archive')).toEqual(expect.any(Number))
    mustEnter('other')
    first!.leave()
    first!.leave()
    mustEnter('archive', { waited: true })
    expect(enter('archive', { waited: true })).toEqual(expect.any(Number))
  })

  it('are as many as its own config says, even in the first rush', () => {
    const { enter, mustEnter } = arrange()
    const own = { limits: { maxConcurrent: 1, maxPerMinute: 0 } }
    mustEnter('archive', own)
    expect(enter('archive', own)).toEqual(expect.any(Number))
    // the second one has left again by itself
    expect(enter('archive', own)).toEqual(expect.any(Number))
  })

  it('never reach the last place of the worker, however many destinations hang', () => {
    const { enter, mustEnter } = arrange({ slots: 20, limits: { maxConcurrent: 16, maxPerMinute: 0 } })
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) {
      for (let taken = 0; taken < 20; taken += 1) if (typeof enter(id) === 'number') break
    }
    expect(() => mustEnter('healthy')).not.toThrow()
  })

  it('leave one worker slot usable where there is only one', () => {
    const { mustEnter } = arrange({ slots: 1 })
    expect(() => mustEnter('archive').leave()).not.toThrow()
    expect(() => mustEnter('other')).not.toThrow()
  })

  it('keep one for those who have waited', () => {
    const { enter, mustEnter, pass } = arrange()
    const taken = Array.from({ length: 4 }, () => mustEnter('archive'))
    pass(1_000)
    enter('archive')
    taken[0]!.leave()
    expect(enter('archive')).toEqual(expect.any(Number))
    mustEnter('archive', { waited: true })
  })

  it('are taken over by who goes on for a lost worker', () => {
    const { mustEnter } = arrange()
    for (let taken = 0; taken < 4; taken += 1) mustEnter('archive')
    expect(() => mustEnter('archive', { resumes: true })).not.toThrow()
  })
})

describe('a wait for a place', () => {
  it('grows by the time an attempt there takes, for each one in line', () => {
    const { enter, mustEnter, pass } = arrange()
    const taken = Array.from({ length: 4 }, () => mustEnter('archive'))
    pass(40_000)
    taken[0]!.leave()
    mustEnter('archive')
    const waits = Array.from({ length: 10 }, () => enter('archive') as number)
    // forty seconds each, four at a time: one is free every ten seconds
    expect(waits.map((wait) => Math.round(wait / 10_000))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  it('is bounded, and spread where it reaches the bound', () => {
    const { enter, mustEnter, pass } = arrange({ maxWaitMs: 10 * minute })
    for (let taken = 0; taken < 4; taken += 1) mustEnter('archive')
    pass(minute)
    const waits = Array.from({ length: 10_000 }, () => enter('archive') as number)
    expect(Math.max(...waits)).toBeLessThanOrEqual(10 * minute)
    expect(waits.at(-1)).toBe(7.5 * minute)
  })

  it('costs ten thousand documents behind a target that hangs three questions an hour each', () => {
    const { enter, mustEnter, pass, now } = arrange()
    // each attempt there runs into its timeout after a minute
    const running: { place: Place; until: number }[] = []
    const asks: number[] = []
    for (let taken = 0; taken < 4; taken += 1) running.push({ place: mustEnter('archive'), until: now() + minute })
    const due = new Map<number, number>()
    const askAgain = (waitMs: number) => {
      const second = Math.ceil((now() + waitMs) / 1_000)
      due.set(second, (due.get(second) ?? 0) + 1)
    }
    for (let document = 0; document < 10_000; document += 1) askAgain(enter('archive') as number)
    const began = now()
    let tried = 0
    for (; now() < began + 60 * minute; pass(1_000)) {
      for (const { place } of running.filter(({ until }) => until <= now())) place.leave()
      running.splice(0, running.length, ...running.filter(({ until }) => until > now()))
      const second = Math.ceil(now() / 1_000)
      for (let asking = due.get(second) ?? 0; asking > 0; asking -= 1) {
        asks.push(now())
        const entered = enter('archive', { waited: true })
        if (typeof entered === 'number') askAgain(entered)
        else {
          tried += 1
          running.push({ place: entered, until: now() + minute })
        }
      }
      due.delete(second)
    }
    expect(asks.length / 10_000).toBeLessThan(3.5)
    // and the target is kept as busy as it may be: four a minute
    expect(tried).toBeGreaterThan(0.9 * 4 * 60)
  })
})

describe('a rate', () => {
  const paced = { limits: { maxConcurrent: 100, maxPerMinute: 12 } }

  it('is never exceeded in any minute, and nearly reached by those who wait as they were told', () => {
    const { enter, pass, now } = arrange(paced)
    const begun: number[] = []
    let waiting = Array.from({ length: 100 }, () => ({ at: now(), waited: false }))
    const began = now()
    for (; now() < began + 5 * minute; pass(250)) {
      waiting = waiting.flatMap((one) => {
        if (one.at > now()) return [one]
        const entered = enter('archive', { waited: one.waited })
        if (typeof entered === 'number') return [{ at: now() + entered, waited: true }]
        begun.push(now())
        entered.leave()
        return []
      })
    }
    for (const at of begun) expect(begun.filter((other) => other >= at && other < at + minute).length).toBeLessThanOrEqual(12)
    expect(begun.length).toBeGreaterThan(0.8 * 5 * 12)
  })
})
