import { logFailure, noteStatement, reasonOf } from '../../src/base/failure-log.ts'

const caused = (message: string, cause: unknown) => new Error(message, { cause })

const ofDriver = (statement: string, message: string) => {
  const error = new Error(`${statement} - ${message}`)
  noteStatement(error, statement)
  return error
}

test.each([
  [
    'the status of gRPC',
    caused('Failed to start Workflow', new Error('14 UNAVAILABLE: No connection established')),
    'Failed to start Workflow: 14 UNAVAILABLE: No connection established',
  ],
  ['several causes', caused('a', caused('b', caused('c', undefined))), 'a: b: c'],
  ['a cause that repeats', caused('the call failed: refused', new Error('refused')), 'the call failed: refused'],
  [
    'a statement of a driver',
    ofDriver('\n  select *\n  from documents - old', 'the connection - it is lost'),
    'the connection - it is lost',
  ],
  ['a cause with a statement', caused('not written', ofDriver('insert into a values ($1)', 'terminated')), 'not written: terminated'],
  ['a message with a stack', new Error('refused\n    at connect (net.js:1:1)'), 'refused'],
  [
    'several failures',
    new AggregateError([new Error('connect ECONNREFUSED ::1'), new Error('connect ECONNREFUSED 127.0.0.1')]),
    'connect ECONNREFUSED ::1; connect ECONNREFUSED 127.0.0.1',
  ],
  ['an error without a message', new TypeError(''), 'TypeError'],
  ['no error', 'Connection Error: it is lost\nat once', 'Connection Error: it is lost'],
  ['control characters', new Error('a\u0007b'), 'a b'],
])('the reason in a log line: %s', (_, thrown, reason) => {
  expect(reasonOf(thrown)).toBe(reason)
})

test('a reason is bounded, whatever the causes', () => {
  const endless: Error & { cause?: unknown } = new Error('x'.repeat(10_000))
  endless.cause = endless
  expect(reasonOf(endless)).toHaveLength(500)
})

test('one line per kind of failure and reason, whatever the numbers in it; those that repeat it are for debugging', () => {
  const lines: string[] = []
  const write = (level: string) => (fields: object, message: string) => void lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
  const log = { warn: write('warn'), debug: write('debug') } as never
  for (const ms of [998, 1_003]) {
    for (const id of ['A', 'B']) logFailure(log, new Error(`no answer within ${ms} ms`), 'not sent', { id })
    logFailure(log, new Error('no answer within 5 ms'), 'not read')
  }
  logFailure(log, new Error('refused'), 'not sent')
  expect(lines.filter((line) => line.startsWith('warn'))).toEqual([
    'warn not sent {"id":"A","reason":"no answer within 998 ms"}',
    'warn not read {"reason":"no answer within 5 ms"}',
    'warn not sent {"reason":"refused"}',
  ])
  expect(lines).toHaveLength(7)
  const other: string[] = []
  logFailure({ warn: (_: object, message: string) => void other.push(message) } as never, new Error('refused'), 'not sent')
  expect(other).toEqual(['not sent'])
})
