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

describe('plain-english', () => {
  test.each([
    '/** Of the operator. */',
    '/**\n * Between two looks\n * at a file.\n */',
    '// Of a few hundred bytes.',
    '/** Starts a job anew. */',
    '// The target was asked in\n  // vain.',
    '/** Returns what was written meanwhile. */',
    '// It is refused from then on.',
    '// The other one is read, too.',
    '// Other work ran beside.',
    '/** Documents that nobody reads. */',
    '/** Whoever waits is told. */',
  ])('reports %j', (text) => {
    expect(check(text)).toEqual([expect.stringMatching(/^\d plain-english$/)])
  })

  test('a comment behind code is read', () => {
    const behind = '// somebody waits'
    expect(check(`const a = 1 ${behind}`)).toEqual(['1 plain-english'])
  })

  test('a finding has the line on which its comment begins, and says what to avoid', () => {
    expect(findingsIn([{ path: 'src/a.ts', text: "const a = 'x'\n\n/** Waits in vain. */" }])).toEqual([
      { path: 'src/a.ts', line: 3, rule: 'plain-english', text: 'say it without "in vain"' },
    ])
  })

  test.each([
    '/** Returns the address of the operator. */',
    '// In SQL, a null is no value.',
    '// Of two documents, the first one wins.',
    '// It runs as `nobody`.',
    '// It is too late, and the file beside it is older.',
    "const text = 'Somebody waits, too.'",
    "const address = 'https://nobody.example'",
  ])('accepts %j', (text) => {
    expect(check(text)).toEqual([])
  })

  test('the words are reported on pages too, but not in their commands, and not in measurements and decision records', () => {
    const page = 'It is read,\ntoo.\n\n```bash\nlook beside.\n```\n\nNobody asks.\n'
    expect(check(page, 'docs/page.md')).toEqual(['1 plain-english'])
    expect(check(page, 'docs/adr/0001-page.md')).toEqual([])
    expect(check(page, 'docs/measurements/page.md')).toEqual([])
  })
})
