import { generateKeyPairSync } from 'node:crypto'
import { z } from 'zod'
import { createConnectors } from '../../src/connectors/index.ts'
import { createThrowAwayKey } from '../../src/security/throw-away-key.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const connectors = createConnectors()
const { database, acme } = share(await startScene({ findConnector: connectors.find }))

const certificate = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----'
const rsaKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' })
const entra = { tenant_id: 'contoso.example', client_id: 'relay', client_secret: 'canary-secret' }

interface Sample {
  config: Record<string, unknown>
  credentials: object
  /** Another value for every bound key. */
  bound: Record<string, unknown>
  /** A key that is not bound. */
  free: Record<string, unknown>
}

const signing = await createThrowAwayKey('rsa', 'RELAY', 1)

const samples: Record<string, Sample> = {
  objstore: {
    config: { bucket: 'archive', region: 'us-east-1', endpoint: 'https://s3.example' },
    credentials: { access_key_id: 'AKIA', secret_access_key: 'canary-secret' },
    bound: { endpoint: 'https://attacker.example', ca_certificate: certificate },
    free: { bucket: 'another' },
  },
  blob: {
    config: { account_url: 'https://acme.blob.core.windows.net', container: 'archive' },
    credentials: { sas_token: 'sv=1&sig=canary-secret' },
    bound: { account_url: 'https://attacker.example', ca_certificate: certificate },
    free: { prefix: 'in/' },
  },
  teamsite: {
    config: { site_url: 'https://contoso.sharepoint.com/sites/Finance', document_library: 'Documents' },
    credentials: entra,
    bound: { site_url: 'https://contoso.sharepoint.com/sites/Board', cloud: 'usgov', ca_certificate: certificate },
    free: { folder: 'Incoming' },
  },
  drive: {
    config: { folder_id: 'abc' },
    credentials: { service_account: { type: 'service_account', client_email: 'relay@acme.example', private_key: rsaKey } },
    bound: { subject: 'cfo@acme.example', ca_certificate: certificate },
    free: { folder_id: 'def' },
  },
  sftp: {
    config: { host: 'sftp.example', host_key_sha256: 'ab'.repeat(32) },
    credentials: { username: 'relay', password: 'canary-secret' },
    bound: { host: 'attacker.example', port: 2222, host_key_sha256: 'cd'.repeat(32), algorithms: 'legacy' },
    free: { directory: 'in' },
  },
  email: {
    config: { host: 'smtp.example', from: 'relay@acme.example', to: 'archive@acme.example' },
    credentials: { username: 'relay', password: 'canary-secret' },
    bound: { host: 'attacker.example', port: 2525, tls: 'implicit', ca_certificate: certificate },
    free: { subject_template: 'Invoice' },
  },
  webhook: {
    config: { url: 'https://dms.example/in' },
    credentials: { bearer_token: 'canary-secret' },
    bound: { url: 'https://attacker.example/in', ca_certificate: certificate },
    free: { method: 'PUT' },
  },
  directory: { config: {}, credentials: {}, bound: {}, free: {} },
  'content-server': {
    config: { url: 'https://archive.example/cs', repository: 'Z1' },
    credentials: { auth_id: 'CN=RELAY', certificate: signing.certificate, private_key: signing.privateKey },
    bound: { url: 'https://attacker.example/cs', repository: 'Z2', ca_certificate: certificate },
    free: { document_ids: 'relay' },
  },
}

const create = async (kind: string, { config, credentials }: Pick<Sample, 'config' | 'credentials'>): Promise<string> => {
  const { status, json, text } = await acme.call('POST', '/destinations', { name: kind, connector_type: kind, config, credentials })
  expect([status, status === 201 || text]).toEqual([201, true])
  return json.data.id
}
const patch = (id: string, body: object) => acme.call('PATCH', `/destinations/${id}`, body)
const stored = (id: string) => database.db('destinations').where({ id }).first(['config', 'credentials_sealed'])

test('the samples cover every kind and every bound key', () => {
  const bound = connectors.all.map(({ kind, boundKeys }) => [kind, [...boundKeys].toSorted()])
  expect(Object.entries(samples).map(([kind, sample]) => [kind, Object.keys(sample.bound).toSorted()])).toEqual(bound)
})

// docs/connectors/README.md, "Credentials stay with their address". The repository of a content server is part of what its key signs.
const addressKeys = /^(host|port|url|endpoint|account_url|site_url|cloud|host_key_sha256|algorithms|repository|tls|ca_certificate|subject)$/

test('every key of a config that names an address, a server or a user is bound', () => {
  for (const { config, boundKeys } of connectors.all) {
    const { properties = {} } = z.toJSONSchema(config, { io: 'input', unrepresentable: 'any' })
    expect([...boundKeys].toSorted()).toEqual(
      Object.keys(properties)
        .filter((key) => addressKeys.test(key))
        .toSorted(),
    )
  }
})

const cases = Object.entries(samples).flatMap(([kind, sample]) =>
  Object.entries(sample.bound).map(([key, value]) => ({ kind, key, value })),
)

test.each(cases)('a change of $key of $kind needs the credentials again', async ({ kind, key, value }) => {
  const sample = samples[kind]!
  const id = await create(kind, sample)
  const before = await stored(id)
  const removal = sample.config[key] === undefined ? [] : [null]
  for (const next of [value, ...removal]) {
    const { status, json } = await patch(id, { config: { [key]: next } })
    // Required keys cannot be removed at all.
    const { path, message } = json.error.details[0]
    expect([status, path === 'credentials' || (next === null && path === `config.${key}`)]).toEqual([422, true])
    if (path === 'credentials') expect(message).toMatch(new RegExp(`^required: .*config\\.${key}`))
    expect(await stored(id)).toEqual(before)
    const tested = await acme.call('POST', `/destinations/${id}/test-change`, { config: { [key]: next } })
    expect([tested.status, tested.json.error.details[0].path]).toEqual([422, path])
  }
  const changed = await patch(id, { config: { [key]: value }, credentials: sample.credentials })
  expect(changed.json.data.attributes.config[key]).toEqual(value)
  // The credentials are sealed for the new value: the next change of an unbound key finds nothing to object to.
  expect((await patch(id, { config: { [key]: value, ...sample.free } })).status).toBe(200)
  // Added before, so that its removal is a change too.
  if (removal.length === 0) expect((await patch(id, { config: { [key]: null } })).json.error.details[0].path).toBe('credentials')
})

test.each(Object.entries(samples).filter(([kind]) => kind !== 'directory'))(
  'a change of an unbound key of %s, or of a bound one to its current value, needs no credentials',
  async (kind, sample) => {
    const id = await create(kind, sample)
    const { credentials_sealed: before } = await stored(id)
    expect((await patch(id, { config: { ...sample.config, ...sample.free } })).status).toBe(200)
    expect((await stored(id)).credentials_sealed).toEqual(before)
  },
)

test.each([
  ['only a signing secret', { secret: 'canary-signing-secret', previous_secret: 'canary-previous' }],
  ['no credentials', {}],
])('a webhook with %s can be sent to another address', async (_, credentials) => {
  const id = await create('webhook', { ...samples['webhook']!, credentials })
  const before = await stored(id)
  expect((await patch(id, { config: { url: 'https://new.example/in' } })).status).toBe(200)
  // Sealed again, for the new address.
  expect((await stored(id)).credentials_sealed).not.toEqual(before.credentials_sealed)
  expect((await patch(id, { config: { url: 'https://newer.example/in' } })).status).toBe(200)
  const { rows } = await database.db.raw("select metadata from audit_logs where subject_id = ? and event = 'destination.updated'", [id])
  expect(rows).toMatchObject([{ metadata: { changed: ['config.url'] } }, { metadata: { changed: ['config.url'] } }])
})

test('a webhook with a signing secret and a bearer token is not exempt', async () => {
  const id = await create('webhook', { ...samples['webhook']!, credentials: { secret: 'canary-signing', bearer_token: 'canary-token' } })
  expect((await patch(id, { config: { url: 'https://new.example/in' } })).status).toBe(422)
})

test('credentials that no key opens have to be sent again with another address', async () => {
  const id = await create('webhook', { ...samples['webhook']!, credentials: {} })
  await database
    .db('destinations')
    .where({ id })
    .update({ credentials_sealed: Buffer.from('\x01\x05other', 'latin1') })
  expect((await patch(id, { config: { url: 'https://new.example/in' } })).status).toBe(422)
  expect((await patch(id, { config: { url: 'https://new.example/in' }, credentials: {} })).status).toBe(200)
})

test('a test of a destination whose address was changed in the database sends nothing and says what to do', async () => {
  const id = await create('webhook', samples['webhook']!)
  await database
    .db('destinations')
    .where({ id })
    .update({ config: JSON.stringify({ url: 'http://127.0.0.1:9/in' }) })
  const { json } = await acme.call('POST', `/destinations/${id}/test`)
  expect(json.data).toEqual({
    status: 'failed',
    message: expect.stringMatching(/cannot be decrypted.*address.*Save the credentials again/),
  })
})

test.each([
  ['webhook', { url: 'http://8.8.8.8/in' }, 'url', 'https://dms.example/in'],
  ['webhook', { url: 'http://[2001:4860:4860::8888]/in' }, 'url', 'https://dms.example/in'],
  ['webhook', { url: 'http://10.0.0.1/in' }, 'url', 'https://dms.example/in'],
  ['webhook', { url: 'http://name.invalid/in' }, 'url', 'https://dms.example/in'],
  ['objstore', { endpoint: 'http://8.8.8.8' }, 'endpoint', 'https://s3.example'],
  ['blob', { account_url: 'http://8.8.8.8/acme' }, 'account_url', 'https://acme.blob.core.windows.net'],
  ['email', { host: '8.8.8.8', tls: 'none' }, 'tls', 'starttls'],
])('credentials of %s are not accepted for %j', async (kind, config, key, encrypted) => {
  const sample = samples[kind]!
  const unencrypted = { config: { ...sample.config, ...config }, credentials: sample.credentials }
  const id = await create(kind, { ...sample, config: { ...unencrypted.config, [key]: encrypted } })
  const answers = [
    await acme.call('POST', '/destinations', { name: kind, connector_type: kind, ...unencrypted }),
    await acme.call('POST', '/destinations/test', { connector_type: kind, ...unencrypted }),
    await patch(id, unencrypted),
  ]
  for (const { status, json } of answers) {
    expect(status).toBe(422)
    expect(json.error.details).toEqual([{ path: `config.${key}`, message: expect.stringContaining('unencrypted') }])
  }
})

test.each([
  ['webhook', { url: 'http://127.0.0.1:9/in' }],
  ['webhook', { url: 'http://localhost:9/in' }],
  ['objstore', { endpoint: 'http://127.0.0.1:9' }],
  ['blob', { account_url: 'http://127.0.0.1:9/acme' }],
  ['email', { host: '127.0.0.1', tls: 'none' }],
])('credentials of %s are accepted for %j, which is an allowed private address', async (kind, config) => {
  const id = await create(kind, { ...samples[kind]!, config: { ...samples[kind]!.config, ...config } })
  expect((await stored(id)).config).toMatchObject(config)
})

test.each([[{}], [{ secret: 'canary-signing' }]])(
  'a webhook with the credentials %j, which are not sent, may use http',
  async (credentials) => {
    const config = { url: 'http://8.8.8.8/in' }
    expect((await stored(await create('webhook', { config, credentials }))).config).toEqual(config)
  },
)
