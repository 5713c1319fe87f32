import { createWaiting } from '../../src/api/waiting.ts'
import { AppError } from '../../src/base/errors.ts'
import { logsTo } from '../support/logs.ts'
import { until } from '../support/until.ts'

const workspace = { id: 'W1', userSlug: 'acme', workspaceSlug: 'prod' }
const actor = { type: 'api_key', id: 'K1', workspace } as const
const { signal } = new AbortController()
const long = { actor, seconds: 3_600, signal }

const start = (limits: Parameters<typeof createWaiting>[1] = {}) => {
  const waiting = createWaiting(logsTo().log, { intervalMs: 5, ...limits })
  const looks: string[][] = []
  const there = new Map<string, string>()
  const topic = waiting.topic(async (keys) => {
    looks.push(keys)
    return new Map([...there].filter(([key]) => keys.includes(key)))
  })
  return { waiting, topic, looks, there }
}

test('requests that wait share one look, each gets what was found for its key, and none is made for no request', async () => {
  const { topic, looks, there } = start()
  const [one, same, other] = [topic.wait('a', long), topic.wait('a', long), topic.wait('b', long)]
  await until('a look was made', () => looks.length > 0)
  expect(looks[0]).toEqual(['a', 'b'])
  there.set('a', 'found a')
  expect(await Promise.all([one, same])).toEqual(['found a', 'found a'])
  there.set('b', 'found b')
  expect(await other).toBe('found b')
  const made = looks.length
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(looks.length).toBe(made)
})

test('a wait ends without anything when its time is over, when its client disconnects, and when the process stops', async () => {
  const { waiting, topic } = start()
  expect(await topic.wait('a', { ...long, seconds: 0.01 })).toBeUndefined()
  const client = new AbortController()
  const disconnected = topic.wait('a', { ...long, signal: client.signal })
  client.abort()
  expect(await disconnected).toBeUndefined()
  const stopped = topic.wait('a', long)
  await waiting.close()
  expect(await stopped).toBeUndefined()
  expect(await topic.wait('a', long)).toBeUndefined()
})

test('too many requests are refused, and may wait again when others have ended', async () => {
  const { waiting, topic, there } = start({ maxWaiting: 3, maxWaitingPerActor: 2 })
  const waits = [topic.wait('a', long), topic.wait('a', long)]
  const refused = await topic.wait('a', long).catch((thrown: unknown) => thrown)
  expect(refused).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 5 })
  waits.push(topic.wait('a', { ...long, actor: { ...actor, type: 'user' } }))
  const others = topic.wait('a', { ...long, actor: { ...actor, id: 'K2' } })
  await expect(others).rejects.toThrow(AppError)
  await expect(others).rejects.toMatchObject({ code: 'unavailable' })
  there.set('a', 'found')
  expect(await Promise.all(waits)).toEqual(['found', 'found', 'found'])
  expect(await topic.wait('a', long)).toBe('found')
  await waiting.close()
})

test('a workspace does not use up the places of the others, however many keys it has', async () => {
  const { waiting, topic } = start({ maxWaiting: 3, maxWaitingPerWorkspace: 2 })
  const of = (workspaceId: string, id: string) =>
    topic.wait('a', { ...long, actor: { ...actor, id, workspace: { ...workspace, id: workspaceId } } })
  const waits = [of('W1', 'K1'), of('W1', 'K2')]
  await expect(of('W1', 'K3')).rejects.toMatchObject({ code: 'rate_limited' })
  waits.push(of('W2', 'K4'))
  await waiting.close()
  expect(await Promise.all(waits)).toEqual([undefined, undefined, undefined])
})

test('a look that fails is repeated', async () => {
  const waiting = createWaiting(logsTo().log, { intervalMs: 5 })
  let looks = 0
  const topic = waiting.topic(async () => {
    looks += 1
    if (looks < 3) throw new Error('connection lost')
    return new Map([['a', true]])
  })
  expect(await topic.wait('a', long)).toBe(true)
})
