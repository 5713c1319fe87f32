import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configurationPage } from '../docs/configuration.ts'
import { loadEnvFile, readConfig } from '../src/config.ts'
import { UserError } from '../src/errors.ts'

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

  test('names variables that look like ones of the relay and are none', () => {
    const variables = {
      RELAY_PROT: '1',
      DELIVERY_MAX: '1',
      RELAY_PORT: '1',
      RELAY_SFTP_BIN: '/bin',
      RELAY_TEST_FULL: '1',
      RELAY_CREDENTIAL_ACME_PROD_ARCHIVE_PASSWORD: 'secret',
      PATH: '/bin',
      RELAY_X: '',
    }
    expect(readConfig(variables).unknownVariables).toEqual(['RELAY_PROT', 'DELIVERY_MAX'])
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

  test('reads the headers for the collector, and does not quote them if they are invalid', () => {
    const headers = 'api-key=a%20b, x=1=2,'
    expect(readConfig({ OTEL_EXPORTER_OTLP_HEADERS: headers }).OTEL_EXPORTER_OTLP_HEADERS).toEqual({ 'api-key': 'a b', x: '1=2' })
    expect(readConfig({ OTEL_EXPORTER_OTLP_HEADERS: 'x=100%' }).OTEL_EXPORTER_OTLP_HEADERS).toEqual({ x: '100%' })
    expect(() => readConfig({ OTEL_EXPORTER_OTLP_HEADERS: 'canary' })).toThrow(
      new UserError('Invalid configuration: OTEL_EXPORTER_OTLP_HEADERS: must be name=value pairs'),
    )
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
    expect(await readFile(new URL('../docs/configuration.md', import.meta.url), 'utf8')).toBe(configurationPage())
  })
})
