import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { commandsOf } from '../docs/commands.ts'
import { createTestDatabase } from '../support/database.ts'
import { createFolder } from '../support/folder.ts'
import { fullOr } from '../support/full-run.ts'
import { share } from '../support/share.ts'
import { temporalVariables } from '../support/temporal-cluster.ts'
import { startTemporalServer } from '../support/temporal-server.ts'

// The quick form of each benchmark: it proves that the benchmark runs. Its numbers mean nothing.

const testTimeoutMs = 300_000

const [database, temporal] = await Promise.all([createTestDatabase().then(share), startTemporalServer().then(share)])

const runQuick = async (name: string, options: string[] = []): Promise<{ case: string }[]> => {
  const module = fileURLToPath(new URL(`../../bench/${name}.ts`, import.meta.url))
  const env = { ...process.env, DATABASE_URL: database.url, ...temporalVariables(temporal) }
  const { stdout } = await promisify(execFile)(process.execPath, [module, '--quick', '--json', ...options], { env })
  const result = JSON.parse(stdout) as { name: string; rows: { case: string }[] }
  expect(result).toMatchObject({ name, hardware: expect.any(String), commit: expect.any(String) })
  return result.rows
}

const positive = { median: expect.any(Number) }

test(
  'accept measures creates with nothing to deliver, while delivering, and those of the floor',
  async () => {
    expect(await runQuick('accept', ['--server'])).toEqual([
      expect.objectContaining({
        case: '1 KiB',
        held: expect.objectContaining({ per_second: expect.objectContaining(positive) }),
        delivering: expect.objectContaining({ per_second: expect.objectContaining(positive) }),
        floor: expect.objectContaining({ per_second: expect.objectContaining(positive) }),
        delivering_to_held: expect.objectContaining(positive),
      }),
    ])
  },
  testTimeoutMs,
)

test(
  'content-server measures reading and the mix of commands without errors, and writes the profile that docs/performance.md describes',
  async () => {
    const page = { path: 'docs/performance.md', text: await readFile(new URL('../../docs/performance.md', import.meta.url), 'utf8') }
    const [, name, ...options] = commandsOf(page).find(({ words }) => words.includes('--node-option=--cpu-prof'))!.words
    await using folder = await createFolder()
    // The command of the page reads only, for a short profile.
    expect(options.splice(0, 2)).toEqual(['--only', 'get'])
    const rows = await runQuick(
      name!,
      options.map((option) => option.replace('/tmp/profiles', folder.path)),
    )
    expect(rows.map((row) => row.case)).toEqual(['get of 200 KiB, 16 clients', 'info, 16 clients', 'mix, 4 clients'])
    expect(rows[2]).toMatchObject({ errors: 0, requests_per_second: positive, api_peak_mib: expect.any(Number) })
    expect(await readdir(folder.path)).toContainEqual(expect.stringMatching(/\.cpuprofile$/))
  },
  testTimeoutMs,
)

test(
  'footprint measures starts, memory and growth of each process',
  async () => {
    const rows = await runQuick('footprint')
    expect(rows).toMatchObject([
      { case: 'relay server', started_in_ms: positive, idle_mib: positive },
      ...[
        { title: 'accepted', memory: { api: expect.any(Number) } },
        { title: 'delivered', memory: { api: expect.any(Number), worker: expect.any(Number) } },
      ].map(({ title, memory }) => ({
        case: expect.stringContaining(`${title}, 30 documents`),
        last_to_first_cpu: expect.any(Number),
        blocks: [0, 1, 2].map(() => ({ documents: 10, documents_per_second: expect.any(Number), memory_mib: memory })),
      })),
    ])
  },
  testTimeoutMs,
)

const slow = [
  { name: 'lists', rows: 50, contains: '/documents status=failed' },
  { name: 'breadth', rows: 20, contains: 'job compute-metrics' },
  { name: 'latency', rows: 4, contains: 'p50' },
  { name: 'isolation', options: ['--only', 'asking,silent-store,migration'], rows: 3, contains: 'migration, after' },
  { name: 'backlog', rows: 1, contains: '20 deliveries behind a dead target' },
  { name: 'first-read', rows: 6, contains: '20 ms, 8 readers' },
  { name: 'hours', rows: 2, contains: '0.1 minutes at 3 documents a second' },
  { name: 'large', rows: 8, contains: 'through sftp, beside its SDK' },
]
// Each takes 20 seconds or more.
for (const { name, options, rows, contains } of slow.slice(0, fullOr(slow.length, 1))) {
  test(
    `${name} measures each of its cases`,
    async () => {
      const measured = (await runQuick(name, options)).map((row) => row.case)
      expect(measured.length).toBeGreaterThanOrEqual(rows)
      expect(measured).toContain(contains)
    },
    testTimeoutMs,
  )
}
