import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { exitCodeOf } from '../../src/programs/programs.ts'
import { createTestDatabase } from '../support/database.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const scene = share(await startScene())
const { api, workspace } = scene
// A database of its own, as another program would have.
const queue = share(await createTestDatabase())
const { db } = queue
const programOf = (name: string) => fileURLToPath(new URL(`../../docs/examples/${name}.mjs`, import.meta.url))

const start = (name: string, variables: Record<string, string>) => {
  const child = spawn(process.execPath, [programOf(name)], { env: { PATH: process.env['PATH'], DATABASE_URL: queue.url, ...variables } })
  const ended = exitCodeOf(child)
  let [printed, errors] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  return {
    pid: child.pid!,
    lines: () => printed.split('\n').filter((line) => line !== ''),
    errors: () => errors,
    ended,
    end: async (signal: 'SIGKILL' | 'SIGTERM') => {
      child.kill(signal)
      return ended
    },
  }
}

type Acme = Awaited<ReturnType<typeof workspace>>
const variablesOf = ({ name, keys }: Acme, baseUrl = api.baseUrl) => ({
  RELAY_URL: baseUrl,
  RELAY_WORKSPACE: name,
  RELAY_API_KEY: keys.viewer,
})

beforeEach(async () => {
  await db.raw('drop table if exists event_queue, event_cursor')
})

const queued = async (): Promise<{ id: string; doc: string }[]> => {
  if (!(await db.schema.hasTable('event_queue'))) return []
  const { rows } = await db.raw<{ rows: { id: string; doc: string }[] }>(`select id, data->>'doc_id' as doc from event_queue order by id`)
  return rows
}

test('each event is in the queue once and in order, although the program is killed again and again', async () => {
  const acme = await workspace()
  let program = start('events-to-queue', variablesOf(acme))
  const sent: string[] = []
  for (let round = 0; round < 3; round += 1) {
    for (let each = 0; each < 20; each += 1) {
      await acme.source.create(`Q${sent.length}`, 'x')
      sent.push(`Q${sent.length}`)
    }
    await until('an event of this round is in the queue', async () => (await queued()).length > round * 20)
    await program.end('SIGKILL')
    program = start('events-to-queue', variablesOf(acme))
  }
  // The last program has something to do.
  await acme.source.create('LAST', 'x')
  sent.push('LAST')
  try {
    await until('every document is in the queue', async () => new Set((await queued()).map(({ doc }) => doc)).size === sent.length)
    const rows = await queued()
    const { rows: written } = await scene.db.raw<{ rows: { count: number }[] }>(
      'select count(*)::int as count from events where workspace_id = ?',
      [acme.workspaceId],
    )
    await until('every event is in the queue', async () => (await queued()).length === written[0]!.count)
    expect([...new Set(rows.map(({ doc }) => doc))]).toEqual(sent)
  } finally {
    expect(await program.end('SIGTERM')).toBe(0)
  }
}, 120_000)

test('two readers take each event of a running queue, and none of them twice', async () => {
  const acme = await workspace()
  const carrier = start('events-to-queue', variablesOf(acme))
  await until('the queue is there', () => db.schema.hasTable('event_queue'))
  const readers = [start('take-from-queue', {}), start('take-from-queue', {})]
  try {
    for (let each = 0; each < 30; each += 1) await acme.source.create(`T${each}`, 'x')
    await until('every event is taken', async () => {
      const rows = await db('event_queue').select('done_at')
      return rows.length >= 30 && rows.every(({ done_at: done }) => done !== null)
    })
    const { length: taken } = await db('event_queue').select('id')
    await until('every line is printed', () => readers.flatMap(({ lines }) => lines()).length >= taken)
    const ids = readers.flatMap(({ lines }) => lines()).map((line) => (JSON.parse(line) as { id: string }).id)
    expect(new Set(ids).size).toBe(ids.length)
  } finally {
    for (const program of [carrier, ...readers]) expect(await program.end('SIGTERM')).toBe(0)
  }
}, 120_000)

test('a second copy waits, and takes over', async () => {
  const acme = await workspace()
  const first = start('events-to-queue', variablesOf(acme))
  await acme.source.create('A1', 'x')
  await until('the first copy works', async () => (await queued()).length > 0)
  const second = start('events-to-queue', variablesOf(acme))
  await until('the second copy waits for the lock', async () => {
    const { rows } = await db.raw<{ rows: unknown[] }>(`select 1 from pg_locks where locktype = 'advisory' and not granted`)
    return rows.length > 0
  })
  await first.end('SIGKILL')
  await acme.source.create('A2', 'x')
  try {
    await until('the second copy works', async () => (await queued()).some(({ doc }) => doc === 'A2'))
  } finally {
    expect(await second.end('SIGTERM')).toBe(0)
  }
}, 120_000)

test('a cursor that is gone ends the program with status 1, and it says why', async () => {
  const acme = await workspace()
  const first = start('events-to-queue', variablesOf(acme))
  await acme.source.create('G1', 'x')
  await until('the cursor is stored', async () => (await queued()).length > 0)
  await first.end('SIGTERM')
  await db('event_cursor').update({ after: `${'f'.repeat(36)}0` })
  const again = start('events-to-queue', variablesOf(acme))
  expect(await again.ended).toBe(1)
  expect(again.errors()).toMatch(/The relay answers 4(?:10|22|00): /)
}, 60_000)

test('a relay that has too much to do is asked again after Retry-After', async () => {
  const acme = await workspace()
  let asked = 0
  const busy = createServer((request, response) => {
    asked += 1
    if (asked <= 2) return response.writeHead(asked === 1 ? 503 : 429, { 'retry-after': '0' }).end()
    const events = [{ id: 'e1', attributes: { event: 'document.received', created_at: new Date().toISOString(), data: { doc_id: 'B1' } } }]
    return response.end(
      JSON.stringify({ data: request.url!.includes('after=') ? [] : events, meta: { next_cursor: 'e1', has_more: false } }),
    )
  })
  busy.listen(0, '127.0.0.1')
  await once(busy, 'listening')
  const program = start('events-to-queue', variablesOf(acme, `http://127.0.0.1:${(busy.address() as AddressInfo).port}`))
  try {
    await until('the event is in the queue', async () => (await queued()).some(({ doc }) => doc === 'B1'))
    expect(asked).toBeGreaterThan(2)
  } finally {
    await program.end('SIGTERM')
    busy.close()
    busy.closeAllConnections()
  }
}, 60_000)
