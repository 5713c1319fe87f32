import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { request } from 'undici'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { isFullRun } from './support/full-run.ts'
import { startHttpTarget } from './support/http-target.ts'
import { relayVariables, startRelayProcess } from './support/relay-process.ts'
import { startTemporalServer } from './support/temporal-server.ts'
import { managementApi } from './support/management-api.ts'
import { until } from './support/until.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../', import.meta.url))

let folder: string
let database: TestDatabase
let env: Awaited<ReturnType<typeof startTemporalServer>>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'relay-package-'))
  database = await createTestDatabase()
  env = await startTemporalServer()
})
afterAll(async () => {
  await env.teardown()
  await database.drop()
  await rm(folder, { recursive: true, force: true })
})

/** Packs the relay. @returns the path of the file, and the paths in it */
const pack = async (): Promise<{ file: string; paths: string[] }> => {
  const { stdout } = await run('npm', ['pack', '--json', '--silent', '--pack-destination', folder], {
    cwd: root,
    maxBuffer: 16 * 1024 * 1024,
  })
  // What the build prints comes first.
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.search(/^\[/m))) as [{ filename: string; files: { path: string }[] }]
  return { file: join(folder, filename), paths: files.map(({ path }) => path) }
}

/** Installs the packed relay into an empty folder. Without the network, its dependencies are those of the checkout, without the packages of the development. */
const install = async (file: string): Promise<string> => {
  const modules = join(folder, 'node_modules')
  if (isFullRun) {
    await writeFile(join(folder, 'package.json'), '{}')
    await run('npm', ['install', '--no-audit', '--no-fund', file], { cwd: folder })
    return join(modules, '.bin/relay')
  }
  await mkdir(join(modules, 'document-relay'), { recursive: true })
  await run('tar', ['-xzf', file, '--strip-components=1', '-C', join(modules, 'document-relay')])
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as { packages: Record<string, { dev?: boolean }> }
  for (const [path, { dev }] of Object.entries(lock.packages)) {
    const [, name, nested] = path.split('node_modules/')
    if (name === undefined || nested !== undefined || dev) continue
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(root, 'node_modules', name), join(modules, name))
  }
  return join(modules, 'document-relay', 'dist/src/main.js')
}

test('the packed relay has what it needs and nothing else, and delivers a document from an empty folder', async () => {
  const { file, paths } = await pack()
  expect(paths).toEqual(expect.arrayContaining(['dist/src/main.js', 'dist/workflow-bundle.js', 'LICENSE', 'README.md', 'CHANGELOG.md']))
  expect(
    paths.filter(
      (path) => !/^(dist\/(src|workflows|activities|migrations|clients|console|swagger-ui)\/|dist\/[\w-]+\.js$|[\w.]+$)/.test(path),
    ),
  ).toEqual([])
  expect(paths.filter((path) => /\.test\.|(?<!\.d)\.ts$/.test(path))).toEqual([])
  const main = await install(file)

  const variables = relayVariables(database, env)
  const relay = async (...args: string[]) =>
    (await run(process.execPath, [main, ...args], { env: { ...process.env, ...variables } })).stdout
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  expect((await relay('--version')).trim()).toBe(version)
  expect(JSON.parse(await relay('openapi')).openapi).toMatch(/^3\.1/)
  expect(await relay('migrate')).toContain('up to date')
  await relay('workspace', 'create', 'acme/invoices')
  const key = (await relay('key', 'create', 'acme/invoices', '--level', 'admin')).trim()

  const target = await startHttpTarget()
  const api = await startRelayProcess('api', variables, { main })
  const worker = await startRelayProcess('worker', variables, { main })
  try {
    const send = managementApi(api.baseUrl, 'acme/invoices', key)
    const repository = await send('POST', '/repositories', { repo_id: 'Z1', name: 'Invoices' })
    const webhook = { name: 'Inbox', connector_type: 'webhook', config: { url: `${target.origin}/documents` }, credentials: {} }
    const destination = await send('POST', '/destinations', webhook)
    await send('POST', '/connections', { name: 'All', repository_ids: [repository], destination_ids: [destination] })
    const query = 'create&pVersion=0045&contRep=Z1&docId=0123456789ABCDEF0123456789ABCDEF&compId=data'
    const created = await request(`${api.baseUrl}/receiver/acme/invoices?${query}`, { method: 'PUT', body: 'hello' })
    expect(created.statusCode).toBe(201)
    const isDelivered = async () => (await database.db('documents').where({ status: 'delivered' })).length === 1
    await until('the document is delivered', isDelivered)

    for (const path of ['/console/', '/docs']) {
      const page = await request(`${api.baseUrl}${path}`)
      expect(page.statusCode).toBe(200)
      const [, script] = /src="([^"]+)"/.exec(await page.body.text())!
      const asset = await request(new URL(script!, `${api.baseUrl}${path}`))
      await asset.body.dump()
      expect({ script, status: asset.statusCode }).toEqual({ script, status: 200 })
    }
    expect(await worker.stop()).toBe(0)
    expect(await api.stop()).toBe(0)
  } finally {
    await target.stop()
    for (const { child } of [api, worker]) child.kill('SIGKILL')
  }
}, 600_000)
