import { createConcurrencyLimit } from '../../src/base/concurrency-limit.ts'

test('a limit holds in all and per workspace, and what has ended makes room', () => {
  const limit = createConcurrencyLimit(() => ({ total: 3, perWorkspace: 2 }))
  const first = limit.begin('A')
  expect(first).toBeDefined()
  expect(limit.begin('A')).toBeDefined()
  expect(limit.begin('A')).toBeUndefined()
  expect(limit.begin('B')).toBeDefined()
  expect(limit.begin('B')).toBeUndefined()
  expect(limit.begin('C')).toBeUndefined()
  first!()
  expect(limit.begin('C')).toBeDefined()
  expect(limit.begin('A')).toBeUndefined()
})
