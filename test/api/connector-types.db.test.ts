import { connectorTypes, createConnectors } from '../../src/connectors/index.ts'
import { startApi } from '../support/api.ts'
import { createTestDatabase } from '../support/database.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())
const api = share(await startApi(database.db))
const acme = await api.tenant('acme/prod')

test('the connector types are listed with the schemas of their values, which have labels and name the secrets, and with what they can do', async () => {
  const { status, json } = await acme.call('GET', '/connector-types')
  expect(status).toBe(200)
  expect(json.data.map(({ id }: { id: string }) => id)).toEqual(connectorTypes)
  const objstore = json.data.find(({ id }: { id: string }) => id === 'objstore')
  expect(objstore).toMatchObject({
    type: 'connector_type',
    attributes: {
      config_schema: { type: 'object', properties: { bucket: { type: 'string', title: 'Bucket' }, kms_key_id: { title: 'KMS key ID' } } },
      credentials_schema: { properties: { secret_access_key: { writeOnly: true } } },
      is_available: true,
      has_properties: true,
      sends_notices: false,
    },
  })
  expect(objstore.attributes.bound_keys).toEqual(['endpoint', 'ca_certificate'])
})

test('a type of which the installation allows no destination is not available', async () => {
  const isDirectoryAvailable = async ({ call }: Pick<typeof acme, 'call'>) =>
    (await call('GET', '/connector-types')).json.data.find(({ id }: { id: string }) => id === 'directory').attributes.is_available
  expect(await isDirectoryAvailable(acme)).toBe(false)
  const other = share(
    await startApi(database.db, { findConnector: createConnectors({ RELAY_DIRECTORY_ROOTS: [{ value: '/srv/archive' }] }).find }),
  )
  expect(await isDirectoryAvailable(await other.tenant('other/prod'))).toBe(true)
})
