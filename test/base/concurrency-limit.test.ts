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

test('work that somebody asks for is refused with 429 for a limit of its own, and with 503 for that of the process', () => {
  const limit = createConcurrencyLimit(() => ({ total: 3, perWorkspace: 2, perCaller: 1 }))
  const enter = (workspaceId: string, caller: string) => limit.enter({ workspaceId, caller, what: 'running exports', retryAfterSeconds: 7 })
  const leave = enter('A', 'K1')
  expect(() => enter('A', 'K1')).toThrow(
    expect.objectContaining({
      status: 429,
      retryAfterSeconds: 7,
      message: 'This API key or person has too many running exports. Try again shortly.',
    }),
  )
  enter('A', 'K2')
  expect(() => enter('A', 'K3')).toThrow(expect.objectContaining({ status: 429 }))
  enter('B', 'K1')
  expect(() => enter('C', 'K1')).toThrow(expect.objectContaining({ status: 503 }))
  leave()
  enter('C', 'K1')
})
