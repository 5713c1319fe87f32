import { createHourlyBudget } from '../../src/capture/hourly-budget.ts'

describe('an hourly budget', () => {
  test('is spent per workspace, and full again in the next hour', () => {
    let now = Date.parse('2026-11-22T09:59:59Z')
    const budget = createHourlyBudget(100, 50, () => now)
    budget.spend('acme/prod', { heads: 99, bodies: 0 })
    expect(budget.isSpent('acme/prod')).toBe(false)
    budget.spend('acme/prod', { heads: 1, bodies: 0 })
    expect([budget.isSpent('acme/prod'), budget.isSpent('acme/test')]).toEqual([true, false])
    now += 1_000
    expect(budget.isSpent('acme/prod')).toBe(false)
  })

  test('has a part for bodies, and the last body takes nothing from the heads', () => {
    const budget = createHourlyBudget(100, 50, () => 0)
    budget.spend('acme/prod', { heads: 1, bodies: 49 })
    expect(budget.isSpentOnBodies('acme/prod')).toBe(false)
    budget.spend('acme/prod', { heads: 1, bodies: 40 })
    expect([budget.isSpentOnBodies('acme/prod'), budget.isSpentOnBodies('acme/test')]).toEqual([true, false])
    budget.spend('acme/prod', { heads: 47, bodies: 0 })
    expect(budget.isSpent('acme/prod')).toBe(false)
    budget.spend('acme/prod', { heads: 1, bodies: 0 })
    expect(budget.isSpent('acme/prod')).toBe(true)
  })
})
