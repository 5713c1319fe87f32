import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { request } from 'undici'
import { createClient } from './support/client.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { startHttpTarget } from './support/http-target.ts'
import { installPacked, pack } from './support/pack.ts'
import { relayVariables, startRelayProcess } from './support/relay-process.ts'
import { startTemporalServer } from './support/temporal-server.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../', import.meta.url))

let folder: string
let database: TestDatabase
let env: Awaited<ReturnType<typeof startTemporalServer>>
let packed: Awaited<ReturnType<typeof pack>>
/** The installed command. */
let main: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'relay-package-'))
  database = await createTestDatabase()
  env = await startTemporalServer()
  packed = await pack(root, folder)
  main = await installPacked(packed.file, folder)
}, 300_000)
afterAll(async () => {
  await env.teardown()
  await database.drop()
  await rm(folder, { recursive: true, force: true })
})

test('the packed relay has what it needs and nothing else, and delivers a document from an empty folder', async () => {
  const { paths } = packed
  expect(paths).toEqual(
    expect.arrayContaining([
      'dist/src/main.js',
      'dist/workflow-bundle.js',
      'docs/relay.schema.json',
      'LICENSE',
      'README.md',
      'CHANGELOG.md',
    ]),
  )
  expect(
    paths.filter(
      (path) =>
        !/^(dist\/(src|workflows|activities|migrations|clients|console|swagger-ui)\/|dist\/[\w-]+\.js$|docs\/relay\.schema\.json$|[\w.]+$)/.test(
          path,
        ),
    ),
  ).toEqual([])
  expect(paths.filter((path) => /\.test\.|(?<!\.d)\.ts$/.test(path))).toEqual([])

  const variables = relayVariables(database, env)
  const relay = async (...args: string[]) =>
    (await run(process.execPath, [main, ...args], { env: { ...process.env, ...variables } })).stdout
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  expect((await relay('--version')).trim()).toBe(version)
  expect(JSON.parse(await relay('openapi')).openapi).toMatch(/^3\.1/)
  expect(await relay('json-schema')).toBe(await readFile(join(folder, 'node_modules/document-relay/docs/relay.schema.json'), 'utf8'))
  expect(await relay('migrate')).toContain('up to date')
  await relay('workspace', 'create', 'acme/invoices')
  const key = (await relay('key', 'create', 'acme/invoices', '--level', 'admin')).trim()

  const target = await startHttpTarget()
  const api = await startRelayProcess('api', variables, { main })
  const worker = await startRelayProcess('worker', variables, { main })
  try {
    const client = createClient({ baseUrl: api.baseUrl, name: 'acme/invoices', key })
    const { repoId } = await client.wire([`${target.origin}/documents`])
    await client.sendDocument(repoId, 'delivered')

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
