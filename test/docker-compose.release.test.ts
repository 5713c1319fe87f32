import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { newId } from '../src/base/ids.ts'
import { readConfig } from '../src/config/config.ts'
import { blocksOf } from './docs/commands.ts'
import { runSteps } from './docs/walk.ts'
import { createClient, type Json } from './support/client.ts'
import { findEngine } from './support/compose/engine.ts'
import { buildStandIns } from './support/compose/stand-ins.ts'
import { disposable } from './support/disposable.ts'
import { createFolder } from './support/folder.ts'
import { startHttpTarget } from './support/http-target.ts'
import { share } from './support/share.ts'
import { until } from './support/until.ts'

// Starts docker-compose.yml with an engine: installs, delivers, upgrades, goes back, and starts everything again. Where the engine cannot
// pull the images, stand-ins have their names (support/compose/stand-ins.ts).

const run = promisify(execFile)
const checkout = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFile(join(checkout, path), 'utf8')

// A build of the image takes minutes on two busy cores, and there are two.
const testTimeoutMs = 45 * 60_000

interface Service {
  image: string
  profiles?: string[]
}
const composeFile = await read('docker-compose.yml')
const { services } = parse(composeFile, { merge: true }) as { services: Record<string, Service> }
const baseImage = /^ARG BASE_IMAGE=(\S+)$/m.exec(await read('Dockerfile'))![1]!
const ownImage = services['api']!.image
const images = [...new Set([baseImage, ...Object.values(services).map(({ image }) => image)])].filter((image) => image !== ownImage)

const { path: folder } = share(await createFolder())
const tools = { config: readConfig(), say: (line: string) => void process.stderr.write(`${line}\n`) }
const found = await findEngine(images, join(folder, 'engine'), tools, (engine) =>
  buildStandIns(engine, images, join(folder, 'images'), tools),
)
const reason = typeof found === 'string' ? found : undefined
const engine = typeof found === 'string' ? undefined : share(disposable(found, (each) => each.stop()))

const source = join(folder, 'source')
const project = `relay-${newId().toLowerCase()}`
const environment: NodeJS.ProcessEnv = {
  ...engine?.environment,
  COMPOSE_PROJECT_NAME: project,
  COMPOSE_FILE: `docker-compose.yml:${join(folder, 'ports.yml')}`,
  POSTGRES_PASSWORD: newId(),
  RELAY_DATABASE_PASSWORD: newId(),
  TEMPORAL_DATABASE_PASSWORD: newId(),
  RELAY_SECRET_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  // The target of the test is on this machine.
  RELAY_ALLOWED_PRIVATE_CIDRS: '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16',
}

/** Runs commands of a page in the checkout of the installation. `docker compose exec` would read the commands after it. */
const follow = async (commands: string): Promise<string> => {
  const preamble = 'docker() { command docker "$@" </dev/null; }\n'
  return (await runSteps([preamble + commands], { folder: source, environment, timeoutMs: testTimeoutMs })).join('')
}
const docker = async (...args: string[]): Promise<string> =>
  (await run('docker', args, { cwd: source, env: environment, maxBuffer: 16 * 1024 * 1024 })).stdout.trim()
const compose = (...args: string[]) => docker('compose', ...args)
const git = (...args: string[]) => run('git', ['-C', source, '-c', 'user.name=Test', '-c', 'user.email=test@relay.example', ...args])

/** Makes a repository with two versions: this one, and a next one with another build id and one more migration. */
const writeVersions = async (): Promise<void> => {
  const kept = (await read('.dockerignore')).split('\n').flatMap((line) => /^!(.+)$/.exec(line)?.[1] ?? [])
  await mkdir(source)
  const isSource = (path: string) => !/\/(node_modules|dist)(\/|$)/.test(path.slice(checkout.length - 1))
  for (const name of [...kept, 'deploy', 'Dockerfile', '.dockerignore', 'docker-compose.yml'])
    await cp(join(checkout, name), join(source, name), { recursive: true, filter: isSource })
  const commit = async (version: string) => {
    await git('add', '--all')
    await git('commit', '--quiet', '--message', version)
    await git('tag', version)
  }
  await run('git', ['init', '--quiet', source])
  await commit('v0.1.0')
  await writeFile(
    join(source, 'docker-compose.yml'),
    composeFile.replace('TEMPORAL_WORKER_BUILD_ID:-0.1.0', 'TEMPORAL_WORKER_BUILD_ID:-0.2.0'),
  )
  await writeFile(join(source, 'migrations/9999_next.sql'), 'create table next_version (id integer);\n')
  await commit('v0.2.0')
  await git('checkout', '--quiet', 'v0.1.0')
}

/** Publishes on any free port, where the file names fixed ones. */
const writePorts = async (): Promise<void> => {
  const ports = { api: 8080, 'temporal-ui': 8080, prometheus: 9090, grafana: 3000 }
  const lines = Object.entries(ports).map(([name, port]) => `  ${name}:\n    ports: !override ['127.0.0.1::${port}']`)
  await writeFile(join(folder, 'ports.yml'), `services:\n${lines.join('\n')}\n`)
}
const originOf = async (service: string, port: number) => `http://${await compose('port', service, String(port))}`

interface Container {
  Service: string
  State: string
  Health: string
  ExitCode: number
}
const containers = async (): Promise<Container[]> =>
  (await compose('--profile', 'monitoring', 'ps', '--all', '--format', 'json'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Container)

const jobs = ['migrate', 'promote', 'temporal-namespace', 'temporal-schema']
const withHealth = ['api', 'postgres', 'temporal', 'worker']

/** Waits until every service is healthy or, if it does its work once, has ended without an error. */
const untilRunning = () =>
  until(
    'the services are healthy',
    containers,
    (all) =>
      jobs.every((name) => all.some(({ Service: service, State, ExitCode }) => service === name && State === 'exited' && ExitCode === 0)) &&
      withHealth.every((name) => all.some(({ Service: service, Health }) => service === name && Health === 'healthy')),
    5 * 60_000,
  )

/** Starts a server at the address that containers have for this machine, which forwards connections to a port of the loopback. */
const forwardFromContainers = async (target: number) => {
  const address = await docker('network', 'inspect', `${project}_default`, '--format', '{{(index .IPAM.Config 0).Gateway}}')
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    client.on('error', () => upstream.destroy())
    upstream.on('error', () => client.destroy())
    client.pipe(upstream).pipe(client)
  })
  server.listen(0, address)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return disposable({ origin: `http://${address}:${port}` }, () => server.close())
}

const psql = (sql: string) => compose('exec', '--no-TTY', 'postgres', 'psql', '--username', 'postgres', '--dbname', 'relay', '-Atc', sql)

const open = async (key: string) => createClient({ baseUrl: await originOf('api', 8080), name: 'acme/invoices', key })

const expectFewRights = async (): Promise<void> => {
  expect((await psql("select rolname || ' ' || rolsuper from pg_roles where rolname !~ '^pg_' order by 1")).split('\n')).toEqual([
    'postgres true',
    'relay false',
    'temporal false',
  ])
  for (const service of ['api', 'worker']) {
    const id = await compose('ps', '--quiet', service)
    const [{ HostConfig: host }] = JSON.parse(await docker('inspect', id)) as [{ HostConfig: object }]
    expect(host).toMatchObject({ ReadonlyRootfs: true, CapDrop: ['ALL'] })
    expect(await compose('exec', '--no-TTY', service, 'id', '-u')).toBe('1000')
    await expect(compose('exec', '--no-TTY', service, 'sh', '-c', 'echo x >/app/x')).rejects.toThrow('Read-only file system')
  }
}

const expectMonitoring = async (): Promise<void> => {
  const api = await compose('ps', '--quiet', 'api')
  await follow(/^ *# (docker compose --profile monitoring .*)$/m.exec(composeFile)![1]!)
  // The containers that run stay.
  expect(await compose('ps', '--quiet', 'api')).toBe(api)
  const prometheus = await originOf('prometheus', 9090)
  const get = async (path: string) => ((await (await fetch(`${prometheus}/api/v1/${path}`)).json()) as { data: Json }).data
  const scraped = async (): Promise<string[]> =>
    (await get('targets')).activeTargets.flatMap(({ health, labels }: Json) => (health === 'up' ? [labels.job] : []))
  await until(
    'Prometheus has read the metrics',
    () => scraped().catch(() => []),
    (names) => names.length === 2,
    3 * 60_000,
  )
  expect((await get('rules')).groups.length).toBeGreaterThan(0)
  const provisioned = ['datasources/relay.yml', 'dashboards/relay.yml'].map((name) => `/etc/grafana/provisioning/${name}`)
  await compose('exec', '--no-TTY', 'grafana', 'ls', ...provisioned, '/etc/grafana/dashboards/relay-dashboard.json')
}

const buildOfWorker = () => compose('exec', '--no-TTY', 'worker', 'printenv', 'TEMPORAL_WORKER_BUILD_ID')

// An engine needs root, or one that runs, which not every machine has. The title then says why nothing was started.
const describeWithEngine = engine ? describe : describe.skip
describeWithEngine(`docker-compose.yml${reason ? ` (${reason})` : ''}`, () => {
  test(
    'installs a relay that delivers, is upgraded and downgraded by docs/upgrade.md, and keeps its documents',
    async () => {
      await writeVersions()
      await writePorts()
      const [up, createWorkspace, createKey] = [...composeFile.matchAll(/^# {3}(docker compose .*)$/gm)].map(([, command]) => command!)
      try {
        await follow(up!)
        await untilRunning()
        await follow(createWorkspace!)
        const key = (await follow(createKey!)).trim()
        await expectFewRights()

        await using target = await startHttpTarget()
        await using forwarded = await forwardFromContainers(target.port)
        const { repoId } = await (await open(key)).wire([`${forwarded.origin}/documents`])
        const docId = newId()
        await (await open(key)).sendDocument(repoId, 'delivered', docId)
        expect(target.arrivals.map(({ body }) => body.toString())).toEqual(['hello'])
        const expectDocument = async () => {
          const { status, text } = await (await open(key)).send('GET', `get&pVersion=0045&contRep=${repoId}&docId=${docId}&compId=data`)
          expect({ status, text }).toEqual({ status: 200, text: 'hello' })
        }
        await expectDocument()
        await expectMonitoring()

        const upgrade = blocksOf((await read('docs/upgrade.md')).split('## Docker Compose')[1]!)[0]!.content
        await follow(upgrade)
        await untilRunning()
        expect((await readFile(join(source, 'before.dump'))).subarray(0, 5).toString()).toBe('PGDMP')
        expect(await psql("select to_regclass('next_version') is not null")).toBe('t')
        expect(await buildOfWorker()).toBe('0.2.0')
        await expectDocument()
        await (await open(key)).sendDocument(repoId, 'delivered')

        // "Check out the old version, build, and repeat the last three commands."
        await follow(['git checkout --quiet v0.1.0', 'docker compose build', ...upgrade.trim().split('\n').slice(-3)].join('\n'))
        await untilRunning()
        expect(await buildOfWorker()).toBe('0.1.0')
        await (await open(key)).sendDocument(repoId, 'delivered')
        expect(target.arrivals).toHaveLength(3)

        // Everything starts again from the volumes, in a network with another address.
        await compose('--profile', 'monitoring', 'down')
        await compose('up', '--detach')
        await untilRunning()
        await expectDocument()
        await using again = await forwardFromContainers(target.port)
        const wired = await (await open(key)).wire([`${again.origin}/documents`])
        await (await open(key)).sendDocument(wired.repoId, 'delivered')
        expect(target.arrivals).toHaveLength(4)
      } finally {
        await compose('--profile', 'monitoring', 'down', '--volumes')
        await docker('image', 'rm', ownImage)
      }
    },
    testTimeoutMs,
  )
})
