import { parseRange } from '../../src/http/attachments.ts'

test.each([
  ['bytes=0-0', { start: 0, end: 0 }],
  ['bytes=2-5', { start: 2, end: 5 }],
  ['Bytes = 2 - 5', { start: 2, end: 5 }],
  ['bytes=8-', { start: 8, end: 9 }],
  ['bytes=8-999', { start: 8, end: 9 }],
  ['bytes=-3', { start: 7, end: 9 }],
  ['bytes=-99', { start: 0, end: 9 }],
  ['bytes=10-', 'unsatisfiable'],
  ['bytes=10-20', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
  ['', undefined],
  ['bytes=-', undefined],
  ['bytes=5-2', undefined],
  ['bytes=0-1,3-4', undefined],
  ['bytes=a-b', undefined],
  ['lines=1-2', undefined],
  [`bytes=0-${'9'.repeat(400)}`, undefined],
])('the range %j of ten bytes is %j', (header, expected) => {
  expect(parseRange(header, 10)).toEqual(expected)
})

test('no range of an empty content can be satisfied', () => {
  expect(parseRange('bytes=0-', 0)).toBe('unsatisfiable')
  expect(parseRange('bytes=-1', 0)).toBe('unsatisfiable')
})
