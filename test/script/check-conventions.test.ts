import { findingsIn } from '../../script/check-conventions.ts'

const check = (text: string, path = 'src/example.ts') => findingsIn([{ path, text }]).map(({ line, rule }) => `${line} ${rule}`)

describe('words', () => {
  test.each([
    'const parcel = open()',
    'interface SealedParcels {}',
    '// the straggler of a page',
    'const choreDeps = {}',
    "import { runChores } from './run.ts'",
    '// one chore, two chores',
    'const { adviceOn } = remedies',
    '// we were told so',
    "test('two twins', run)",
    'const deliverOrGiveUp = () => {}',
    'type WireSettings = object',
    '// as it stands on the wire',
    "import { wireSchema } from './wire-schema.ts'",
    '// a delivery that needs a hand',
    '// after a retry by hand',
  ])('reports %s', (text) => {
    expect(check(text)).toContain('1 words')
  })

  test.each([
    '// anchored, untold, between, advised, intertwined',
    '// repositories wired to a destination; wiring; wireless',
    '// lines are wrapped by hand; on the other hand, the document is handed over',
    '// gives up after the last attempt',
  ])('accepts %s', (text) => {
    expect(check(text)).toEqual([])
  })

  test('the words in the path of a file are checked', () => {
    expect(check('', 'src/db/chores.ts')).toEqual(['1 words'])
  })

  test('only product text is checked', () => {
    expect(check('parcel', 'CHANGELOG.md')).toEqual([])
    expect(check('parcel', 'test/replay/delivered.json')).toEqual([])
    expect(check('parcel', 'docs/errors.md')).toEqual(['1 words'])
  })

  test('a finding names the file, the line, the word and the word to use', () => {
    expect(findingsIn([{ path: 'docs/a.md', text: 'one\ntwo parcels\n' }])).toEqual([
      { path: 'docs/a.md', line: 2, rule: 'words', text: 'parcel (use: payload)' },
    ])
  })
})

test('up to four doc comments may begin with a question word', () => {
  const question = '/** Whether it is open. */\n'
  const multiLine = '/**\n * What it holds.\n */\n'
  expect(check(question.repeat(3) + multiLine)).toEqual([])
  expect(check(question.repeat(4) + multiLine)).toEqual(['1', '2', '3', '4', '5'].map((line) => `${line} doc-comments`))
  expect(check('/** Returns what it holds. */\n'.repeat(5))).toEqual([])
})

describe('machine', () => {
  // Joined here, because the rule also applies to this file.
  const paths = [
    ['', 'work', 'notes.md'],
    ['', 'root', 'relay'],
    ['', 'tmp', 'bash_jobs.0'],
  ].map((parts) => parts.join('/'))
  const hosts = ['registry', 'proxy', 'repo1', 'deb'].map((name) => `https://${name}.example.com/simple`)

  test.each([...paths, ...hosts])('reports %s in any file', (text) => {
    expect(check(`\nsee ${text}`, 'package-lock.json')).toEqual(['2 machine'])
  })

  test.each(['https://docs.example.com', 'framework/index.html', 'https://schema.example.com/static.json'])('accepts %s', (text) => {
    expect(check(text, 'README.md')).toEqual([])
  })
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

describe('comment-length', () => {
  test('comment lines of src, workflows and activities have at most 140 characters', () => {
    const line = `  // ${'x'.repeat(136)}`
    expect(check(line, 'workflows/a.ts')).toEqual(['1 comment-length'])
    expect(check(`  -- ${'x'.repeat(136)}`)).toEqual(['1 comment-length'])
    expect(check(line.slice(1))).toEqual([])
    expect(check(line, 'test/a.ts')).toEqual([])
    expect(check(`const text = '${'x'.repeat(140)}'`)).toEqual([])
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
