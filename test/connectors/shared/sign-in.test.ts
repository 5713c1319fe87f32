import { createConnectors } from '../../../src/connectors/index.ts'
import { signInOf } from '../../../src/connectors/shared/sign-in.ts'

const { find } = createConnectors()

const byCertificate = { tenant_id: 'acme.example', client_id: '4711', client_certificate: 'PEM', client_key: 'PEM' }
const federated = { tenant_id: 'acme.example', client_id: '4711', federated_token_file: '/var/run/secrets/azure/token' }
const entra = { tenant_id: 'acme.example', client_id: '4711', client_secret: 'fictitious' }

test.each([
  ['blob', { account_key: 'ZmljdGl0aW91cw==' }, 'account_key'],
  ['blob', { sas_token: 'sv=2024&sig=abc' }, 'sas_token'],
  ['blob', entra, 'entra'],
  ['blob', byCertificate, 'entra_certificate'],
  ['teamsite', entra, 'entra'],
  ['teamsite', byCertificate, 'entra_certificate'],
  ['email', { username: 'relay', ...byCertificate }, 'entra_certificate'],
  ['blob', federated, 'entra_federated'],
  ['teamsite', federated, 'entra_federated'],
  ['email', { username: 'relay', ...federated }, 'entra_federated'],
  ['sftp', { username: 'relay', password: 'fictitious' }, 'password'],
  ['sftp', { username: 'relay', private_key: 'fictitious', passphrase: 'fictitious' }, 'private_key'],
  ['email', {}, 'none'],
  ['email', { username: 'relay', password: 'fictitious' }, 'password'],
  ['email', { username: 'relay', ...entra }, 'entra'],
  ['webhook', { secret: 'fictitious' }, 'none'],
  ['webhook', { secret: 'fictitious', bearer_token: 'fictitious' }, 'bearer_token'],
  ['webhook', { username: 'relay', password: 'fictitious' }, 'basic'],
  ['webhook', { header_name: 'X-Key', header_value: 'fictitious' }, 'header'],
  ['webhook', { token_url: 'https://login.example/token', client_id: '4711', client_secret: 'fictitious' }, 'oauth2'],
  ['objstore', { access_key_id: 'fictitious', secret_access_key: 'fictitious' }, 'access_key'],
  ['objstore', { role_arn: 'arn', external_id: 'fictitious' }, 'aws_role'],
  ['objstore', { role_arn: 'arn', federated_token_file: '/token' }, 'aws_web_identity'],
  ['directory', {}, null],
])('the sign-in of %s with %j is %s', (kind, credentials, signIn) => {
  expect(signInOf(find(kind)!, credentials)).toBe(signIn)
})

test.each([
  ['blob', {}, ['', 'must contain exactly one of']],
  ['blob', { tenant_id: 'acme.example' }, ['client_id', 'tenant_id, client_id and client_secret must be set together']],
  ['blob', { account_key: 'ZmljdGl0aW91cw==', tenant_id: 'acme.example' }, ['', 'must contain exactly one of']],
  ['blob', { ...entra, client_key: 'PEM' }, ['', 'must contain exactly one of']],
  ['blob', byCertificate, ['client_certificate', 'must be one or more PEM certificates']],
  ['teamsite', { tenant_id: 'acme.example', client_id: '4711' }, ['client_secret', 'must be set together']],
  ['teamsite', { ...byCertificate, client_key: undefined }, ['client_key', 'must be set together']],
  ['email', { username: 'relay', ...byCertificate, client_key: undefined }, ['client_key', 'must be set together']],
  ['teamsite', { ...entra, ...federated }, ['', 'must contain exactly one of']],
  ['email', { username: 'relay', ...entra, ...federated }, ['client_secret', 'must not be set together with federated_token_file']],
  ['email', { username: 'relay', ...byCertificate, ...entra }, ['client_secret', 'must not be set together with client_certificate']],
  ['sftp', { username: 'relay' }, ['', 'must contain password, private_key, or both']],
  ['sftp', { username: 'relay', password: 'fictitious', passphrase: 'fictitious' }, ['passphrase', 'needs private_key']],
])('%s refuses the credentials %j', (kind, credentials, [path, message]) => {
  const { error } = find(kind)!.credentials.safeParse(credentials)
  expect(error!.issues).toContainEqual(expect.objectContaining({ path: path ? [path] : [], message: expect.stringContaining(message!) }))
})
