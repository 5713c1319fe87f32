import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checksOf } from '../../../clients/check-source/src/checks.ts'
import type { Report } from '../../../clients/check-source/src/run.ts'
import { createFolder } from '../../support/folder.ts'
import { startOldContentServer } from '../../support/old-content-server.ts'
import { pack } from '../../support/pack.ts'
import { startScene } from '../../support/scene.ts'
import { share } from '../../support/share.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const scene = share(await startScene())
const { path: folder } = share(await createFolder())
const modules = join(folder, 'node_modules')

const packed = await pack(join(root, 'clients/check-source'), folder)
await writeFile(join(folder, 'package.json'), '{}')
const names = await dependenciesOf('clients/check-source')
// Without the network, the dependencies are those of the checkout.
const options = ['--offline', '--install-links', '--ignore-scripts', '--no-audit', '--no-fund']
await promisify(execFile)('npm', ['install', ...options, packed.file, ...names.map((name) => join(root, 'node_modules', name))], {
  cwd: folder,
})

/** Returns the packages that one of the lock file needs at run time, directly or through others. */
async function dependenciesOf(path: string): Promise<string[]> {
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dependencies?: Record<string, string> }>
  }
  const found = new Set(Object.keys(packages[path]!.dependencies!))
  for (const name of found) for (const next of Object.keys(packages[`node_modules/${name}`]!.dependencies ?? {})) found.add(next)
  return [...found]
}

/** Runs the installed command, which gets no variable that a relay needs. */
const check = async (...args: string[]) => {
  const { PATH, HOME } = process.env
  const child = execFile(join(modules, '.bin/content-server-check'), args, { cwd: folder, env: { PATH, HOME } })
  const [[status], stdout, stderr] = await Promise.all([once(child, 'close'), text(child.stdout!), text(child.stderr!)])
  return { status: status as number | null, stdout, stderr }
}

test('the package has the compiled checks, its README and the licence, and is installed with six small packages', async () => {
  const { paths } = packed
  expect(paths).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json', 'dist/clients/check-source/src/checks/load.js']))
  expect(
    paths.filter((path) => !/^(dist\/(clients\/check-source|src\/(base|cli|content-server|security))\/.*\.js|[A-Za-z.]+)$/.test(path)),
  ).toEqual([])

  const installed = (await readdir(modules)).filter((name) => !name.startsWith('.')).toSorted()
  expect(installed).toEqual(['asn1js', 'commander', 'content-server-check', 'pvtsutils', 'pvutils', 'tslib', 'undici'])
  const files = await readdir(modules, { recursive: true, withFileTypes: true })
  const sizes = await Promise.all(
    files.filter((file) => file.isFile()).map(async (file) => (await stat(join(file.parentPath, file.name))).size),
  )
  // README.md and docs/conformance.md promise less than 4 MB.
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(4_000_000)
})

test('it tells its own name, version and options', async () => {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  expect(await check('--version')).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' })
  const help = await check('--help')
  expect(help.stdout).toMatch(/^Usage: content-server-check \[options\]\n/)
  expect(help.stdout).not.toMatch(/relay|--deliver/)
  expect(await check('--repository', 'Z1')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("option '--url <url>' not specified"),
  })
  expect(await check('--url', 'ftp://cs.example', '--repository', 'Z1')).toMatchObject({
    status: 1,
    stderr: 'content-server-check: ftp://cs.example is not an address of the form http://host:port/script.\n',
  })
})

test('a relay passes all checks, in each form of the report, and has no document left', async () => {
  const { name, repoId, workspaceId } = await scene.workspace()
  const target = ['--url', `${scene.api.baseUrl}/receiver/${name}`, '--repository', repoId]
  const asText = await check(...target, '--profile', 'smoke')
  expect(asText).toMatchObject({ status: 0, stderr: '', stdout: expect.stringContaining('Nothing was left behind') })

  const asJson = await check(...target, '--profile', 'full', '--format', 'json')
  expect(asJson).toMatchObject({ status: 0, stderr: '' })
  const report = JSON.parse(asJson.stdout) as Report
  expect(report).toMatchObject({ failed: 0, signed: false, left_behind: [], server: 'Document Relay 1.0' })
  expect(report.passed + report.not_checked).toBe(checksOf('full').length)

  const asJunit = await check(...target, '--profile', 'smoke', '--format', 'junit')
  expect(asJunit).toMatchObject({
    status: 0,
    stderr: '',
    stdout: expect.stringMatching(/^<\?xml .*\n<testsuites tests="\d+" failures="0"/),
  })
  expect(await scene.db('archive_documents').where({ workspace_id: workspaceId, deleted_at: null })).toEqual([])
})

test('the exit status is 1 if the server breaks the protocol, and if there is none', async () => {
  await using server = await startOldContentServer({ faults: ['range_excludes_end'] })
  const broken = await check('--url', server.url, '--repository', 'Z1', '--format', 'junit')
  expect(broken).toMatchObject({
    status: 1,
    stdout: expect.stringMatching(/ failures="1"[^]* name="get-range: [^"]*" time="[\d.]+"><failure/),
  })
  expect(server.documents.size).toBe(0)

  const none = await check('--url', 'http://127.0.0.1:1/cs', '--repository', 'Z1', '--profile', 'smoke')
  expect(none).toMatchObject({ status: 1, stdout: expect.stringContaining('ECONNREFUSED') })
})
