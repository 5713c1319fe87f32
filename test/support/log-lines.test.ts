import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { linesOfLevel } from './log-lines.ts'

const run = promisify(execFile)

const program = `
  const { createLog } = await import(${JSON.stringify(new URL('../../src/base/log.ts', import.meta.url).href)})
  const log = createLog('debug')
  for (const level of ['debug', 'info', 'warn', 'error', 'fatal']) log[level]({ level_of_line: level }, 'a message with "level":"error"')
`

test('lines are selected by the levels that the relay writes', async () => {
  const { stderr } = await run(process.execPath, ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program])
  const selected = (...wanted: Parameters<typeof linesOfLevel>[1]) =>
    linesOfLevel(`incomplete"}\n${stderr}{broken\n(node) a warning\n`, wanted).map(
      (line) => (JSON.parse(line) as { level_of_line: string }).level_of_line,
    )
  expect(selected('warn', 'error', 'fatal')).toEqual(['warn', 'error', 'fatal'])
  expect(selected('error', 'fatal')).toEqual(['error', 'fatal'])
  expect(selected('info')).toEqual(['info'])
})

test('a level that the relay does not write is an error', () => {
  expect(() => linesOfLevel('{"level":50,"msg":"failed"}\n', ['error'])).toThrow('unknown level')
})
