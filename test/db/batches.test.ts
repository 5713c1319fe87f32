import { setImmediate as nextTurn } from 'node:timers/promises'
import { createBatches } from '../../src/db/batches.ts'

// No test waits for this time.
const never = 2 ** 31 - 1

/** Names of items, a letter each. */
const letters = (text: string) => text.split('')

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
    const results = letters('abcdef').map((name) => add(name))
    await nextTurn()
    results.push(...letters('ghijkl').map((name) => add(name)))
    await nextTurn()
    expect(begun).toEqual([letters('abcdef')])
    end(...letters('abcdefghijkl'))
    await expect(Promise.all(results)).resolves.toEqual(letters('ABCDEFGHIJKL'))
    expect(begun).toEqual([letters('abcdef'), letters('ghijkl')])
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

  test('of many callers, six run while the others come, and these run when as many have come', async () => {
    const { begun, add, end } = scene()
    const names = Array.from({ length: 12 }, (_, index) => `${index}`)
    const again = names.map((name) => `${name} again`)
    const addOneByOne = async (items: string[]) => {
      for (const item of items) {
        results.push(add(item))
        await nextTurn()
      }
    }
    const results = names.map((name) => add(name))
    await nextTurn()
    end(...names)
    await Promise.all(results)
    await addOneByOne(again.slice(0, 9))
    expect(begun).toEqual([names, again.slice(0, 6)])
    // Three are not enough at the end of the batch.
    end(...again)
    await Promise.all(results.slice(0, 18))
    await nextTurn()
    expect(begun).toHaveLength(2)
    await addOneByOne(again.slice(9))
    expect(begun).toEqual([names, again.slice(0, 6), again.slice(6)])
    await Promise.all(results)
  })

  test('a caller that others no longer come with waits once', async () => {
    const { begun, add, end } = scene({ maxWaitMs: 20 })
    const names = Array.from({ length: 50 }, (_, index) => `${index}`)
    end(...names, 'a', 'b')
    await Promise.all(names.map((name) => add(name)))
    const askedAt = performance.now()
    await add('a')
    // Timers may be a millisecond early.
    expect(performance.now() - askedAt).toBeGreaterThanOrEqual(19)
    void add('b')
    await nextTurn()
    expect(begun).toEqual([names, ['a'], ['b']])
  })

  test('nobody waits for more than a batch can have', async () => {
    const items = scene({ maxItems: 5 })
    const names = Array.from({ length: 20 }, (_, index) => `${index}`)
    items.end(...names, ...letters('abcde'))
    await Promise.all(names.map((name) => items.add(name)))
    await Promise.all(letters('abcde').map((name) => items.add(name)))
    expect(items.begun.at(-1)).toEqual(letters('abcde'))

    const bytes = scene({ maxBytes: 10 })
    bytes.end(...names, 'large', 'larger')
    await Promise.all(names.map((name) => bytes.add(name)))
    await Promise.all([bytes.add('large', 6), bytes.add('larger', 7)])
    expect(bytes.begun.slice(-2)).toEqual([['large'], ['larger']])
  })

  test('an item that does not end is no reason to wait for the others of its batch', async () => {
    const { begun, add, end } = scene()
    const results = [...letters('abcd'), 'stuck'].map((name) => add(name))
    await nextTurn()
    results.push(...letters('efghij').map((name) => add(name)))
    end(...letters('abcdefghij'))
    await Promise.all(results.toSpliced(4, 1))
    expect(begun).toEqual([[...letters('abcd'), 'stuck'], letters('efghij')])
    end('stuck')
    await results[4]
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
