import { createHourlyBudget } from '../../src/capture/hourly-budget.ts'
import { createSharedMemory } from '../../src/capture/memory.ts'

describe('shared memory', () => {
  /** Reserves single bytes until no more are left for the source. @returns how many bytes it has got */
  const fill = (memory: ReturnType<typeof createSharedMemory>, source: string) => {
    let bytes = 0
    while (memory.of(source).reserve(1)) bytes += 1
    return bytes
  }

  test('gives one source half, and every further source a share of what is free', () => {
    const memory = createSharedMemory(1_200)
    expect([fill(memory, 'A'), fill(memory, 'B'), fill(memory, 'C')]).toEqual([600, 300, 150])
    expect(fill(memory, 'A')).toBe(0)
  })

  test('gives two sources that take turns a third each', () => {
    const memory = createSharedMemory(1_200)
    const [one, other] = [memory.of('A'), memory.of('B')]
    let bytes = 0
    while (one.reserve(1) && other.reserve(1)) bytes += 1
    expect(bytes).toBe(400)
  })

  test('gives released memory to others', () => {
    const memory = createSharedMemory(100)
    const source = memory.of('A')
    expect([source.reserve(50), source.reserve(1)]).toEqual([true, false])
    source.release(50)
    expect(fill(memory, 'B')).toBe(50)
  })
})

test('an hourly budget is spent per workspace, and full again in the next hour', () => {
  let now = Date.parse('2026-11-22T09:59:59Z')
  const budget = createHourlyBudget(100, () => now)
  budget.spend('acme/prod', 99)
  expect(budget.isSpent('acme/prod')).toBe(false)
  budget.spend('acme/prod', 1)
  expect([budget.isSpent('acme/prod'), budget.isSpent('acme/test')]).toEqual([true, false])
  now += 1_000
  expect(budget.isSpent('acme/prod')).toBe(false)
})
