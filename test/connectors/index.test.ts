import { z } from 'zod'
import { connectorTypes, createConnectors } from '../../src/connectors/index.ts'
import { parseTarget } from '../../src/connectors/target.ts'

const { find: findConnector } = createConnectors()

test('every registered connector is found by its kind', () => {
  const found = connectorTypes.map(findConnector).filter((connector) => connector !== undefined)
  expect(found.length).toBeGreaterThanOrEqual(3)
  for (const connector of found) expect(findConnector(connector.kind)).toBe(connector)
})

test('parsing fills in the defaults of config and credentials', () => {
  const connector = findConnector('sftp')!
  expect(parseTarget(connector, { config: { host: 'files.example' }, credentials: { username: 'u', password: 'p' } })).toEqual({
    target: {
      config: {
        host: 'files.example',
        port: 22,
        directory: '.',
        file_names: 'any',
        write: 'rename',
        part_file: '.relay-{id}.part',
        algorithms: 'secure',
      },
      credentials: { username: 'u', password: 'p' },
    },
  })
})

test('every config accepts the limits of a destination, and no other unknown key', () => {
  const credentials = { username: 'u', password: 'p' }
  const config = { host: 'files.example', max_concurrent_deliveries: 2, max_deliveries_per_minute: 0 }
  const parsed = parseTarget(findConnector('sftp')!, { config, credentials })
  expect(parsed).toMatchObject({ target: { config } })
  for (const wrong of [{ max_concurrent_deliveries: 0 }, { max_deliveries_per_minute: -1 }, { max_concurrent: 2 }]) {
    expect(parseTarget(findConnector('sftp')!, { config: { ...config, ...wrong }, credentials })).toHaveProperty('issues')
  }
})

test('all issues are reported at once, with their paths and without secrets', () => {
  const parsed = parseTarget(findConnector('objstore')!, {
    config: { bucket: 'documents', extra: 1 },
    credentials: { access_key_id: 'a', secret_access_key: 12_345_678 },
  })
  expect(parsed).toEqual({
    issues: expect.arrayContaining([
      expect.objectContaining({ path: 'config.region' }),
      expect.objectContaining({ path: 'credentials.secret_access_key' }),
    ]) as unknown,
  })
  expect(JSON.stringify(parsed)).not.toContain('12345678')
})

test('every credential that sounds secret is marked as secret', () => {
  const secretLike = /secret|password|token|passphrase|private_key|account_key|client_key|header_value|service_account|external_account/
  // How a token is got, and how long a secret is used.
  const plain = /^(token_(url|auth_method|ca_certificate)|federated_token_file|previous_secret_expires_at)$/
  for (const kind of connectorTypes) {
    const connector = findConnector(kind)
    if (!connector) continue
    const { properties = {} } = z.toJSONSchema(connector.credentials) as { properties?: Record<string, { secret?: boolean }> }
    for (const [key, schema] of Object.entries(properties))
      expect([kind, key, schema.secret ?? false]).toEqual([kind, key, secretLike.test(key) && !plain.test(key)])
  }
})
