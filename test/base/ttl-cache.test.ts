import { createTtlCache } from '../../src/base/ttl-cache.ts'

test('an entry is found until it expires', () => {
  let now = 0
  const cache = createTtlCache<string>({ maxEntries: 10, now: () => now })
  cache.set('a', 'value', 1_000)
  now = 999
  expect(cache.get('a')).toBe('value')
  now = 1_000
  expect(cache.get('a')).toBeUndefined()
})

test('an entry without an expiry time stays until it is deleted', () => {
  const cache = createTtlCache<string>({ maxEntries: 10, now: () => Number.MAX_SAFE_INTEGER })
  cache.set('a', 'value')
  expect(cache.get('a')).toBe('value')
  cache.delete('a')
  expect(cache.get('a')).toBeUndefined()
})

test('a full cache drops the least recently used entry and reports its value', () => {
  const evicted: string[] = []
  const cache = createTtlCache<string>({ maxEntries: 2, onEvict: (value) => evicted.push(value) })
  cache.set('a', 'first')
  cache.set('b', 'second')
  cache.get('a')
  cache.set('c', 'third')
  expect(evicted).toEqual(['second'])
  expect(['a', 'b', 'c'].map((key) => cache.get(key))).toEqual(['first', undefined, 'third'])
})

test('draining the cache returns every value and leaves the cache empty', () => {
  const cache = createTtlCache<string>({ maxEntries: 2 })
  cache.set('a', 'first')
  cache.set('b', 'second')
  expect(cache.drain()).toEqual(['first', 'second'])
  expect(cache.get('a')).toBeUndefined()
})
