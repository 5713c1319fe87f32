import { readFileSync } from 'node:fs'
import { demandOf, measuredCosts, sizeOf, temporalWork } from '../../bench/capacity/model.ts'
import { tableOf } from '../../bench/support/tables.ts'

const demand = (perSecond: number, destinations = 1) => demandOf(measuredCosts, { perSecond, destinations, documentBytes: 100 * 1_024 })

test('docs/scaling.md has the demand that is calculated', () => {
  const rows = [10, 100, 300, 1_000].map((perSecond) => ({ case: `${perSecond} documents per second`, ...demand(perSecond) }))
  expect(readFileSync(new URL('../../docs/scaling.md', import.meta.url), 'utf8')).toContain(tableOf(rows))
})

const size = (perDay: number) => sizeOf(measuredCosts, { perDay, destinations: 1, documentBytes: 100 * 1_024 })

test('docs/scaling.md has the sizes that are calculated', () => {
  const rows = [10_000, 100_000, 1_000_000, 5_000_000].map((perDay) => ({
    case: `${perDay.toLocaleString('en')} documents a day`,
    ...size(perDay),
  }))
  expect(readFileSync(new URL('../../docs/scaling.md', import.meta.url), 'utf8')).toContain(tableOf(rows))
})

test('a size is that of the busiest hour, with at least two processes of each kind', () => {
  expect(size(18_000)).toMatchObject({ documents_per_second_in_the_busiest_hour: 1, api_processes: 2, worker_processes: 2 })
  expect(size(1_800_000).worker_processes).toBe(Math.ceil(demand(100).worker_cores))
})

test('memory is that of the processes, and of what is in use of the databases', () => {
  const [small, large] = [size(10_000), size(5_000_000)]
  expect(small).toMatchObject({ gib_of_memory_of_api_processes: 1, gib_of_memory_of_worker_processes: 2 })
  expect(large.gib_of_memory_of_worker_processes).toBe(large.worker_processes)
  expect(large.gib_of_memory_of_postgresql).toBeGreaterThan(large.gib_of_postgresql_per_year / 365)
  // A host of Temporal caches 128,000 workflows at most, and the load needs three.
  expect(large.gib_of_memory_of_temporal).toBeLessThan(3 * size(1_000_000).gib_of_memory_of_temporal + 1)
})

test('the demand grows with the rate, and what a delivery takes with the number of destinations', () => {
  const [small, large] = [demand(100), demand(1_000)]
  expect(large.worker_cores / small.worker_cores).toBeCloseTo(10)
  expect(demand(100, 3).worker_cores / small.worker_cores).toBeCloseTo(3)
  expect(demand(100, 3).api_cores).toBe(small.api_cores)
})

test('Temporal has the work for a document that test/workflows/cost.system.test.ts counts', () => {
  expect(temporalWork(1)).toMatchObject({ events: 25, actions: 3, requests: 13 })
  expect(temporalWork(3)).toMatchObject({ events: 59, actions: 7 })
})
