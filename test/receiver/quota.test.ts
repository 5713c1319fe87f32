import { workspaceSettings } from '../../src/domain/settings.ts'
import { checkRate, createRateLimit } from '../../src/receiver/quota.ts'
import { testConfig } from '../support/factories.ts'

test.each([
  [null, '60', 60],
  [30, '60', 30],
  [90, '60', 60],
  [90, '0', 90],
  [null, '0', Infinity],
])('of the limits %p of a workspace and %s of the installation, the rate %p applies', (own, installation, expected) => {
  const config = testConfig({ RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE: installation })
  const settings = workspaceSettings({ receiver_max_requests_per_minute: own })
  const taken: number[] = []
  const rateLimit = { take: (_: string, perMinute: number) => taken.push(perMinute) * 0 }
  for (const isOpen of [false, true]) checkRate({ id: 'a', settings }, isOpen, rateLimit, config)
  expect(taken).toEqual([expected, expected / 10])
})

describe('the rate limit', () => {
  let nowMs = 0
  const limit = () => {
    nowMs = 1_000_000
    return createRateLimit(() => nowMs)
  }

  test('allows the requests of a minute at once, then one whenever its share of the minute has passed', () => {
    const { take } = limit()
    for (let request = 0; request < 60; request += 1) expect(take('a', 60)).toBe(0)
    expect(take('a', 60)).toBe(1)
    nowMs += 999
    expect(take('a', 60)).toBe(1)
    nowMs += 1
    expect(take('a', 60)).toBe(0)
    expect(take('a', 60)).toBe(1)
    nowMs += 3_600_000
    for (let request = 0; request < 60; request += 1) expect(take('a', 60)).toBe(0)
    expect(take('a', 60)).toBe(1)
  })

  test('says how long to wait', () => {
    const { take } = limit()
    expect(take('a', 2)).toBe(0)
    expect(take('a', 2)).toBe(0)
    expect(take('a', 2)).toBe(30)
    nowMs += 10_000
    expect(take('a', 2)).toBe(20)
  })

  test('counts each workspace by itself, and nothing without a limit', () => {
    const { take } = limit()
    expect(take('a', 1)).toBe(0)
    expect(take('a', 1)).toBe(60)
    expect(take('b', 1)).toBe(0)
    for (let request = 0; request < 1_000; request += 1) expect(take('c', Infinity)).toBe(0)
  })

  test('is not affected by a change of the time of day', () => {
    const { now } = Date
    const { take } = createRateLimit()
    expect(take('a', 1)).toBe(0)
    try {
      Date.now = () => now() - 3_600_000
      expect(take('a', 1)).toBeLessThanOrEqual(60)
    } finally {
      Date.now = now
    }
  })
})
