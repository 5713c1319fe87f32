import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { pack } from '../support/pack.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))
const client = join(root, 'clients/typescript/')

const { api } = share(await startScene())

describe('the installed client', () => {
  let folder: string
  let packed: Awaited<ReturnType<typeof pack>>
  // The client depends on TypeScript 5, the relay on a newer version.
  const compilers = { 5: createRequire(join(client, 'package.json')), newest: createRequire(import.meta.url) }
  const tsc = (require: NodeJS.Require, ...options: string[]) =>
    run(process.execPath, [join(require.resolve('typescript/package.json'), '../bin/tsc'), ...options], { cwd: folder })
  const strictest = {
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    module: 'nodenext',
    target: 'es2022',
    types: [],
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'relay-client-'))
    packed = await pack(client, folder)
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    // Without the network, the dependencies are those of the checkout.
    const dependencies = ['openapi-fetch', 'openapi-typescript-helpers'].map((name) => join(root, 'node_modules', name))
    const options = ['--offline', '--install-links', '--ignore-scripts', '--no-audit', '--no-fund']
    await run('npm', ['install', ...options, packed.file, ...dependencies], { cwd: folder })
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: strictest, files: ['user.ts'] }))
    const example = await readFile(join(client, 'example.ts'), 'utf8')
    await writeFile(
      join(folder, 'user.ts'),
      `declare const process: { env: Record<string, string | undefined> }\n${example.replace('./src/index.ts', 'document-relay-client')}`,
    )
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('has the compiled client with its types, its README and the licence, and nothing else', async () => {
    const compiled = ['error', 'index', 'pages', 'pause', 'retry', 'schema', 'wait', 'webhook'].flatMap((name) => [
      `dist/${name}.js`,
      `dist/${name}.d.ts`,
    ])
    expect(packed.paths.toSorted()).toEqual([...compiled, 'LICENSE', 'README.md', 'package.json'].toSorted())
    const licence = await readFile(join(folder, 'node_modules/document-relay-client/LICENSE'), 'utf8')
    expect(licence).toBe(await readFile(join(root, 'LICENSE'), 'utf8'))
  })

  test.each(['5', 'newest'] as const)('type-checks with TypeScript %s and runs', async (version) => {
    const { stdout } = await tsc(compilers[version], '--version')
    expect(stdout.startsWith('Version 5.')).toBe(version === '5')
    // The compiler prints its errors on standard output.
    expect(await tsc(compilers[version]).catch((thrown: unknown) => thrown)).toMatchObject({ stdout: '' })
    const env = { ...process.env, RELAY_URL: api.baseUrl, RELAY_WORKSPACE: 'acme/prod', RELAY_API_KEY: 'none' }
    await expect(run(process.execPath, [join(folder, 'user.js')], { env })).rejects.toMatchObject({
      stderr: expect.stringContaining("code: 'unauthorized'"),
    })
  })
})
