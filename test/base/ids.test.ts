import { newId, timeOfId } from '../../src/base/ids.ts'

const idAt = (milliseconds: number) => {
  const { now } = Date
  Date.now = () => milliseconds
  try {
    return newId()
  } finally {
    Date.now = now
  }
}

test('ids increase, also within a millisecond and while the clock is adjusted by less than a second', () => {
  const now = Date.now()
  const ids = [idAt(now), idAt(now), idAt(now - 900), idAt(now + 1), idAt(now - 900)]
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
})

test('ids follow a clock that is set back, because they say when something happened', () => {
  const now = Date.now()
  idAt(now + 3_600_000)
  const after = [idAt(now), idAt(now)]
  expect(after.map((id) => timeOfId(id).getTime())).toEqual([now, now])
  expect(after.toSorted()).toEqual(after)
})
