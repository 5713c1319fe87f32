import { profiles } from '../../../clients/check-source/src/check.ts'
import { checks, checksOf } from '../../../clients/check-source/src/checks.ts'
import { facts } from '../../../clients/check-source/src/facts.ts'
import { describeEnd, describeResult, htmlOf, junitOf } from '../../../clients/check-source/src/report.ts'
import { isGood, type Report } from '../../../clients/check-source/src/run.ts'

test('each sentence about the protocol has a check, and each check is about a sentence', () => {
  const covered = new Set(checks.flatMap((check) => check.facts))
  expect([...covered].toSorted()).toEqual(Object.keys(facts).toSorted())
  expect(checks.filter((check) => check.facts.length === 0)).toEqual([])
})

test('each check has a name of its own, and each profile adds some', () => {
  expect(new Set(checks.map(({ id }) => id)).size).toBe(checks.length)
  const sizes = profiles.map((profile) => checksOf(profile).length)
  expect(sizes).toEqual([...new Set(sizes)].toSorted((one, other) => one - other))
  expect(checksOf('full')).toEqual(checks)
})

const report: Report = {
  version: '1.2.3',
  url: 'http://cs.example/script',
  cont_rep: 'Z<1>',
  profile: 'core',
  signed: true,
  server: 'ACME & Co',
  started_at: '2026-11-27T10:15:30.123Z',
  duration_ms: 1_234,
  passed: 1,
  failed: 1,
  not_offered: 1,
  not_checked: 1,
  interrupted: false,
  left_behind: ['ABC'],
  results: [
    { id: 'get', title: 'get returns bytes', status: 'passed', message: null, remedy: null, duration_ms: 5 },
    { id: 'info', title: 'info tells', status: 'failed', message: 'a "<b>" & \u0007', remedy: 'Do <this>.', duration_ms: 6 },
    { id: 'm-create', title: 'mCreate creates', status: 'not_offered', message: '400', remedy: null, duration_ms: 7 },
    { id: 'search', title: 'search finds', status: 'not_checked', message: 'no document', remedy: null, duration_ms: 0 },
  ],
}

test('a report for people has a line per check, and what to do', () => {
  expect([...report.results.flatMap(describeResult), ...describeEnd(report)]).toEqual([
    'ok    get: get returns bytes  5 ms',
    'FAIL  info: info tells: a "<b>" & \u0007  6 ms',
    '      Do: Do <this>.',
    '-     m-create: mCreate creates: not offered (400)  7 ms',
    '-     search: search finds: not checked (no document)',
    'http://cs.example/script, repository Z<1> (ACME & Co), signed, profile core',
    '1 passed, 1 failed, 1 not offered, 1 not checked, in 1.2 s.',
    'The server may still have 1 document: ABC',
  ])
  expect(describeEnd({ ...report, left_behind: [] }).at(-1)).toBe('Nothing was left behind: every document of the run is deleted.')
})

test('a report in JUnit XML has a test case per check', () => {
  const lines = junitOf(report).split('\n')
  expect(lines.slice(0, 3)).toEqual([
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites tests="4" failures="1" skipped="2" time="1.234">',
    '  <testsuite name="content-server-check: http://cs.example/script Z&lt;1&gt;" tests="4" failures="1" skipped="2" time="1.234" timestamp="2026-11-27T10:15:30">',
  ])
  expect(lines.slice(3, 7).map((line) => line.trim())).toEqual([
    '<testcase classname="content-server-check.core" name="get: get returns bytes" time="0.005"></testcase>',
    '<testcase classname="content-server-check.core" name="info: info tells" time="0.006"><failure message="a &quot;&lt;b&gt;&quot; &amp; ?">Do &lt;this&gt;.</failure></testcase>',
    '<testcase classname="content-server-check.core" name="m-create: mCreate creates" time="0.007"><skipped message="400"/></testcase>',
    '<testcase classname="content-server-check.core" name="search: search finds" time="0.000"><skipped message="no document"/></testcase>',
  ])
})

test('a report as a page needs no other file, and escapes what the server says', () => {
  const page = htmlOf(report)
  expect(page).not.toMatch(/<script|<link|src=|url\(|<b>/)
  expect(page).toContain('<strong>Do:</strong> Do &lt;this&gt;.')
  expect(page).toContain('Check of a content server: failed')
})

test.each<[string, Partial<Report>, boolean]>([
  ['a failed check', {}, false],
  ['a document that is left', { failed: 0 }, false],
  ['a run that was stopped', { failed: 0, left_behind: [], interrupted: true }, false],
  ['nothing of the kind', { failed: 0, left_behind: [] }, true],
])('a report with %s decides the exit status', (_, change, expected) => {
  expect(isGood({ ...report, ...change })).toBe(expected)
})
