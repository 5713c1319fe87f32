import { hardeningChecks } from '../../../src/cli/doctor/hardening-checks.ts'
import { readConfig } from '../../../src/config/config.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { disposable } from '../../support/disposable.ts'
import { testConfig } from '../../support/factories.ts'
import { share } from '../../support/share.ts'

// Connects at the first query, and these checks send none.
const config = testConfig({ DATABASE_URL: 'postgres://127.0.0.1:1/none' })
const db = share(disposable(openDatabase(config, 'test'), (each) => each.destroy()))

const find = (name: string, variables: Record<string, string>) =>
  hardeningChecks.find((check) => check.name === name)!.find({ config: readConfig(variables), db })

const keyOf = (bytes: Buffer) => ({ RELAY_SECRET_KEYS: `k1:${bytes.toString('base64')}` })
const random = Buffer.from('9f3c61d20be8475af1c2a3998e04d75b6c1ff0e2873d94a5b6028c7de15f3a40', 'hex')
const remote = { TEMPORAL_ADDRESS: 'temporal.internal:7233' }

test.each<[name: string, variables: Record<string, string>]>([
  ['sealing keys', keyOf(random)],
  ['public address', { RELAY_BASE_URL: 'https://relay.acme.test' }],
  ['public address', { RELAY_BASE_URL: 'http://127.0.0.1:8080' }],
  ['client addresses', { RELAY_BASE_URL: 'https://relay.acme.test', RELAY_TRUST_PROXY: 'true' }],
  ['client addresses', {}],
  ['metrics', {}],
  ['metrics', { RELAY_PROBES_HOST: '::1' }],
  ['metrics', { RELAY_PROBES_HOST: '0.0.0.0', RELAY_METRICS_TOKEN: '0123456789abcdef' }],
  ['Temporal encryption', {}],
  ['Temporal encryption', { TEMPORAL_ADDRESS: '127.0.0.1:7233' }],
  ['Temporal encryption', { TEMPORAL_ADDRESS: '[::1]:7233' }],
  ['Temporal encryption', { ...remote, TEMPORAL_API_KEY: 'key' }],
  ['private addresses', {}],
  ['private addresses', { RELAY_ALLOWED_PRIVATE_CIDRS: '10.1.2.3/32,192.168.7.0/24,fd00:1:2:3::/64' }],
  ['limits', {}],
  ['web origins', { RELAY_CORS_ORIGINS: 'https://console.acme.test,http://localhost:3000' }],
  ['log level', {}],
  ['log level', { RELAY_LOG_LEVEL: 'warn' }],
  ['content bucket', {}],
])('%s is met by %j', async (name, variables) => {
  expect(await find(name, variables)).toEqual([])
})

test.each<[name: string, variables: Record<string, string>, found: string[]]>([
  ['sealing keys', keyOf(Buffer.alloc(32, 7)), ['The key k1 is a text or a pattern.']],
  ['sealing keys', keyOf(Buffer.from('correct-horse-battery-staple-123')), ['The key k1 is a text or a pattern.']],
  ['public address', {}, ['RELAY_BASE_URL is not set']],
  ['public address', { RELAY_BASE_URL: 'http://relay.acme.test' }, ['in clear']],
  ['client addresses', { RELAY_BASE_URL: 'https://relay.acme.test' }, ['the address of the proxy']],
  ['client addresses', { RELAY_TRUST_PROXY: 'true' }, ['names no proxy']],
  ['metrics', { RELAY_PROBES_HOST: '0.0.0.0' }, ['Everybody who reaches 0.0.0.0']],
  ['Temporal encryption', remote, ['not encrypted', 'neither an API key nor a certificate']],
  ['Temporal encryption', { ...remote, TEMPORAL_TLS: 'true' }, ['neither an API key nor a certificate']],
  [
    'private addresses',
    { RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8,10.0.0.0/8,fc00::/7' },
    ['this machine', 'larger than a /24', 'larger than a /64'],
  ],
  ['limits', { RELAY_WORKSPACE_MAX_BYTES: '0', DOWNLOAD_LINK_TTL_MS: '8640000000' }, ['RELAY_WORKSPACE_MAX_BYTES is 0', '100 days']],
  ['web origins', { RELAY_CORS_ORIGINS: 'http://console.acme.test' }, ['http://console.acme.test']],
  ['log level', { RELAY_LOG_LEVEL: 'debug' }, ['more than operation needs']],
  ['log level', { RELAY_LOG_LEVEL: 'silent' }, ['hides warnings']],
])('%s is not met by %j', async (name, variables, found) => {
  expect(await find(name, variables)).toEqual(found.map((part) => expect.stringContaining(part)))
})
