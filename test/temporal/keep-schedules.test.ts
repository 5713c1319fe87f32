import { keepSchedules } from '../../src/temporal/schedules.ts'
import { logsTo } from '../support/logs.ts'
import { until } from '../support/until.ts'

test('a check of the maintenance jobs that fails once is not worth a warning, and three failures in a row are', async () => {
  const lines: string[] = []
  const levels = () => lines.map((line) => (JSON.parse(line) as { level: string }).level)
  const answers = ['fails', 'fails', 'succeeds', 'fails', 'fails', 'fails']
  const stop = keepSchedules(
    {
      ensure: async () => {},
      replaceStuck: async () => [],
      findMissing: async () => {
        if ((answers.shift() ?? 'succeeds') === 'succeeds') return []
        throw new Error('Failed to describe schedule', { cause: new Error('4 DEADLINE_EXCEEDED: Deadline exceeded') })
      },
    },
    [],
    {
      areEnsured: true,
      temporal: { registerSearchAttributes: async () => {} },
      catchUp: async () => {},
      config: { RECONCILE_INTERVAL_MS: 1 },
      log: logsTo(lines).log,
    },
  )
  await until('every answer was given', () => answers.length === 0)
  await stop()
  expect(levels()).toEqual(['debug', 'debug', 'debug', 'debug', 'warn'])
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({ reason: 'Failed to describe schedule: 4 DEADLINE_EXCEEDED: Deadline exceeded' })
})

test('schedules that could not be created at the start are created as soon as the server answers', async () => {
  const lines: string[] = []
  const calls: string[] = []
  const answers = ['fails', 'succeeds']
  const stop = keepSchedules(
    {
      ensure: async () => {
        calls.push('ensure')
        if (answers.shift() === 'fails') throw new Error('14 UNAVAILABLE: Not enough hosts to serve the request')
      },
      replaceStuck: async () => [],
      findMissing: async () => {
        calls.push('findMissing')
        return []
      },
    },
    [],
    {
      areEnsured: false,
      temporal: { registerSearchAttributes: async () => {} },
      catchUp: async () => {},
      config: { RECONCILE_INTERVAL_MS: 1 },
      log: logsTo(lines).log,
    },
  )
  await until('the schedules are checked as usual', () => calls.includes('findMissing'))
  await stop()
  expect(calls.slice(0, 3)).toEqual(['ensure', 'ensure', 'findMissing'])
})
