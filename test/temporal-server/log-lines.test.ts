import { PassThrough } from 'node:stream'
import { forwardLog, isOfStart, readLogLine } from '../../src/temporal-server/log-lines.ts'

test('a line of Temporal becomes level, text and fields, on one line and bounded, without its place in the source code', () => {
  const line = JSON.stringify({
    level: 'warn',
    ts: '2026-11-29T11:00:00Z',
    msg: 'shard\nlost',
    error: `${'e'.repeat(5_000)}\u001b[31m`,
    'shard-id': 3,
    stacktrace: 'at',
    'logging-call-at': 'x.go:1',
  })
  const { level, text, fields } = readLogLine(line)
  expect([level, text]).toEqual(['warn', 'shard lost'])
  expect(Object.keys(fields)).toEqual(['error', 'shard-id'])
  expect(fields['error']).toHaveLength(1_000)
})

test.each([
  ['{"level":"fatal","msg":"x"}', 'error', 'x'],
  ['panic: \u0007oh', 'error', 'panic: oh'],
  ['null', 'error', 'null'],
  ['{"level":"constructor","msg":"x"}', 'error', 'x'],
])('the line %s is logged with a level that the log has', (line, level, text) => {
  expect(readLogLine(line)).toMatchObject({ level, text })
})

// Lines of Temporal 1.31.2, shortened: at a restart, under load, and without PostgreSQL.
test.each([
  [
    true,
    '{"level":"error","msg":"service failures","operation":"PollWorkflowTaskQueue","wf-namespace":"default","grpc_code":"Unavailable","error":"Frontend is not healthy yet"}',
  ],
  [
    true,
    '{"level":"error","msg":"service failures","operation":"GetSystemInfo","grpc_code":"Unavailable","error":"Frontend is not healthy yet"}',
  ],
  [true, '{"level":"error","msg":"service failures","operation":"StartWorkflowExecution","error":"Not enough hosts to serve the request"}'],
  [
    false,
    '{"level":"error","msg":"Operation failed with internal error.","error":"GetTransferTasks operation failed. Select failed. Error: timeout: i/o timeout"}',
  ],
  [false, '{"level":"error","msg":"Update workflow execution operation failed.","error":"context deadline exceeded"}'],
  [
    false,
    '{"level":"fatal","msg":"unable to start","error":"sql schema version compatibility check failed: dial tcp 127.0.0.1:5432: connect: connection refused"}',
  ],
  [false, 'Frontend is not healthy yet'],
])('%s: a line that only a start writes: %s', (expected, line) => {
  expect(isOfStart(readLogLine(line))).toBe(expected)
})

test('a flood of lines is not written, and while Temporal stops nothing it says is an error', async () => {
  const levels: string[] = []
  const write = (level: string) => () => void levels.push(level)
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') } as never
  const output = new PassThrough()
  let isQuiet = false
  const last = forwardLog(output, log, () => isQuiet)
  output.write('{"level":"error","msg":"no database","error":"refused"}\n'.repeat(500))
  await new Promise(setImmediate)
  const count = (level: string) => levels.filter((each) => each === level).length
  expect([count('error'), count('debug')]).toEqual([60, 440])
  expect(last().split(' | ')).toEqual(Array.from({ length: 6 }, () => 'no database: refused'))
  isQuiet = true
  output.end('{"level":"error","msg":"bye"}\n')
  await new Promise(setImmediate)
  expect(count('error')).toBe(60)
})
