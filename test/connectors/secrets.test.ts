import { generateKeyPairSync } from 'node:crypto'
import { allConnectors, findConnector } from '../../src/connectors/index.ts'
import { secretsIn } from '../../src/connectors/secrets.ts'

const privateKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

test.each<[string, object, string[]]>([
  ['objstore', { access_key_id: 'AKIA1', secret_access_key: 'canary', session_token: 'canary-2' }, ['canary', 'canary-2']],
  ['blob', { account_key: 'Y2FuYXJ5' }, ['Y2FuYXJ5']],
  ['blob', { tenant_id: 'acme.example', client_id: 'client', client_secret: 'canary' }, ['canary']],
  ['teamsite', { tenant_id: 'acme.example', client_id: 'client', client_secret: 'canary' }, ['canary']],
  [
    'drive',
    { service_account: { type: 'service_account', client_email: 'relay@project.example', private_key: privateKey, project_id: 'p' } },
    [privateKey],
  ],
  ['sftp', { username: 'relay', password: 'canary' }, ['canary']],
  ['email', { username: 'relay', password: 'canary' }, ['canary']],
  ['webhook', { username: 'relay', password: 'canary', secret: 'canary-2' }, ['canary', 'canary-2']],
])('of the credentials of %s only what is secret is taken for one', (kind, credentials, secrets) => {
  const { credentials: schema } = findConnector(kind as 'objstore')!
  expect(secretsIn(schema, schema.parse(credentials)).toSorted()).toEqual(secrets.toSorted())
})

test('every kind is tried', () => {
  expect(allConnectors()).toHaveLength(7)
})
