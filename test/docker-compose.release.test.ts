import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { newId } from '../src/base/ids.ts'
import { readConfig } from '../src/config/config.ts'
import { blocksOf } from './docs/commands.ts'
import type { Json } from './support/client.ts'
import { findEngine } from './support/compose/engine.ts'
import { checkout, composeProject, copyCheckout } from './support/compose/project.ts'
import { buildStandIns } from './support/compose/stand-ins.ts'
import { disposable } from './support/disposable.ts'
import { createFolder } from './support/folder.ts'
import { startHttpTarget } from './support/http-target.ts'
import { share } from './support/share.ts'
import { until } from './support/until.ts'

// Starts the compose files with an engine. docker-compose.yml: installs, delivers, upgrades, goes back, and starts everything again.
// deploy/compose/one-machine.yml: installs, delivers, stops, is killed, and starts again. Where the engine cannot pull the images, stand-ins
// have their names (support/compose/stand-ins.ts).

const run = promisify(execFile)
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
const ownImages = { cluster: services['api']!.image, oneMachine: 'document-relay:all' }
const images = [...new Set([baseImage, ...Object.values(services).map(({ image }) => image)])].filter(
  (image) => image !== ownImages.cluster,
)

const { path: folder } = share(await createFolder())
const tools = { config: readConfig(), say: (line: string) => void process.stderr.write(`${line}\n`) }
const found = await findEngine(images, join(folder, 'engine'), tools, (engine) =>
  buildStandIns(engine, images, join(folder, 'images'), tools),
)
const reason = typeof found === 'string' ? found : undefined
const engine = typeof found === 'string' ? undefined : share(disposable(found, (each) => each.stop()))

const variables = {
  ...engine?.environment,
  POSTGRES_PASSWORD: newId(),
  RELAY_DATABASE_PASSWORD: newId(),
  TEMPORAL_DATABASE_PASSWORD: newId(),
  RELAY_SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  // The target of the test is on this machine.
  RELAY_ALLOWED_PRIVATE_CIDRS: '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16',
}
const projectName = () => `relay-${newId().toLowerCase()}`

// An engine needs root, or one that runs, which not every machine has. The title then says why nothing was started.
const describeWithEngine = engine ? describe : describe.skip
const titleOf = (file: string) => `${file}${reason ? ` (${reason})` : ''}`

const source = join(folder, 'source')
const environment = {
  ...variables,
  COMPOSE_PROJECT_NAME: projectName(),
  COMPOSE_FILE: `docker-compose.yml:${join(folder, 'ports.yml')}`,
}
const { docker, compose, execute, follow, containers, originOf, forwardFromContainers, psql, expectFewRights, roles, open } =
  composeProject({
    source,
    environment,
    timeoutMs: testTimeoutMs,
  })
const git = (...args: string[]) => run('git', ['-C', source, '-c', 'user.name=Test', '-c', 'user.email=test@relay.example', ...args])

/** Makes a repository with two versions: this one, and a next one with another build id and one more migration. */
const writeVersions = async (): Promise<void> => {
  await copyCheckout(source)
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
const jobs = ['migrate', 'promote', 'temporal-namespace', 'temporal-schema']
const withHealth = ['api', 'postgres', 'temporal', 'worker']

/** Waits until every service is healthy or, if it does its work once, has ended without an error. */
const untilRunning = () =>
  until(
    'the services are healthy',
    () => containers('--profile', 'monitoring'),
    (all) =>
      jobs.every((name) => all.some(({ Service: service, State, ExitCode }) => service === name && State === 'exited' && ExitCode === 0)) &&
      withHealth.every((name) => all.some(({ Service: service, Health }) => service === name && Health === 'healthy')),
    5 * 60_000,
  )

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
  await execute('grafana', 'ls', ...provisioned, '/etc/grafana/dashboards/relay-dashboard.json')
}

const buildOfWorker = () => execute('worker', 'printenv', 'TEMPORAL_WORKER_BUILD_ID')

describeWithEngine(titleOf('docker-compose.yml'), () => {
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
        expect(await roles()).toEqual(['postgres true', 'relay false', 'temporal false'])
        for (const service of ['api', 'worker']) await expectFewRights(service)

        await using target = await startHttpTarget()
        await using forwarded = await forwardFromContainers(target.port)
        const { repoId } = await (await open('api', key)).wire([`${forwarded.origin}/documents`])
        const docId = newId()
        await (await open('api', key)).sendDocument(repoId, 'delivered', docId)
        expect(target.arrivals.map(({ body }) => body.toString())).toEqual(['hello'])
        const expectDocument = async () => {
          const { status, text } = await (
            await open('api', key)
          ).send('GET', `get&pVersion=0045&contRep=${repoId}&docId=${docId}&compId=data`)
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
        await (await open('api', key)).sendDocument(repoId, 'delivered')

        // "Check out the old version, build, and repeat the last three commands."
        await follow(['git checkout --quiet v0.1.0', 'docker compose build', ...upgrade.trim().split('\n').slice(-3)].join('\n'))
        await untilRunning()
        expect(await buildOfWorker()).toBe('0.1.0')
        await (await open('api', key)).sendDocument(repoId, 'delivered')
        expect(target.arrivals).toHaveLength(3)

        // Everything starts again from the volumes, in a network with another address.
        await compose('--profile', 'monitoring', 'down')
        await compose('up', '--detach')
        await untilRunning()
        await expectDocument()
        await using again = await forwardFromContainers(target.port)
        const wired = await (await open('api', key)).wire([`${again.origin}/documents`])
        await (await open('api', key)).sendDocument(wired.repoId, 'delivered')
        expect(target.arrivals).toHaveLength(4)
      } finally {
        await compose('--profile', 'monitoring', 'down', '--volumes')
        await docker('image', 'rm', ownImages.cluster)
      }
    },
    testTimeoutMs,
  )
})

describeWithEngine(titleOf('deploy/compose/one-machine.yml'), () => {
  const file = 'deploy/compose/one-machine.yml'
  const names = ['postgres', 'relay']
  const settings = {
    ...variables,
    COMPOSE_PROJECT_NAME: projectName(),
    COMPOSE_FILE: file,
    // The file publishes a fixed port. No other program listens on it at this address.
    RELAY_BIND: `127.${80 + (process.pid % 100)}.0.1`,
    RELAY_TEMPORAL_UI: '127.0.0.1:8233',
  }
  const copy = join(folder, 'one-machine')
  const relay = composeProject({ source: copy, environment: settings, timeoutMs: testTimeoutMs })

  const untilHealthy = () =>
    until(
      'both services are healthy',
      () => relay.containers(),
      (all) => names.every((name) => all.some(({ Service: service, Health }) => service === name && Health === 'healthy')),
      5 * 60_000,
    )

  /** Returns the workflow runs of a document that have not ended. */
  const openRuns = (docId: string) =>
    relay.psql(
      `select encode(run_id, 'hex') from temporal.current_executions where workflow_id like '%/${docId}/%' and state = 2 order by 1`,
    )

  test(
    'installs a relay that delivers, keeps its documents and its workflows when it is stopped or killed, and stops in time',
    async () => {
      await copyCheckout(copy)
      const page = await read('docs/one-machine.md')
      const [up, createWorkspace, createKey] = blocksOf(page)
        .find(({ content }) => content.startsWith('docker compose'))!
        .content.trim()
        .split('\n')
      try {
        await relay.compose('build')
        let since = Date.now()
        const sayTime = (what: string) => tools.say(`${file}: ${what} after ${((Date.now() - since) / 1_000).toFixed(1)} s`)
        await relay.follow([up, createWorkspace].join('\n'))
        const key = (await relay.follow(createKey!)).trim()
        await using target = await startHttpTarget()
        await using forwarded = await relay.forwardFromContainers(target.port)
        const accepted: string[] = []
        let status = 200
        target.answerWith(({ body }, response) => {
          if (status === 200) accepted.push(body.toString())
          response.writeHead(status).end()
        })
        const client = await relay.open('relay', key)
        await client.change('PATCH', '/settings', { retry_initial_interval_seconds: 5, retry_max_interval_seconds: 5, max_retries: 100 })
        const { repoId } = await client.wire([`${forwarded.origin}/documents`])
        const firstId = newId()
        await client.sendDocument(repoId, 'delivered', firstId)
        sayTime('delivered the first document')

        expect(await relay.roles()).toEqual(['postgres true', 'relay false'])
        await relay.expectFewRights('relay')
        const ui = `fetch('http://${settings.RELAY_TEMPORAL_UI}/namespaces/default/workflows').then(({ status }) => console.log(status))`
        expect(await relay.execute('relay', 'node', '--eval', ui)).toBe('200')
        const ids = (await relay.compose('ps', '--quiet')).split('\n')
        tools.say(
          await relay.docker('stats', '--no-stream', '--format', '{{.Name}}: {{.MemUsage}}, {{.PIDs}} processes and threads', ...ids),
        )
        tools.say(await relay.docker('image', 'ls', ownImages.oneMachine))

        /** Sends a document that its target refuses, does what ends the workers, and expects the same workflows, and one delivery. */
        const expectKept = async (interrupt: () => Promise<unknown>): Promise<void> => {
          const docId = newId()
          status = 503
          const id = await client.sendDocument(repoId, 'retrying', docId)
          const runs = await openRuns(docId)
          expect(runs).not.toBe('')
          await interrupt()
          await untilHealthy()
          expect(await openRuns(docId)).toBe(runs)
          accepted.length = 0
          status = 200
          await client.untilStatus(id, 'delivered')
          expect(accepted).toEqual(['hello'])
          const first = await client.send('GET', `get&pVersion=0045&contRep=${repoId}&docId=${firstId}&compId=data`)
          expect(first).toMatchObject({ status: 200, text: 'hello' })
        }

        await expectKept(() => relay.compose('restart'))

        // The engine starts nothing again that `docker kill` has ended.
        await expectKept(async () => {
          await relay.execute('relay', 'sh', '-c', 'kill -KILL $(cut -d" " -f1 /proc/1/task/1/children)').catch(() => {})
          await until('the engine has started the relay again', async () => (await relay.inspect('relay')).RestartCount === 1)
        })

        // Its files in memory go with the container, as at an upgrade.
        await expectKept(async () => {
          since = Date.now()
          await relay.compose('stop')
          sayTime('stopped')
          for (const service of names) expect((await relay.inspect(service)).State).toMatchObject({ Running: false, ExitCode: 0 })
          const log = await relay.compose('logs', '--no-color')
          expect(log).toContain('Temporal')
          const { POSTGRES_PASSWORD, RELAY_DATABASE_PASSWORD, RELAY_SECRET_KEYS } = variables
          for (const secret of [key, POSTGRES_PASSWORD, RELAY_DATABASE_PASSWORD, RELAY_SECRET_KEYS.slice('k1:'.length)])
            expect(log).not.toContain(secret)
          await relay.compose('rm', '--force')
          await relay.follow(up!)
        })
      } catch (thrown) {
        tools.say(await relay.compose('logs', '--no-color', '--tail', '20'))
        throw thrown
      } finally {
        await relay.compose('down', '--volumes')
        await relay.docker('image', 'rm', ownImages.oneMachine)
      }
    },
    testTimeoutMs,
  )
})
