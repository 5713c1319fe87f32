import type { BeginAs } from '../../src/db/starts.ts'
import { createTurns } from '../../src/temporal/turns.ts'

const queue = (workspaceId: string, beginAs: BeginAs = 'document') => ({ workspaceId, beginAs })
const none = new Set<string>()

/** Takes places one after the other, each of which is free again before the next. @returns the number of documents of each queue */
const takeMany = (turns: ReturnType<typeof createTurns>, queues: ReturnType<typeof queue>[], times: number) => {
  const counts: Record<string, number> = {}
  for (let time = 0; time < times; time += 1) {
    // Two places, of which the last is kept free.
    for (const { workspaceId, beginAs, documents } of turns.take(queues, new Set(queues.map(({ workspaceId: id }) => id)), 2)) {
      const key = `${workspaceId} ${beginAs}`
      counts[key] = (counts[key] ?? 0) + documents
    }
  }
  return counts
}

test('workspaces get equal shares, whatever waits in each', () => {
  expect(takeMany(createTurns(), [queue('A'), queue('B'), queue('C')], 30)).toEqual({
    'A document': 10,
    'B document': 10,
    'C document': 10,
  })
})

test('a release or a bulk retry gets a quarter of the share of new documents, and never nothing', () => {
  const queues = [queue('A'), queue('A', 'delivery'), queue('B', 'retry')]
  expect(takeMany(createTurns(), queues, 60)).toEqual({ 'A document': 40, 'A delivery': 10, 'B retry': 10 })
})

test('one place is kept for a workspace that has nothing open', () => {
  const turns = createTurns()
  expect(turns.take([queue('A')], none, 4)).toEqual([{ ...queue('A'), documents: 3 }])
  expect(turns.take([queue('A')], new Set(['A']), 1)).toEqual([])
  expect(turns.take([queue('A'), queue('B')], new Set(['A']), 1)).toEqual([{ ...queue('B'), documents: 1 }])
})

test('a workspace alone takes a single place', () => {
  expect(createTurns().take([queue('A')], none, 1)).toEqual([{ ...queue('A'), documents: 1 }])
})

test('a workspace that was idle has saved no turns up, and is not behind either', () => {
  const turns = createTurns()
  takeMany(turns, [queue('A'), queue('B')], 100)
  takeMany(turns, [queue('A')], 100)
  expect(takeMany(turns, [queue('A'), queue('B')], 20)).toEqual({ 'A document': 10, 'B document': 10 })
})
