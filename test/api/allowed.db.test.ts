import { createConnectors } from '../../src/connectors/index.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const role = 'arn:aws:iam::123456789012:role/documents'
const scene = share(
  await startScene({
    findConnector: createConnectors({
      RELAY_S3_ROLES: [{ workspace: 'acme/prod', value: role }],
      RELAY_TOKEN_FILE_ROOTS: [{ value: '/tokens/{workspace}' }],
      RELAY_DIRECTORY_ROOTS: [{ value: '/srv/{workspace}' }],
    }).find,
  }),
)

const entra = { tenant_id: 'acme.example', client_id: 'relay' }
const site = { site_url: 'https://acme.sharepoint.com/sites/documents', document_library: 'Documents' }
/** Destinations that use what is allowed to `acme/prod`, and where another workspace is told that it may not. */
const targets = [
  ['credentials.role_arn', 'objstore', { bucket: 'documents', region: 'eu-central-1' }, { role_arn: role, external_id: 'acme-4711' }],
  ['credentials.federated_token_file', 'teamsite', site, { ...entra, federated_token_file: '/tokens/acme/prod/azure' }],
  ['config.path', 'directory', { path: '/srv/acme/prod/in' }, {}],
] as const

describe.each(targets)('%s of %s', (path, connector_type, config, credentials) => {
  const target = { connector_type, config, credentials }
  const refused = [422, 'validation_failed', [{ path, message: expect.stringMatching(/allowed the workspace no|allows to the workspace/) }]]
  const outcomeOf = ({ status, json }: { status: number; json: { error: { code: string; details: unknown } } }) => [
    status,
    json.error.code,
    json.error.details,
  ]

  test('is saved in the workspace that it is allowed to, and refused in another: created, tested, changed', async () => {
    const { acme, other } = scene
    const created = await acme.call('POST', '/destinations', { name: connector_type, ...target })
    expect(created.status).toBe(201)
    expect(outcomeOf(await other.call('POST', '/destinations', { name: connector_type, ...target }))).toEqual(refused)
    expect(outcomeOf(await other.call('POST', '/destinations/test', target))).toEqual(refused)

    // A destination of the other workspace that may be there is not changed into one that may not.
    const change = path.startsWith('config') ? { config } : { credentials }
    const own = path.startsWith('config')
      ? { ...target, config: { path: '/srv/other/prod/in' } }
      : {
          ...target,
          credentials: connector_type === 'objstore' ? { access_key_id: 'a', secret_access_key: 'b' } : { ...entra, client_secret: 'c' },
        }
    const { json } = await other.call('POST', '/destinations', { name: `own ${connector_type}`, ...own })
    expect(outcomeOf(await other.call('PATCH', `/destinations/${json.data.id}`, change))).toEqual(refused)
    expect(outcomeOf(await other.call('POST', `/destinations/${json.data.id}/test-change`, change))).toEqual(refused)
  })
})
