import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createKey } from '../../src/access/key-administration.ts'
import { openDatabase } from '../../src/db/database.ts'
import { readReady } from '../../src/programs/data-dir.ts'
import { createWorkspace } from '../../src/workspace/administration.ts'
import { createClient } from '../support/client.ts'
import { databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { share } from '../support/share.ts'
import { createSourceSystem } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { makeDirectory } from './support.ts'

// One server runs through the loss of its worker, and is then killed itself.

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const startTimeoutMs = 200_000
const largeText = 'text'.repeat(25_000)

const { path: dataDir } = share(await makeDirectory())
const target = share(await startHttpTarget())
const server = spawn(process.execPath, [main, 'server'], {
  env: {
    ...process.env,
    RELAY_DATA_DIR: dataDir,
    RELAY_PORT: '0',
    RELAY_LOG_FORMAT: 'json',
    RELAY_TEMPORAL_BIN: process.env.TEST_TEMPORAL_BIN,
  },
  stdio: ['ignore', 'ignore', 'pipe'],
})
share(disposable(server, () => server.kill('SIGKILL')))
const written: string[] = []
server.stderr.on('data', (chunk: Buffer) => written.push(chunk.toString()))
const log = () => written.join('')
const isReady = () => {
  if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}: ${log()}`)
  return readReady(dataDir)
}
const ready = (await until('the server is ready', isReady, Boolean, startTimeoutMs))!

interface Process {
  pid: number
  command: string
  niceness: number
}

/** Returns the running children of the server. */
const children = (): Process[] =>
  execFileSync('ps', ['-ax', '-o', 'pid=,ppid=,ni=,stat=,command='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(-?\d+)\s+(\S+)\s+(.*)$/.exec(line))
    .filter((match) => match !== null && Number(match[2]) === server.pid && !match[4]!.startsWith('Z'))
    .map((match) => ({ pid: Number(match![1]), niceness: Number(match![3]), command: match![5]! }))

const workers = () => children().filter(({ command }) => command.includes(`${main} worker`))
const readyz = async (url: string) => {
  const response = await fetch(`${url}/readyz`)
  return { status: response.status, worker: ((await response.json()) as { dependencies: Record<string, object> }).dependencies['worker'] }
}

/** Creates a workspace with a connection from repository Z1 to the target. @returns the address of its receiver */
const connectTarget = async () => {
  const db = openDatabase(databaseConfig(ready.variables['DATABASE_URL']!), 'test')
  await createWorkspace(db, 'acme/worker')
  const { key } = await createKey(db, { workspace: 'acme/worker', level: 'admin' })
  await db.destroy()
  await createClient({ baseUrl: ready.base_url, name: 'acme/worker', key }).wire([target.origin], { repoId: 'Z1' })
  return `${ready.base_url}/receiver/acme/worker`
}

test('the worker runs in a process of its own with probes of its own, at a lower priority than the API and PostgreSQL', async () => {
  expect(workers()).toHaveLength(1)
  expect(await readyz(ready.probes_url!)).toMatchObject({ status: 200, worker: { ok: true } })
  expect(await readyz(ready.worker_url!)).toMatchObject({ status: 200, worker: { ok: true } })
  const metrics = async (url: string) => (await fetch(`${url}/metrics`)).text()
  expect(await metrics(ready.worker_url!)).toContain('relay_attempts_total')
  const ofApi = await metrics(ready.probes_url!)
  expect(ofApi).toContain('relay_waiting')
  expect(ofApi).not.toContain('relay_attempts_total')

  const nicenessOf = (part: string) => children().find(({ command }) => command.includes(part))!.niceness
  const lower = Math.min(19, nicenessOf('relay.data_dir=') + 5)
  expect([nicenessOf(' worker'), nicenessOf('temporal.sqlite')]).toEqual([lower, lower])
})

test('a worker that is killed is started again, and meanwhile documents are accepted, which are then delivered', async () => {
  const source = createSourceSystem(await connectTarget())
  const [first] = workers()
  process.kill(first!.pid, 'SIGKILL')
  await until(
    'the server is not ready',
    () => readyz(ready.probes_url!),
    ({ status }) => status === 503,
  )
  expect((await source.create('D1', largeText)).status).toBe(201)
  await source.close()
  const again = await until(
    'the server is ready again',
    () => readyz(ready.probes_url!),
    ({ status }) => status === 200,
  )
  expect(again.worker).toMatchObject({ ok: true })
  expect(workers()).toHaveLength(1)
  expect(workers()[0]!.pid).not.toBe(first!.pid)
  await until('the document is delivered', () => target.arrivals.length === 1)
  const line = log()
    .split('\n')
    .find((text) => text.includes('the worker has ended by itself'))
  expect(JSON.parse(line!)).toMatchObject({ level: 'error', exit_code: null, signal: 'SIGKILL', restart_in_ms: 1_000 })
})

test('a large content is a file in the data directory, which the API and the worker read', async () => {
  expect(target.arrivals[0]!.body.length).toBe(largeText.length)
  const entries = await readdir(join(dataDir, 'contents'), { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  expect(files).toHaveLength(1)
  expect(await readFile(files[0]!, 'utf8')).toBe(largeText)
})

/** Runs a verb in another folder, with nothing but the data directory of the running server. @returns its output, whatever its exit status */
const relay = async (...words: string[]): Promise<string> => {
  const options = { cwd: '/', env: { PATH: process.env['PATH'], RELAY_DATA_DIR: dataDir } }
  const ended = promisify(execFile)(process.execPath, [main, ...words], options)
  return (await ended.catch((thrown: { stdout: string }) => thrown)).stdout
}

test('the verbs use the settings of the running server, of which the environment of the shell knows nothing', async () => {
  const findings = JSON.parse(await relay('doctor', '--json')) as { name: string; warnings: string[] }[]
  expect(findings.find(({ name }) => name === 'private addresses')!.warnings).toEqual([
    '127.0.0.0/8 lets destinations connect to this machine.',
    '::1/128 lets destinations connect to this machine.',
  ])
  // The destination is on this machine and not encrypted, which only the settings of the server allow.
  const file = join(dataDir, 'exported.yaml')
  await writeFile(file, await relay('export', 'acme/worker'))
  expect(await relay('apply', '-f', file, '--dry-run')).toMatch(/ 0 created, 0 updated, 0 deleted, \d+ unchanged, /)
  const compared = JSON.parse(await relay('doctor', '-f', file, '--json')) as { name: string; status: string }[]
  const drift = compared.find(({ name }) => name === 'drift')
  expect(drift).toMatchObject({ status: 'ok' })
})

test('relay contents verify finds the directory of the running server', async () => {
  const stdout = await relay('contents', 'verify', '--read')
  expect(stdout).toBe(`Checked 1 content with ${largeText.length} bytes: none is damaged.\n`)
})

test('the log of the worker is part of that of the server', () => {
  const lines = log()
    .split('\n')
    .filter((line) => line.includes('the worker is ready'))
  expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
    expect.objectContaining({ level: 'info', probes_url: ready.worker_url }),
    expect.objectContaining({ level: 'info', probes_url: ready.worker_url }),
  ])
})

test('a server that is killed leaves no process behind', async () => {
  const started = children()
  expect(started).toHaveLength(3)
  const ended = once(server, 'exit')
  server.kill('SIGKILL')
  await ended
  const isRunning = ({ pid }: Process) => {
    try {
      process.kill(pid, 0)
      return true
    } catch {
      return false
    }
  }
  await until(
    'all processes have ended',
    () => started.filter(isRunning),
    (left) => left.length === 0,
  )
})
