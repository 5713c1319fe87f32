import { freeMemory } from '../../src/base/free-memory.ts'

test('a buffer with memory of its own is empty once that has been freed, also for who frees it again', () => {
  const bytes = Buffer.allocUnsafeSlow(10_000)
  freeMemory(bytes)
  freeMemory(bytes)
  expect(bytes).toHaveLength(0)
})

test('a buffer that shares its memory stays as it is', () => {
  const whole = Buffer.alloc(10_000, 'x')
  const [part, small] = [whole.subarray(1), Buffer.from('small')]
  freeMemory(part)
  freeMemory(small)
  expect([whole, part, small].map(({ length }) => length)).toEqual([10_000, 9_999, 5])
})
