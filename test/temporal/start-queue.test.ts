import { setTimeout as sleep } from 'node:timers/promises'
import { createStartQueue } from '../../src/temporal/start-queue.ts'

const unpaced = { delayMs: () => 0 }
const never = Number.POSITIVE_INFINITY

/** Creates a queue whose starts last until `finish` is called for the oldest of them. */
const createQueue = ({ atATime = 1, waiting = 100, pace = unpaced } = {}) => {
  const queue = createStartQueue(pace, { maxConcurrent: atATime, maxWaiting: waiting })
  const started: string[] = []
  const dropped: string[] = []
  const finishing: (() => void)[] = []
  const start = (name: string, expiresAt = never) => ({
    run: () => {
      started.push(name)
      return new Promise<void>((resolve) => void finishing.push(resolve))
    },
    drop: () => void dropped.push(name),
    expiresAt,
  })
  return {
    ...queue,
    started,
    dropped,
    offer: (name: string, expiresAt?: number) => queue.offer(name.split('/')[0]!, start(name, expiresAt)),
    add: (name: string) => queue.add(name.split('/')[0]!, start(name)),
    finish: async () => {
      finishing.shift()!()
      await sleep(0)
    },
    finishAll: async () => {
      while (finishing.length > 0) {
        finishing.shift()!()
        await sleep(0)
      }
    },
  }
}

test('no more starts are under way than allowed', async () => {
  const queue = createQueue({ atATime: 3 })
  for (let index = 0; index < 10; index += 1) queue.add(`a/${index}`)
  expect(queue.started).toEqual(['a/0', 'a/1', 'a/2'])
  await queue.finish()
  expect(queue.started).toHaveLength(4)
  await queue.finishAll()
  expect(queue.started).toHaveLength(10)
})

test('the starts of a workspace keep their order, and workspaces take turns', async () => {
  const queue = createQueue()
  for (const name of ['a/0', 'a/1', 'a/2', 'a/3', 'b/0', 'c/0', 'b/1']) queue.add(name)
  await queue.finishAll()
  expect(queue.started).toEqual(['a/0', 'a/1', 'b/0', 'c/0', 'a/2', 'b/1', 'a/3'])
})

test('one workspace leaves as much room as it takes, and an idle queue takes a start in any case', async () => {
  const queue = createQueue({ atATime: 1, waiting: 6 })
  const taken = Array.from({ length: 10 }, (_, index) => queue.offer(`a/${index}`))
  // One is under way, three wait, and three places are left.
  expect(taken.filter(Boolean)).toHaveLength(4)
  expect([queue.offer('b/0'), queue.offer('b/1'), queue.offer('c/0')]).toEqual([true, true, true])
  expect(queue.offer('d/0')).toBe(false)
  await queue.finishAll()

  const small = createQueue({ atATime: 1, waiting: 0 })
  expect([small.offer('a/0'), small.offer('b/0')]).toEqual([true, false])
  await small.finishAll()
})

test('a start that has waited for too long is dropped', async () => {
  const queue = createQueue()
  queue.offer('a/0')
  queue.offer('a/1', performance.now())
  queue.offer('a/2')
  await sleep(1)
  await queue.finishAll()
  expect({ started: queue.started, dropped: queue.dropped }).toEqual({ started: ['a/0', 'a/2'], dropped: ['a/1'] })
})

test('starts wait for the pace', async () => {
  const beganAt = performance.now()
  const pace = { delayMs: (): number => Math.max(0, 50 * queue.started.length - (performance.now() - beganAt)) }
  const queue = createQueue({ atATime: 10, pace })
  for (const name of ['a/0', 'a/1', 'a/2']) queue.add(name)
  expect(queue.started).toEqual(['a/0'])
  while (queue.started.length < 3) await sleep(5)
  // A timer may fire a millisecond early.
  expect(performance.now() - beganAt).toBeGreaterThan(95)
  await queue.finishAll()
})

test('closing drops what waits, and waits for the starts under way', async () => {
  const queue = createQueue()
  queue.add('a/0')
  queue.add('a/1')
  let isClosed = false
  const closing = queue.close().then(() => (isClosed = true))
  await sleep(0)
  expect({ isClosed, dropped: queue.dropped }).toEqual({ isClosed: false, dropped: ['a/1'] })
  await queue.finish()
  await closing
  queue.add('a/2')
  expect(queue).toMatchObject({ started: ['a/0'], dropped: ['a/1', 'a/2'] })
})
