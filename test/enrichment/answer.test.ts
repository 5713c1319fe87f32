import { readFields } from '../../src/enrichment/answer.ts'

test('the first value of a path counts, and a field without one says why', () => {
  const text = JSON.stringify({ tables: { ROWS: [{ ID: '' }, { ID: '7' }, { ID: '8' }] } })
  const field = (name: string, path: string) => ({ name, path, type: 'string' as const, optional: false })
  expect(readFields({ text, fields: [field('id', "$.tables.ROWS[?@.ID != ''].ID"), field('none', '$.exports')] })).toEqual({
    values: { id: '7' },
    problems: [{ name: 'none', problem: 'is not in the answer', optional: false }],
  })
})
