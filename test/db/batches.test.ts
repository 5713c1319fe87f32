import { setImmediate as nextTurn } from 'node:timers/promises'
import { createBatches } from '../../src/db/batches.ts'

// No test waits for this time.
const never = 2 ** 31 - 1

/** Creates batches whose items end when the test says so, and the list of the batches that have begun. */
const scene = ({ maxItems = 100, maxBytes = 100, maxWaitMs = never } = {}) => {
  const begun: string[][] = []
  const ends = new Map<string, PromiseWithResolvers<string>>()
  const endOf = (item: string) => {
    const end = ends.get(item) ?? Promise.withResolvers<string>()
    ends.set(item, end)
    return end
  }
  const add = createBatches(
    (items: string[]) => {
      begun.push(items)
      return items.map((item) => endOf(item).promise)
    },
    { maxItems, maxBytes, maxWaitMs },
  )
  return { begun, add, end: (...items: string[]) => items.forEach((item) => endOf(item).resolve(item.toUpperCase())), endOf }
}

describe('items that run in batches', () => {
  test('an item runs at once if nothing else does', async () => {
    const { begun, add, end } = scene()
    const result = add('a')
    await nextTurn()
    expect(begun).toEqual([['a']])
    end('a')
    await expect(result).resolves.toBe('A')
  })

  test('items of the same turn, and items that arrive while others run, run together', async () => {
    const { begun, add, end } = scene()
    const results = [add('a'), add('b')]
    await nextTurn()
    results.push(add('c'), add('d'))
    await nextTurn()
    expect(begun).toEqual([['a', 'b']])
    end('a', 'b', 'c', 'd')
    await expect(Promise.all(results)).resolves.toEqual(['A', 'B', 'C', 'D'])
    expect(begun).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ])
  })

  test('an item that has waited long enough does not wait for the end of a running batch', async () => {
    const { begun, add, end } = scene({ maxWaitMs: 1 })
    const first = add('a')
    await nextTurn()
    end('b')
    await expect(add('b')).resolves.toBe('B')
    expect(begun).toEqual([['a'], ['b']])
    end('a')
    await first
  })

  test('a batch has no more items and bytes than the limits, except for a single larger item', async () => {
    const { begun, add, end } = scene({ maxItems: 2, maxBytes: 10 })
    const results = [add('a', 1), add('b', 1), add('c', 1), add('d', 10), add('e', 11), add('f', 0)]
    await nextTurn()
    expect(begun).toEqual([['a', 'b'], ['c'], ['d'], ['e'], ['f']])
    end('a', 'b', 'c', 'd', 'e', 'f')
    await Promise.all(results)
  })

  test('the first of several callers that come back waits for the others', async () => {
    const { begun, add, end } = scene()
    const first = [add('a'), add('b'), add('c')]
    await nextTurn()
    end('a', 'b', 'c', 'd', 'e', 'f')
    await Promise.all(first)
    const second = [add('d')]
    await nextTurn()
    second.push(add('e'))
    await nextTurn()
    expect(begun).toEqual([['a', 'b', 'c']])
    second.push(add('f'))
    await Promise.all(second)
    expect(begun).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e', 'f'],
    ])
  })

  test('of many callers, a half of them runs while the others come', async () => {
    const { begun, add, end } = scene()
    const names = Array.from({ length: 10 }, (_, index) => `${index}`)
    const later = names.map((name) => `${name} again`)
    const first = names.map((name) => add(name))
    await nextTurn()
    end(...names)
    await Promise.all(first)
    const second = []
    for (const name of later.slice(0, 8)) {
      second.push(add(name))
      await nextTurn()
    }
    expect(begun).toEqual([names, later.slice(0, 5)])
    // The end of a batch begins the next one as soon as there are enough.
    second.push(...later.slice(8).map((name) => add(name)))
    end(...later)
    await Promise.all(second)
    expect(begun).toEqual([names, later.slice(0, 5), later.slice(5)])
  })

  test('a caller that others no longer come with waits for the time, and after a few more for nothing', async () => {
    const { begun, add, end } = scene({ maxWaitMs: 1 })
    const names = Array.from({ length: 8 }, (_, index) => `${index}`)
    const alone = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
    end(...names, ...alone)
    await Promise.all(names.map((name) => add(name)))
    for (const name of alone) await add(name)
    expect(begun).toEqual([names, ...alone.map((name) => [name])])
    const last = add('last')
    await nextTurn()
    expect(begun.at(-1)).toEqual(['last'])
    end('last')
    await last
  })

  test('an item that fails does not affect the others of its batch, nor the next batch', async () => {
    const { begun, add, end, endOf } = scene({ maxWaitMs: 1 })
    const results = [add('a'), add('b')]
    await nextTurn()
    endOf('a').reject(new Error('refused'))
    end('b', 'c')
    await expect(results[0]).rejects.toThrow('refused')
    await expect(results[1]).resolves.toBe('B')
    await expect(add('c')).resolves.toBe('C')
    expect(begun).toEqual([['a', 'b'], ['c']])
  })
})
