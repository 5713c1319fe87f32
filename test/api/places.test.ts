import { createFindInTurn, createPlaces, type Place } from '../../src/api/places.ts'
import { until } from '../support/until.ts'

const callerOf = (workspaceId: string, id = 'K1') =>
  ({ type: 'api_key', id: `${workspaceId}-${id}`, workspace: { id: workspaceId, userSlug: 'acme', workspaceSlug: workspaceId } }) as const

/** Asks for places. `admitted` has the names of those that have one, in order. */
const start = (limits: Parameters<typeof createPlaces>[0]) => {
  const places = createPlaces({ restMaxMs: 0, ...limits })
  const admitted: string[] = []
  const held = new Map<string, Place>()
  const ask = (name: string, workspaceId: string, key?: string) =>
    places.enter(callerOf(workspaceId, key)).then((place) => {
      admitted.push(name)
      held.set(name, place)
    })
  /** Asks without waiting for the place, or for a refusal. */
  const want = (...asked: Parameters<typeof ask>) => void ask(...asked).catch(() => {})
  const settle = () => new Promise(setImmediate)
  const leave = async (name: string) => {
    held.get(name)!.leave()
    held.delete(name)
    await settle()
  }
  return { admitted, held, ask, want, leave, settle }
}

test('a caller has a third of the places, a workspace half, and all workspaces together have all', async () => {
  const { admitted, want, settle } = start({ total: 6 })
  for (const key of ['K1', 'K2']) for (const turn of [1, 2, 3]) want(`A ${key} ${turn}`, 'A', key)
  for (const turn of [1, 2, 3]) want(`B ${turn}`, 'B', `K${turn}`)
  want('C 1', 'C')
  await settle()
  expect(admitted).toEqual(['A K1 1', 'A K1 2', 'A K2 1', 'B 1', 'B 2', 'B 3'])
})

test('a place that becomes free goes to the workspaces in turn, however many requests one of them has', async () => {
  const { admitted, want, leave, settle } = start({ total: 2 })
  for (let turn = 0; turn < 100; turn += 1) want(`A ${turn}`, 'A', `K${turn}`)
  await settle()
  want('B 0', 'B')
  want('B 1', 'B', 'K2')
  want('C 0', 'C')
  await settle()
  expect(admitted).toEqual(['A 0', 'B 0'])
  await leave('A 0')
  await leave('B 0')
  expect(admitted.slice(2)).toEqual(['A 1', 'B 1'])
  await leave('A 1')
  await leave('B 1')
  expect(admitted.slice(4)).toEqual(['C 0', 'A 2'])
})

test('one place is enough', async () => {
  const { admitted, want, leave } = start({ total: 1 })
  want('A', 'A')
  want('B', 'B')
  await until('the first has it', () => admitted.length === 1)
  await leave('A')
  expect(admitted).toEqual(['A', 'B'])
})

test('a request that waits for too long, or behind too many, is refused with Retry-After', async () => {
  const { admitted, ask, leave } = start({ total: 1, waitMaxMs: 20 })
  await ask('first', 'A')
  const waiting = Array.from({ length: 600 }, (_, turn) => ask(`${turn}`, 'A').catch((thrown: unknown) => thrown))
  const refused = await Promise.all(waiting)
  expect(refused).toEqual(refused.map(() => expect.objectContaining({ code: 'rate_limited', status: 429, retryAfterSeconds: 5 })))
  await leave('first')
  await ask('next', 'A')
  expect(admitted).toEqual(['first', 'next'])
})

test('a request that waits for something else has no place meanwhile, and gets one again, however long that takes', async () => {
  const { admitted, held, ask, want, leave, settle } = start({ total: 1, waitMaxMs: 20 })
  await ask('waiting', 'A')
  const { promise: event, resolve } = Promise.withResolvers<string>()
  const result = held.get('waiting')!.whileElsewhere(() => event)
  await ask('other', 'B')
  resolve('there')
  await new Promise((done) => setTimeout(done, 60))
  let isBack = false
  void result.then(() => (isBack = true))
  await settle()
  expect(isBack).toBe(false)
  await leave('other')
  expect(await result).toBe('there')
  want('next', 'B')
  await settle()
  expect(admitted).toEqual(['waiting', 'other'])
  await leave('waiting')
  expect(admitted.at(-1)).toBe('next')
})

test('a wait that fails gives its error, and the place is given back once', async () => {
  const { admitted, held, ask, want, leave, settle } = start({ total: 1 })
  await ask('one', 'A')
  await expect(held.get('one')!.whileElsewhere(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  const place = held.get('one')!
  await leave('one')
  place.leave()
  await ask('two', 'A')
  want('three', 'A')
  await settle()
  expect(admitted).toEqual(['one', 'two'])
})

test('a place rests as long as its request took while others of its workspace wait, and other workspaces do not wait for that', async () => {
  const { admitted, ask, want, leave, settle } = start({ total: 2, restMaxMs: 3_600_000 })
  await ask('A 1', 'A')
  want('A 2', 'A')
  await new Promise((resolve) => setTimeout(resolve, 100))
  await leave('A 1')
  want('B 1', 'B')
  want('C 1', 'C')
  await settle()
  expect(admitted).toEqual(['A 1', 'B 1', 'C 1'])
  await leave('B 1')
  expect(admitted).toHaveLength(3)
  await until('the rest is over', () => admitted.includes('A 2'))
})

test('keys are looked up in turn, one lookup of each at a time', async () => {
  const begun: string[] = []
  const ends: (() => void)[] = []
  const find = createFindInTurn((id) => {
    begun.push(id)
    return new Promise<string>((resolve) => ends.push(() => resolve(id)))
  })
  const found = [...Array.from({ length: 50 }, () => find('noisy')), find('quiet')]
  await until('two are looked up', () => begun.length === 2)
  expect(begun).toEqual(['noisy', 'quiet'])
  for (let end = 0; end < found.length; end += 1) {
    await until('a lookup has begun', () => ends.length > end)
    ends[end]!()
  }
  expect((await Promise.all(found)).at(-1)).toBe('quiet')
})
