import { readdir, readFile, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { request } from 'undici'
import { findFreePort } from '../src/programs/ports.ts'
import type { TestDatabase } from './support/database.ts'
import { disposable } from './support/disposable.ts'
import { startHttpTarget } from './support/http-target.ts'
import { buildImage, context, engine, runInImage } from './support/image/image.ts'
import { createInstallation } from './support/installation.ts'
import { routeToWebhook } from './support/relay-process.ts'
import { share } from './support/share.ts'
import { until } from './support/until.ts'

const MiB = 1024 * 1024
const readJson = async (path: string) => JSON.parse(await readFile(path, 'utf8'))

const image = share(disposable(await buildImage(), (each) => each.remove()))
const app = join(image.root, 'app')
const entries = await readdir(app, { recursive: true, withFileTypes: true })
const files = await Promise.all(
  entries
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .map(async (entry) => {
      const path = join(entry.parentPath, entry.name)
      const { mode, size } = await stat(path)
      return { path: path.slice(app.length + 1), mode, sizeBytes: entry.isFile() ? size : 0 }
    }),
)

describe(`the image, ${engine ? `built and run by ${engine.name}` : 'by the steps of the Dockerfile without an engine'}`, () => {
  test('has the compiled relay with everything that it reads, and nothing else', async () => {
    expect((await readdir(app)).toSorted()).toEqual(['LICENSE', 'bin', 'deploy', 'dist', 'node_modules', 'package.json', 'sbom.cdx.json'])
    const folders = ['activities', 'clients', 'console', 'docs', 'migrations', 'src', 'swagger-ui', 'temporal-worker', 'workflows']
    expect((await readdir(join(app, 'dist'))).toSorted()).toEqual(
      [...folders, 'knexfile.js', 'openapi.json', 'package.json', 'workflow-bundle.js'].toSorted(),
    )
    const migrations = (await readdir(join(context, 'migrations'))).filter((name) => name.endsWith('.sql'))
    expect((await readdir(join(app, 'dist/migrations'))).toSorted()).toEqual(migrations.toSorted())
    // The day on which nothing works is the one on which the runbook is also read as a file.
    expect(files.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['dist/docs/runbook.html', 'deploy/monitoring/relay.rules.yml', 'deploy/systemd/relay-api.service']),
    )
    expect(files.filter(({ path }) => /\.(map|d\.[cm]?ts)$|^dist\/.*(\.ts$|\.test\.)/.test(path))).toEqual([])
  })

  test("has no packages of the development, and the native module of Temporal for the image's platform only", async () => {
    const { devDependencies } = (await readJson(join(context, 'package.json'))) as { devDependencies: Record<string, string> }
    const declared = await readJson(join(app, 'package.json'))
    expect([declared.name, declared.devDependencies, declared.optionalDependencies]).toEqual(['document-relay', undefined, undefined])
    for (const name of ['@swc/core', '@temporalio/worker', 'jest', 'oxlint', 'playwright-core', 'typescript']) {
      expect(devDependencies).toHaveProperty([name])
      expect(files.map(({ path }) => path)).not.toContain(`node_modules/${name}/package.json`)
    }
    expect(files.map(({ path }) => path)).not.toContain('node_modules/webpack/package.json')
    const bridge = createRequire(import.meta.url)(`${app}/node_modules/@temporalio/core-bridge/common.js`) as {
      getPrebuiltTargetName(): string
    }
    expect(await readdir(join(app, 'node_modules/@temporalio/core-bridge/releases'))).toEqual([bridge.getPrebuiltTargetName()])
    const native = files.filter(({ path }) => path.endsWith('.node') && path.includes('/@temporalio/'))
    expect(native).toHaveLength(1)
    // 29 MiB of 113. With the modules of all platforms, the source maps and the declarations of types, the packages have 296 MiB.
    expect(native[0]!.sizeBytes).toBeLessThan(40 * MiB)
    expect(files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)).toBeLessThan(135 * MiB)
  })

  test('has files that its user can read and nobody but root can change, even from a checkout with an umask of 077', () => {
    const unreadable = files.filter(({ path, mode }) => (mode & 0o004) === 0 && !path.startsWith('node_modules/.'))
    const writable = files.filter(({ path, mode }) => (mode & 0o022) !== 0 && !path.startsWith('node_modules/.'))
    expect({ unreadable, writable }).toEqual({ unreadable: [], writable: [] })
  })

  test('says how to run it: user, processes, ports, health check and labels', async () => {
    const { version, license } = await readJson(join(context, 'package.json'))
    expect(image.config).toMatchObject({
      // Kubernetes refuses to check runAsNonRoot for a name.
      User: expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/),
      WorkingDir: '/app',
      Entrypoint: ['relay'],
      Cmd: ['api'],
      ExposedPorts: { '8080/tcp': {}, '8081/tcp': {} },
      Healthcheck: { Test: ['CMD', 'node', 'dist/src/health.js'] },
      Labels: {
        'org.opencontainers.image.title': 'Document Relay',
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.licenses': license,
        'org.opencontainers.image.base.name': expect.stringMatching(/^\S+$/),
      },
    })
  })

  test('has an SBOM of exactly the packages in it, each with its hash', async () => {
    const sbom = await readJson(join(app, 'sbom.cdx.json'))
    expect([sbom.bomFormat, sbom.metadata.component.purl]).toEqual(['CycloneDX', expect.stringMatching(/^pkg:npm\/document-relay@/)])
    const components = sbom.components as { purl: string; hashes?: { alg: string; content: string }[] }[]
    const { packages } = (await readJson(join(app, 'node_modules/.package-lock.json'))) as { packages: Record<string, { version: string }> }
    const installed = Object.entries(packages).map(([path, { version }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
      return `pkg:npm/${name.replace('@', '%40')}@${version}`
    })
    // dist has a copy of it.
    const { name, version } = await readJson(join(app, 'dist/temporal-worker/package.json'))
    installed.push(`pkg:npm/${name.replace('@', '%40')}@${version}`)
    expect(installed.length).toBeGreaterThan(250)
    expect([...new Set(components.map(({ purl }) => purl))].toSorted()).toEqual([...new Set(installed)].toSorted())
    expect(components.filter(({ hashes = [] }) => hashes.length === 0)).toEqual([])
  })

  test('has certificates of public authorities, with which the Temporal SDK verifies a server', async () => {
    const certificates = await readFile(join(image.root, 'etc/ssl/certs/ca-certificates.crt'), 'utf8')
    expect(certificates.match(/-----BEGIN CERTIFICATE-----/g)!.length).toBeGreaterThan(50)
  })

  test('runs API and worker as its user with a root file system that it cannot write, and tells their health', async () => {
    await using target = await startHttpTarget()
    await using installation = await createInstallation()
    const { database, variables, start } = installation
    const ports = {
      RELAY_PORT: String(await findFreePort()),
      RELAY_PROBES_PORT: String(await findFreePort()),
      RELAY_WORKER_PORT: String(await findFreePort()),
      RELAY_HOST: '127.0.0.1',
    }
    const command = (verb: string, settings: Record<string, string>) => image.command('relay', [verb], settings)
    // As in containers of their own: the health check finds one process.
    const healthOf = async (verb: 'api' | 'worker', ...args: string[]) => {
      const closed = String(await findFreePort())
      const only = verb === 'api' ? { ...ports, RELAY_WORKER_PORT: closed } : { ...ports, RELAY_PROBES_PORT: closed }
      return runInImage(image, [...image.config.Healthcheck.Test.slice(1), ...args], only)
    }
    const identity = await runInImage(image, ['node', '-p', 'process.getuid()'])
    const write = await runInImage(image, ['node', '-e', "fs.writeFileSync('dist/x', '')"])
    expect(write).toEqual({ status: 1, output: expect.stringMatching(/EROFS|EACCES/) })
    if (process.getuid?.() === 0 || engine) expect(identity).toEqual({ status: 0, output: `${image.config.User.split(':')[0]}\n` })
    const temporary = "const path = os.tmpdir() + '/x'; fs.writeFileSync(path, 'x'); fs.rmSync(path)"
    expect(await runInImage(image, ['node', '-e', temporary])).toEqual({ status: 0, output: '' })

    expect(await runInImage(image, ['relay', 'migrate'], variables)).toMatchObject({ status: 0 })
    expect((await healthOf('api')).status).toBe(1)
    const api = await start('api', ports, { command })
    const worker = await start('worker', ports, { command })
    expect(await healthOf('api')).toMatchObject({ status: 0, output: expect.stringContaining('alive') })
    expect(await healthOf('worker')).toMatchObject({ status: 0, output: expect.stringContaining('alive') })
    const isReady = async () => (await healthOf('worker', '/readyz')).status === 0
    await until('the worker is ready', isReady)

    await deliverDocument(database, api.baseUrl, target.origin)
    expect(target.arrivals.map(({ body }) => body.toString())).toEqual(['hello'])
    for (const path of ['/console/', '/docs/', '/docs/reference', '/openapi.json']) {
      const { statusCode, body } = await request(`${api.baseUrl}${path}`)
      await body.dump()
      expect({ path, statusCode }).toEqual({ path, statusCode: 200 })
    }
    expect(await worker.stop()).toBe(0)
    expect((await healthOf('worker')).status).toBe(1)
    expect(await api.stop()).toBe(0)
  }, 300_000)
})

/** Sends a document, and waits until it is delivered. */
const deliverDocument = async (database: TestDatabase, baseUrl: string, target: string): Promise<void> => {
  const { workspaceSlug } = await routeToWebhook(database, `${target}/documents`)
  const query = 'create&pVersion=0045&contRep=Z1&docId=0123456789ABCDEF0123456789ABCDEF&compId=data'
  const { statusCode, body } = await request(`${baseUrl}/receiver/acme/${workspaceSlug}?${query}`, { method: 'PUT', body: 'hello' })
  await body.dump()
  expect(statusCode).toBe(201)
  await until('the document is delivered', async () => (await database.db('documents').where({ status: 'delivered' })).length === 1)
}
