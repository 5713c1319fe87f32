import { globSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configurationPage } from '../../docs/configuration.ts'
import { UserError } from '../../src/base/errors.ts'
import { loadEnvFile, readConfig } from '../../src/config/config.ts'

describe('the configuration', () => {
  test('has a default for every variable', () => {
    expect(readConfig({})).toMatchObject({ RELAY_PORT: 8080, RELAY_SECRET_KEYS: [], RELAY_TRUST_PROXY: false })
  })

  test('treats an empty variable as not set', () => {
    const config = readConfig({ RELAY_PORT: '', DATABASE_URL: '' })
    expect(config.RELAY_PORT).toBe(8080)
    expect(config.DATABASE_URL).toBeUndefined()
  })

  test.each([
    [{ RELAY_PORT: 'http' }, 'RELAY_PORT'],
    [{ RELAY_PORT: '-1' }, 'RELAY_PORT'],
    [{ RELAY_TRUST_PROXY: 'yes' }, 'RELAY_TRUST_PROXY'],
    [{ DELIVERY_CONNECT_TIMEOUT_MS: '1' }, 'DELIVERY_CONNECT_TIMEOUT_MS'],
    [{ OTEL_TRACES_EXPORTER: 'jaeger' }, 'OTEL_TRACES_EXPORTER'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, 'OTEL_EXPORTER_OTLP_ENDPOINT'],
    [{ OTEL_TRACES_SAMPLER_ARG: '2' }, 'OTEL_TRACES_SAMPLER_ARG'],
  ])('names the invalid variable in %j', (variables, name) => {
    expect(() => readConfig(variables)).toThrow(UserError)
    expect(() => readConfig(variables)).toThrow(name)
  })

  const unknownIn = (variables: Record<string, string>) => readConfig(variables).unknownVariables

  test('names variables that look like ones of the relay and are none', () => {
    const misspelled = [
      'RELAY_PROT',
      'RELAY_DTA_DIR',
      'RELAY_TEMPRAL_BIN',
      'CAPTURE_X',
      'CONTENT_X',
      'DATABASE_POOL_MAX_CONNECTION',
      'DELIVERY_MAX',
      'DOWNLOAD_X',
      'RECONCILE_X',
      'RETENTION_X',
      'RFC_X',
    ]
    expect(unknownIn(Object.fromEntries(misspelled.map((name) => [name, '1'])))).toEqual(misspelled)
    expect(unknownIn({ RELAY_PROT: '' })).toEqual([])
  })

  test.each([
    ['the tests', { TEST_FULL: '1', TEST_HELM_BIN: '/bin/true' }],
    ['relay export', { RELAY_CREDENTIAL_ACME_PROD_ARCHIVE_PASSWORD: 'secret' }],
    ['the Temporal and OpenTelemetry programs', { TEMPORAL_CODEC_ENDPOINT: 'x', TEMPORAL_WORKER_X: 'x', OTEL_BSP_SCHEDULE_DELAY: '1' }],
    [
      'platforms with a database',
      { DATABASE_HOST: 'x', DATABASE_PUBLIC_URL: 'x', DATABASE_URL_UNPOOLED: 'x', DATABASE_CONNECTION_POOL_URL: 'x' },
    ],
    [
      'Kubernetes for a Service',
      {
        RELAY_API_SERVICE_HOST: '10.0.0.1',
        RELAY_API_SERVICE_PORT: '8080',
        RELAY_API_SERVICE_PORT_HTTP: '8080',
        RELAY_API_PORT: 'tcp://10.0.0.1:8080',
        RELAY_API_PORT_8080_TCP: 'tcp://10.0.0.1:8080',
        RELAY_API_PORT_8080_TCP_PROTO: 'tcp',
        RELAY_API_PORT_8080_TCP_ADDR: '10.0.0.1',
      },
    ],
    ['the system', { PATH: '/bin', RELAY: '1', PGHOST: 'x' }],
  ])('names no variable of %s', (_, variables) => {
    expect(unknownIn(variables)).toEqual([])
  })

  test('names no variable that a script, the example of the client or docker-compose.yml reads', async () => {
    const root = new URL('../../', import.meta.url)
    const scripts = globSync('script/*', { cwd: root, withFileTypes: true }).filter((entry) => entry.isFile())
    const files = [...scripts.map(({ name }) => `script/${name}`), 'clients/typescript/example.ts', 'docker-compose.yml']
    const texts = await Promise.all(files.map((file) => readFile(new URL(file, root), 'utf8')))
    const names = new Set(texts.join('\n').match(/\bRELAY_[A-Z_]*[A-Z]\b/g))
    const values: Record<string, string> = {
      RELAY_OUTBOUND_PROXY: 'http://outgoing.example',
      RELAY_TRUST_PROXY: 'true',
      RELAY_METRICS_TOKEN: 'x'.repeat(16),
    }
    expect([...names].filter((name) => unknownIn({ [name]: values[name] ?? '1' }).length > 0)).toEqual([])
    const others = ['RELAY_API_KEY', 'RELAY_URL', 'RELAY_WORKSPACE', 'RELAY_DATABASE_PASSWORD', 'RELAY_BIND']
    expect([...names].filter((name) => others.includes(name)).toSorted()).toEqual(others.toSorted())
  })

  test('reads a file of variables, over which those that are set take precedence', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'env-'))
    const path = join(directory, 'relay.env')
    await writeFile(path, "# A comment\nRELAY_PORT=1\nexport RELAY_HOST='127.0.0.1'\nRELAY_LOG_LEVEL=debug\n")
    const variables: NodeJS.ProcessEnv = { RELAY_PORT: '2', RELAY_LOG_LEVEL: '' }
    loadEnvFile(path, variables)
    expect(variables).toEqual({ RELAY_PORT: '2', RELAY_HOST: '127.0.0.1', RELAY_LOG_LEVEL: 'debug' })
    expect(() => loadEnvFile(join(directory, 'none'), variables)).toThrow(/Cannot read the file of --env-file: ENOENT/)
    await rm(directory, { recursive: true })
  })

  test('reads the Temporal connection from the standard variables', () => {
    const { temporal } = readConfig({ TEMPORAL_ADDRESS: 'temporal.example:7233', TEMPORAL_NAMESPACE: 'documents' })
    expect(temporal).toMatchObject({ namespace: 'documents', connectionOptions: { address: 'temporal.example:7233' } })
  })

  test('keeps its variables and those of its services from the programs that it starts', () => {
    const secret = {
      DATABASE_URL: 'postgres://relay:canary@127.0.0.1/relay',
      RELAY_SECRET_KEYS: `k1:${'A'.repeat(43)}=`,
      TEMPORAL_API_KEY: 'canary',
      PGPASSWORD: 'canary',
      AWS_SECRET_ACCESS_KEY: 'canary',
      AZURE_CLIENT_SECRET: 'canary',
      GOOGLE_APPLICATION_CREDENTIALS: 'canary',
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=canary',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'api-key=canary',
    }
    const others = { PATH: '/usr/bin', HOME: '/home/relay', LANG: 'C' }
    expect(readConfig({ ...secret, ...others }).childEnvironment).toEqual(others)
  })

  test('matches docs/configuration.md, which `npm run docs` generates', async () => {
    expect(await readFile(new URL('../../docs/configuration.md', import.meta.url), 'utf8')).toBe(configurationPage())
  })
})
