import { findingsIn } from '../../script/check-conventions.ts'

const check = (text: string, path = 'src/example.ts') => findingsIn([{ path, text }]).map(({ line, rule }) => `${line} ${rule}`)

test('a finding names the file, the line, the rule and the text', () => {
  const text = "one\nupdate deliveries set status = 'failed'"
  expect(findingsIn([{ path: 'src/a.ts', text }])).toEqual([
    {
      path: 'src/a.ts',
      line: 2,
      rule: 'delivery-status',
      text: 'only src/delivery changes it: update deliveries set status =',
    },
  ])
})

describe('delivery-status', () => {
  const inSql = "db.raw(`\n  update deliveries\n  set attempts = attempts + 1, status = 'failed'\n  where true\n`)"
  const byBuilder = "await trx('deliveries')\n  .where({ document_id: id })\n  .update({ status, delivered_at: null })"

  test('a change is reported outside src/delivery, in SQL and by the query builder', () => {
    expect(check(inSql)).toEqual(['2 delivery-status'])
    expect(check(byBuilder)).toEqual(['1 delivery-status'])
  })

  test.each(['src/delivery/cancel.ts', 'migrations/0008_add_status.sql', 'test/db/deliveries.test.ts'])(
    '%s may change the status',
    (path) => {
      expect(check(inSql, path)).toEqual([])
      expect(check(byBuilder, path)).toEqual([])
    },
  )

  test.each([
    "db.raw(`update deliveries set overwrites = 1 where status = 'failed'`)",
    "db.raw(`update deliveries set overwrites = 1 from documents where documents.status = 'failed'`)",
    "db.raw(`update deliveries set overwrites = 1`)\ndb.raw(`update documents set status = 'failed'`)",
    "db.raw(`update deliveries set attempts = case when status = 'failed' then 0 else 1 end`)",
    "trx('deliveries').where({ status }).update({ overwrites: 1 })",
    "await trx('deliveries').where({ id })\nawait trx('documents').update({ status })",
  ])('%j is accepted', (text) => {
    expect(check(text)).toEqual([])
  })
})

describe('contract-migration', () => {
  const later = 'migrations/0008_example.sql'

  test.each([
    'alter table documents drop column traceparent',
    'drop table aggregates',
    'alter table documents rename column title to name',
    'alter table documents alter column title set not null',
    'alter table documents alter column size type integer',
    'alter table documents add column title text not null',
  ])('reports %s, unless the migration states what it requires', (sql) => {
    expect(check(sql, later)).toEqual(['1 contract-migration'])
    expect(check(`${sql}; insert into required_migrations (name) values ('0007_expand')`, later)).toEqual([])
  })

  test.each([
    'create table titles (name text not null)',
    'alter table documents add column title text',
    "alter table documents add column title text not null default '', add column name text default '' not null",
    'alter table documents drop constraint documents_check, alter column title drop not null',
    'drop index documents_title',
  ])('accepts %s', (sql) => {
    expect(check(sql, later)).toEqual([])
  })
})
