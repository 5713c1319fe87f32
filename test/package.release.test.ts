import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { request } from 'undici'
import { readReady } from '../src/programs/data-dir.ts'
import { createClient } from './support/client.ts'
import { createFolder } from './support/folder.ts'
import { startHttpTarget } from './support/http-target.ts'
import { createInstallation } from './support/installation.ts'
import { installPacked, pack } from './support/pack.ts'
import { share } from './support/share.ts'
import { until } from './support/until.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../', import.meta.url))

const { path: folder } = share(await createFolder())
const packed = await pack(root, folder)
const production = join(folder, 'production')
await mkdir(production)
/** The command as an installation has it, without the optional packages. */
const main = await installPacked(packed.file, production, { omitOptional: true })
await installPacked(packed.file, folder)

test('the packed relay, without its optional packages, has what it needs and nothing else, and delivers a document', async () => {
  const { paths } = packed
  expect(paths).toEqual(
    expect.arrayContaining([
      'dist/src/main.js',
      'dist/workflow-bundle.js',
      'dist/openapi.json',
      'dist/docs/index.html',
      'dist/docs/runbook.html',
      'dist/docs/deploy/monitoring/relay.rules.yml',
      'deploy/systemd/relay-api.service',
      'deploy/systemd/relay-worker.service',
      'deploy/systemd/relay.service',
      'deploy/monitoring/relay-dashboard.json',
      'deploy/compose/temporal-dynamic-config.yaml',
      'deploy/haproxy/haproxy.cfg',
      'docs/relay.schema.json',
      'LICENSE',
      'README.md',
      'CHANGELOG.md',
    ]),
  )
  expect(
    paths.filter(
      (path) =>
        !/^(dist\/(src|workflows|activities|migrations|clients|console|docs|swagger-ui|temporal-worker)\/|deploy\/|dist\/[\w-]+\.js$|dist\/(openapi|package)\.json$|docs\/relay\.schema\.json$|[\w.]+$)/.test(
          path,
        ),
    ),
  ).toEqual([])
  expect(paths.filter((path) => /\.test\.|(?<!\.d)\.ts$/.test(path))).toEqual([])

  await using target = await startHttpTarget()
  await using installation = await createInstallation()
  const { variables, start } = installation
  const relay = async (...args: string[]) =>
    (await run(process.execPath, [main, ...args], { env: { ...process.env, ...variables } })).stdout
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  expect((await relay('--version')).trim()).toBe(version)
  expect(JSON.parse(await relay('openapi')).openapi).toMatch(/^3\.1/)
  expect(await relay('json-schema')).toBe(await readFile(join(production, 'node_modules/document-relay/docs/relay.schema.json'), 'utf8'))
  expect(await relay('migrate')).toContain('up to date')
  for (const name of ['pino-pretty', '@temporalio/testing', '@temporalio/worker', 'webpack', '@swc/core'])
    expect({ name, isInstalled: existsSync(join(production, 'node_modules', name)) }).toEqual({ name, isInstalled: false })
  await relay('workspace', 'create', 'acme/invoices')
  const key = (await relay('key', 'create', 'acme/invoices', '--level', 'admin')).trim()

  const api = await start('api', {}, { main })
  const worker = await start('worker', {}, { main })
  const client = createClient({ baseUrl: api.baseUrl, name: 'acme/invoices', key })
  const { repoId } = await client.wire([`${target.origin}/documents`])
  await client.sendDocument(repoId, 'delivered')

  for (const path of ['/console/', '/docs/', '/docs/reference']) {
    const page = await request(`${api.baseUrl}${path}`)
    expect(page.statusCode).toBe(200)
    const [, script] = /src="([^"]+)"/.exec(await page.body.text())!
    const asset = await request(new URL(script!, `${api.baseUrl}${path}`))
    await asset.body.dump()
    expect({ script, status: asset.statusCode }).toEqual({ script, status: 200 })
  }
  expect(await worker.stop()).toBe(0)
  expect(await api.stop()).toBe(0)
}, 600_000)

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
    const { statusCode, body } = await request(`${server.probes_url}/readyz`)
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
  const { workspaces } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { workspaces: string[] }
  const [files, again] = [[packed.file], [(await pack(copy, copy)).file]]
  for (const path of workspaces) {
    files.push((await pack(join(root, path), folder)).file)
    again.push((await pack(join(copy, path), copy)).file)
  }
  expect(await Promise.all(again.map(sha256))).toEqual(await Promise.all(files.map(sha256)))
}, 600_000)
