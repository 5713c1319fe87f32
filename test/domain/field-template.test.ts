import { fieldTemplateIssue, fillFields, valueIn } from '../../src/domain/field-template.ts'
import { toFieldValue } from '../../src/domain/field-values.ts'

const values = { erp_object_id: '100019000000012026', day: '20260302', name: 'Müller', vendor: '0000017300', emoji: '😀😀x' }

test.each([
  ['{erp_object_id[0:4]}', '1000'],
  ['{erp_object_id[4:14]}/{erp_object_id[14:]}', '1900000001/2026'],
  ['{erp_object_id[:4]}-{erp_object_id[30:40]}', '1000-'],
  ['{vendor|trim_zeros}', '17300'],
  ['{vendor|trim_zeros|zeros_12}', '000000017300'],
  ['{day|date}', '2026-03-02'],
  ['{day|date|yyyymmdd}', '20260302'],
  ['{name|upper} {name|lower}', 'MÜLLER müller'],
  ['{emoji[1:2]}', '😀'],
])('%s is filled', (template, filled) => {
  expect(fieldTemplateIssue(template, Object.keys(values))).toBeUndefined()
  expect(fillFields(template, values)).toBe(filled)
})

test('a field named constructor has the value that it was given, and none before', () => {
  expect(valueIn({}, 'constructor')).toBeUndefined()
  expect(valueIn({ constructor: 'x' }, 'constructor')).toBe('x')
  expect(fillFields('[{constructor}]', {})).toBe('[]')
  expect(fillFields('[{constructor}]', { constructor: 'x' })).toBe('[x]')
})

test.each([
  ['{other}', 'unknown placeholder {other}'],
  ['{name|reverse}', 'unknown filter reverse'],
  ['{name|constructor}', 'unknown filter constructor'],
  ['{name|zeros_41}', 'unknown filter zeros_41'],
  ['{name|trim|trim|trim|trim|trim}', 'more than 4 filters'],
  ['{name[a:b]}', 'is no placeholder'],
  ['{name', 'unmatched brace'],
])('%s is refused', (template, issue) => {
  expect(fieldTemplateIssue(template, Object.keys(values))).toContain(issue)
})

test.each([
  ['string', ' a\tb ', 'a b'],
  ['string', true, 'true'],
  ['number', '1190.00-', '-1190.00'],
  ['number', 12.5, '12.5'],
  ['number', ' +1190.00\n', '1190.00'],
  ['number', '-.50', '-0.50'],
  ['number', '5.', '5'],
  ['date', '20260302', '2026-03-02'],
  ['date', '2026-03-02T00:00:00', '2026-03-02'],
  ['date', '2026-03-02Z', '2026-03-02'],
  ['date', '2026-03-02+01:00', '2026-03-02'],
  ['date', '/Date(1772409600000)/', '2026-03-02'],
] as const)('a %s %j is kept as %s', (type, found, value) => {
  expect(toFieldValue(type, found)).toEqual({ value })
})

test.each([
  ['number', '1.190,00'],
  ['number', '-1-'],
  ['number', '.'],
  ['number', '1.19E3'],
  ['date', '20260230'],
  ['date', '00000000'],
  ['date', '/Date(999999999999999999)/'],
  ['string', ''],
  ['string', null],
  ['string', 'x'.repeat(201)],
  ['string', 'M\uFFFDller'],
] as const)('a %s %j counts as not found', (type, found) => {
  expect(toFieldValue(type, found)).toHaveProperty('problem')
})
