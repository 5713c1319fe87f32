import { createTurns } from '../../src/home/turns.ts'

const never = new AbortController().signal

test('readers of a workspace wait in line, leave room for others, and give up in the end', async () => {
  const turns = createTurns({ total: 3, perWorkspace: 2, waitMs: 20 })
  const [first, second] = [await turns.take('one', never), await turns.take('one', never)]
  const [third, fourth] = [turns.take('one', never), turns.take('two', never)]
  const other = (await fourth)!
  expect(await third).toBeUndefined()
  const waits = turns.take('three', never)
  other()
  const next = (await waits)!
  const again = turns.take('one', never)
  first!()
  expect(await again).toBeInstanceOf(Function)
  const ended = new AbortController()
  const gone = turns.take('one', ended.signal)
  ended.abort()
  expect(await gone).toBeUndefined()
  for (const leave of [second!, next, (await again)!]) leave()
  expect(await turns.take('two', never)).toBeInstanceOf(Function)
})
