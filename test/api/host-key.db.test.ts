import { createConnectors } from '../../src/connectors/index.ts'
import { fingerprintBytes } from '../../src/connectors/sftp/session.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { createPinConfig } from '../../src/routing/pin-config.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { startPlainSftpServer } from '../support/plain-sftp-server.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const { database, acme } = share(await startScene())

const credentials = { username: 'relay', password: 'canary-password' }
const attributesOf = async (id: string) => (await acme.call('GET', `/destinations/${id}`)).json.data.attributes
const testOf = async (id: string) => (await acme.call('POST', `/destinations/${id}/test`)).json.data
const changesOf = async (id: string) => {
  const { json } = await acme.call('GET', `/audit-logs?subject_id=${id}&event=destination.updated`)
  return json.data.map(({ attributes }: { attributes: { actor_type: string; metadata: { changed: string[] } } }) => [
    attributes.actor_type,
    attributes.metadata.changed,
  ])
}

test('the host key is pinned at the first success, and another one is refused until the pin is cleared with the credentials', async () => {
  const first = await startPlainSftpServer(credentials.password, await findFreePort())
  const body = { name: 'SFTP', connector_type: 'sftp', config: { host: '127.0.0.1', port: first.port }, credentials }
  const id = (await acme.call('POST', '/destinations', body)).json.data.id as string
  first.forbid()
  expect((await testOf(id)).status).toBe('failed')
  expect((await attributesOf(id)).config).toEqual(body.config)
  await first.stop()

  const second = await startPlainSftpServer(credentials.password, first.port)
  const { status, message } = await testOf(id)
  expect({ status, message }).toEqual({ status: 'success', message: expect.stringContaining('host key is SHA256:') })
  const { host_key_sha256: pinned, ...rest } = (await attributesOf(id)).config
  expect(rest).toEqual(body.config)
  expect(message).toContain(pinned)
  expect(fingerprintBytes(pinned)).toHaveLength(32)
  expect(await changesOf(id)).toEqual([['system', ['config.host_key_sha256']]])
  // The credentials still open, and the pin stays.
  expect((await testOf(id)).status).toBe('success')
  expect(await changesOf(id)).toHaveLength(1)
  await second.stop()

  const third = await startPlainSftpServer(credentials.password, first.port)
  expect(await testOf(id)).toEqual({
    status: 'failed',
    message: expect.stringMatching(/host key SHA256:.*differs from host_key_sha256/),
    error_code: 'host_key_mismatch',
  })
  const cleared = { config: { host_key_sha256: null } }
  expect((await acme.call('PATCH', `/destinations/${id}`, cleared)).json.error.details[0].path).toBe('credentials')
  expect((await acme.call('PATCH', `/destinations/${id}`, { ...cleared, credentials })).json.data.attributes.config).toEqual(body.config)
  expect((await testOf(id)).status).toBe('success')
  expect((await attributesOf(id)).config.host_key_sha256).not.toBe(pinned)
  await third.stop()
})

test('nothing is pinned to a destination that was changed or deleted in the meantime', async () => {
  const keyRing = createKeyRing([`test:${Buffer.alloc(32, 1).toString('base64')}`])
  const pinConfig = createPinConfig(database.db, { keyRing, findConnector: createConnectors().find })
  const config = { host: 'sftp.example' }
  const body = { name: 'SFTP', connector_type: 'sftp', config, credentials }
  const id = (await acme.call('POST', '/destinations', body)).json.data.id as string
  const owner = ['destination', acme.id, id, [['host', 'sftp.example']]] as const
  const loaded = { workspaceId: acme.id, id, connector: 'sftp', config, credentialsSealed: keyRing.seal(credentials, owner) }
  // The row has other credentials than those that were loaded.
  await pinConfig(loaded, { host_key_sha256: 'ab'.repeat(32) })
  expect((await attributesOf(id)).config).toEqual(config)
  await database.db('destinations').where({ id }).update({ credentials_sealed: loaded.credentialsSealed, deleted_at: database.db.fn.now() })
  await pinConfig(loaded, { host_key_sha256: 'ab'.repeat(32) })
  expect((await database.db('destinations').where({ id }).first()).config).toEqual(config)
})
