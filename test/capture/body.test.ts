import { createCaptureBudget } from '../../src/capture/body.ts'

describe('the memory for captures', () => {
  /** Reserves single bytes until no more are left for the source. @returns how many bytes it has got */
  const fill = (memory: ReturnType<typeof createCaptureBudget>, source: string, what: 'body' | 'head' = 'body') => {
    let bytes = 0
    while (memory.of(source).reserve(1, what)) bytes += 1
    return bytes
  }

  test('gives one source half, and every further source a share of what is free', () => {
    const memory = createCaptureBudget(1_200)
    expect([fill(memory, 'A'), fill(memory, 'B'), fill(memory, 'C')]).toEqual([600, 300, 150])
    expect(fill(memory, 'A')).toBe(0)
  })

  test('gives two sources that take turns a third each', () => {
    const memory = createCaptureBudget(1_200)
    const [one, other] = [memory.of('A'), memory.of('B')]
    let bytes = 0
    while (one.reserve(1, 'body') && other.reserve(1, 'body')) bytes += 1
    expect(bytes).toBe(400)
  })

  test('has room for the heads of a source whose bodies have used their share, and then for another source', () => {
    const memory = createCaptureBudget(1_200)
    expect([fill(memory, 'A'), fill(memory, 'A', 'head')]).toEqual([600, 300])
    expect([fill(memory, 'A', 'head'), fill(memory, 'B'), fill(memory, 'C', 'head')]).toEqual([0, 150, 112])
  })

  test('gives released memory to others', () => {
    const memory = createCaptureBudget(100)
    const source = memory.of('A')
    expect([source.reserve(50, 'body'), source.reserve(1, 'body')]).toEqual([true, false])
    source.release(50)
    expect(fill(memory, 'B')).toBe(50)
  })
})

test('the hourly budget of refused requests is spent per workspace, and full again in the next hour', () => {
  let now = Date.parse('2026-11-22T09:59:59Z')
  const budget = createCaptureBudget(100, () => now)
  budget.spendOnRefused('acme/prod', 99, 0)
  expect(budget.isSpentOnRefused('acme/prod')).toBe(false)
  budget.spendOnRefused('acme/prod', 1, 0)
  expect([budget.isSpentOnRefused('acme/prod'), budget.isSpentOnRefused('acme/test')]).toEqual([true, false])
  now += 1_000
  expect(budget.isSpentOnRefused('acme/prod')).toBe(false)
})

test('bodies use at most half of the hourly budget of refused requests, and the last one takes nothing from the heads', () => {
  const budget = createCaptureBudget(100, () => 0)
  budget.spendOnRefused('acme/prod', 1, 49)
  expect(budget.isSpentOnRefusedBodies('acme/prod')).toBe(false)
  budget.spendOnRefused('acme/prod', 1, 40)
  expect([budget.isSpentOnRefusedBodies('acme/prod'), budget.isSpentOnRefusedBodies('acme/test')]).toEqual([true, false])
  budget.spendOnRefused('acme/prod', 47, 0)
  expect(budget.isSpentOnRefused('acme/prod')).toBe(false)
  budget.spendOnRefused('acme/prod', 1, 0)
  expect(budget.isSpentOnRefused('acme/prod')).toBe(true)
})
