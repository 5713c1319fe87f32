import { measuresOf, resultText } from '../../bench/support/tables.ts'

const result = { name: 'lists', date: '2026-11-23', commit: 'abc1234', hardware: '2 x CPU', settings: { rounds: 5 } }

test('a range is its median with its ends, a record is its entries, and a list is left out', () => {
  expect(
    measuresOf({ ratio: { min: 0.912, median: 1.04, max: 1.2 }, cpu_ms: { 'relay api': 3.14159 }, errors: 0, blocks: [{ ms: 1 }] }),
  ).toEqual([
    ['ratio', '1.04 (0.912 to 1.2)'],
    ['CPU ms: relay api', '3.14'],
    ['errors', '0'],
  ])
})

test('cases are the rows of a table, or its columns if there are many measures', () => {
  expect(resultText({ ...result, rows: [{ case: 'one', ms: 1234.5 }] })).toBe(
    '\n2026-11-23, commit abc1234, 2 x CPU. rounds: 5.\n\n|  | ms |\n|---|---|\n| one | 1,235 |\n',
  )
  const many = Object.fromEntries(Array.from({ length: 7 }, (_, index) => [`m${index}`, index]))
  const text = resultText({
    ...result,
    rows: [
      { case: 'one', ...many },
      { case: 'two', ...many },
    ],
  })
  expect(text).toContain('|  | one | two |\n|---|---|---|\n| m0 | 0 | 0 |')
})
