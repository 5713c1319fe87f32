import type { Participant } from '../../src/db/duties.ts'
import type { WorkerDescription } from '../../src/domain/relay-state.ts'
import { createRelayWatch } from '../../src/observe/relay-watch.ts'

const about = { name: '71@host', version: '1', buildId: null, startedAt: '2026-11-29T09:00:00.000Z' }
const present = { about, lastSeenAt: new Date(), isPresent: true }
const gone = { ...present, isPresent: false }

/** What a look finds. Undefined pollers: Temporal does not tell. */
interface Found {
  pollers?: string[] | Error | undefined
  workers?: Participant<WorkerDescription>[] | Error
}

const answer = async <T>(value: T | Error): Promise<T> => {
  if (value instanceof Error) throw value
  return value
}

const open = (graceMs = 0) => {
  const found: Found = {}
  const lines: string[] = []
  const log = { info: (_: object, text: string) => void lines.push(text), warn: (_: object, text: string) => void lines.push(text) }
  const watch = createRelayWatch(
    {
      listPollers: () => answer('pollers' in found ? found.pollers : ['71@host']),
      listWorkers: () => answer(found.workers ?? [present]),
      log: log as never,
    },
    graceMs,
  )
  const look = async (next: Found): Promise<string> => {
    delete found.pollers
    delete found.workers
    Object.assign(found, next)
    await watch.look()
    return watch.read().status
  }
  return { ...watch, look, lines }
}

const away = new Error('14 UNAVAILABLE')

test.each<[string, Found, string]>([
  ['a worker that runs', {}, 'working'],
  ['a worker that runs, of which Temporal does not tell', { pollers: undefined }, 'working'],
  ['no worker ever', { workers: [] }, 'no_worker'],
  ['a worker that is gone, although Temporal lists its last poll', { workers: [gone] }, 'no_worker'],
  ['a worker that does not reach Temporal', { pollers: [] }, 'no_worker'],
  ['a Temporal that does not answer', { pollers: away }, 'temporal_unavailable'],
  ['no Temporal and no worker', { pollers: away, workers: [gone] }, 'temporal_unavailable'],
])('%s', async (_, found, status) => {
  const { look } = open()
  await look(found)
  expect(await look(found)).toBe(status)
})

test('what is bad counts at the second look, what is good at once, and each change is logged once', async () => {
  const { look, read, lines } = open()
  const since = new Date()
  expect(await look({ workers: [gone] })).toBe('working')
  expect(await look({})).toBe('working')
  expect(await look({ workers: [gone] })).toBe('working')
  expect(await look({ pollers: away })).toBe('temporal_unavailable')
  expect(read().since.getTime()).toBeGreaterThanOrEqual(since.getTime())
  expect(await look({ pollers: away })).toBe('temporal_unavailable')
  expect(await look({ workers: [gone] })).toBe('no_worker')
  expect(await look({})).toBe('working')
  expect(lines).toEqual([
    'Temporal does not answer: documents are received and wait',
    'no worker is running: documents are received and wait',
    'deliveries go on: a worker runs, and Temporal answers',
  ])
})

test('without an answer of the database, what was known stays', async () => {
  const { look, read } = open()
  await look({ pollers: away })
  await look({ pollers: away })
  expect(await look({ workers: away })).toBe('temporal_unavailable')
  expect(read().workers).toEqual([{ ...about, lastSeenAt: present.lastSeenAt, isRunning: true }])
})

test('a process that has just been started waits for the first worker, and not for Temporal', async () => {
  const { look } = open(60_000)
  await look({ workers: [], pollers: [] })
  expect(await look({ workers: [], pollers: [] })).toBe('working')
  await look({ workers: [], pollers: away })
  expect(await look({ workers: [], pollers: away })).toBe('temporal_unavailable')
  await look({ workers: [gone] })
  expect(await look({ workers: [gone] })).toBe('no_worker')
})
