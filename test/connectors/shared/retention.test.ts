import { retainUntilOf } from '../../../src/connectors/shared/retention.ts'

const receivedAt = new Date('2026-03-02T10:15:30Z')
const now = new Date('2026-03-03T00:00:00Z')
const template = '{meta.end}'

test.each([
  ['nothing', {}, {}, undefined],
  ['days from the receipt', { retain_days: 10 }, {}, '2026-03-12T10:15:30.000Z'],
  ['days that are past', { retain_days: 0.5 }, {}, undefined],
  ['a day', { retain_until: template }, { end: '2036-12-31' }, '2036-12-31T23:59:59.000Z'],
  ['a day as SAP writes it', { retain_until: template }, { end: ' 20361231' }, '2036-12-31T23:59:59.000Z'],
  ['a time', { retain_until: template }, { end: '2036-12-31T12:00:00+01:00' }, '2036-12-31T11:00:00.000Z'],
  ['a day that is past', { retain_until: template }, { end: '2020-01-01' }, undefined],
  ['a day before days', { retain_until: template, retain_days: 10 }, { end: '2036-12-31' }, '2036-12-31T23:59:59.000Z'],
  ['days in place of a day', { retain_until: template, retain_days: 10 }, { other: 'x' }, '2026-03-12T10:15:30.000Z'],
])('of %s', (_, config, fields: Record<string, string>, until) => {
  expect(retainUntilOf(config, { fields, receivedAt }, now)?.toISOString()).toBe(until)
})

test.each([
  ['is not known', {}, {}],
  ['is no date', { end: 'soon' }, {}],
  ['is no date', { end: '20361331' }, { retain_days: 10 }],
  ['is not known', { constructor: 'x' }, {}],
])('a date that %s stores nothing', (reason, fields: Record<string, string>, more) => {
  expect(() => retainUntilOf({ retain_until: template, ...more }, { fields, receivedAt }, now)).toThrow(
    expect.objectContaining({ code: 'retention_unknown', message: expect.stringContaining(reason) }),
  )
})
