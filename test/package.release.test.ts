import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { request } from 'undici'
import { readReady } from '../src/dev/data-dir.ts'
import { installPacked, pack } from './support/pack.ts'
import { until } from './support/until.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../', import.meta.url))

let folder: string
let packed: Awaited<ReturnType<typeof pack>>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'relay-package-'))
  packed = await pack(root, folder)
  await installPacked(packed.file, folder)
}, 300_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

test('npx document-relay server starts the installed relay with PostgreSQL and Temporal, and stops on SIGTERM', async () => {
  const options = {
    cwd: folder,
    env: { ...process.env, RELAY_PORT: '0', RELAY_LOG_FORMAT: 'json', RELAY_TEMPORAL_BIN: process.env.TEST_TEMPORAL_BIN },
  }
  // With --no, npx does not ask a registry for a package that is not installed.
  const npx = (...words: string[]): [string, string[]] => ['npx', ['--no', ...words]]
  const child = spawn(...npx('document-relay', 'server'), { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const exited = once(child, 'exit') as Promise<[number | null]>
  const readServer = () => {
    if (child.exitCode !== null) throw new Error(`npx ended with ${child.exitCode}: ${log}`)
    return readReady(join(folder, '.relay'))
  }
  try {
    const server = (await until('the server is ready', readServer, Boolean, 200_000))!
    const { statusCode, body } = await request(`${server.base_url}/readyz`)
    expect({ statusCode, body: await body.json() }).toMatchObject({ statusCode: 200, body: { dependencies: { worker: { ok: true } } } })

    // A verb in the same folder uses the database of the server.
    await run(...npx('relay', 'workspace', 'create', 'acme/first'), options)
    const { stdout } = await run(...npx('relay', 'workspace', 'list', '--json'), options)
    expect(JSON.parse(stdout)).toEqual([expect.objectContaining({ user_slug: 'acme', workspace_slug: 'first' })])

    process.kill(server.pid, 'SIGTERM')
    expect(await exited).toEqual([0, null])
    expect(readReady(join(folder, '.relay'))).toBeUndefined()
    const levels = log.split('\n').flatMap((line) => (line.startsWith('{') ? [(JSON.parse(line) as { level: string }).level] : []))
    expect(levels).not.toContain('error')
  } finally {
    const server = readReady(join(folder, '.relay'))
    if (server) process.kill(server.pid, 'SIGKILL')
    child.kill('SIGKILL')
  }
}, 300_000)

test('the packages of a commit are the same bytes from another folder, with other times of the files', async () => {
  const copy = join(folder, 'checkout')
  await mkdir(copy)
  const listed = 'git ls-files -z --cached --others --exclude-standard --deduplicate'
  const copied = 'tar --null -T - --ignore-failed-read --mtime=2001-09-09 -cf - | tar -xf - -C "$1"'
  await run('bash', ['-o', 'pipefail', '-c', `${listed} | ${copied}`, 'bash', copy], { cwd: root })
  for (const path of ['node_modules', 'clients/typescript/node_modules']) {
    // Linked if the folder is on the same file system. A symbolic link would give webpack the paths of the checkout.
    const from = join(root, path)
    const to = join(copy, path)
    await run('cp', ['-al', from, to]).catch(() => run('cp', ['-a', from, to]))
  }
  const sha256 = async (file: string) =>
    createHash('sha256')
      .update(await readFile(file))
      .digest('hex')
  const client = 'clients/typescript'
  const files = [packed.file, (await pack(join(root, client), folder)).file]
  const again = [(await pack(copy, copy)).file, (await pack(join(copy, client), copy)).file]
  expect(await Promise.all(again.map(sha256))).toEqual(await Promise.all(files.map(sha256)))
}, 600_000)
