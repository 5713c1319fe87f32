import { MockActivityEnvironment } from '@temporalio/testing'
import { createReceive } from '../../src/archive/receive.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createOpenCredentials, credentialsOwner } from '../../src/connectors/target.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createTestDatabase } from '../support/database.ts'
import { attemptActivities } from '../support/delivery-activities.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { startPlainSftpServer } from '../support/plain-sftp-server.ts'
import { share } from '../support/share.ts'

const config = testConfig()
const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
const { find } = createConnectors()

const database = share(await createTestDatabase())

type Lookup = NonNullable<Parameters<typeof createOutboundGuard>[0]['lookup']>

/** Creates a destination. @returns a function that receives a document and attempts its delivery */
const arrange = async (kind: string, targetConfig: object, credentials: object, lookup?: Lookup) => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'target', connector: kind, config: targetConfig }], {
    settings: { path_template: '{doc_id}-{comp_id}' },
  })
  const id = routes.destinations['target']!
  const sealed = keyRing.seal(credentials, credentialsOwner(find(kind)!, { ...routes, id, config: { ...targetConfig } }))
  await db('destinations').where({ id }).update({ credentials_sealed: sealed })
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS, ...(lookup && { lookup }) })
  const { attemptDelivery } = attemptActivities({
    db,
    config,
    outbound,
    openCredentials: createOpenCredentials(keyRing),
  })
  const policy = { maxRetries: 2, ttlMs: 3_600_000, initialIntervalMs: 10_000, maxIntervalMs: 60_000 }
  return {
    destination: () => db('destinations').where({ id }).first(),
    deliver: async () => {
      const received = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
      if (!received.created) throw new Error('not created')
      const { documentId } = received.messages[0]!.input
      const input = { documentId, destinationId: id, policy, round: 'first', attemptTimeoutMs: 60_000, workspace: 'acme/invoices' }
      return new MockActivityEnvironment().run(attemptDelivery, input)
    },
    close: () => outbound.close(),
  }
}

test('the first delivery pins the host key of an SFTP server, and a server with another key gets nothing', async () => {
  const server = await startPlainSftpServer('canary-password', await findFreePort())
  const credentials = { username: 'relay', password: 'canary-password' }
  const { deliver, destination, close } = await arrange('sftp', { host: '127.0.0.1', port: server.port }, credentials)
  expect(await deliver()).toEqual({ status: 'delivered' })
  const { config: pinned } = await destination()
  expect(pinned).toEqual({ host: '127.0.0.1', port: server.port, host_key_sha256: expect.stringMatching(/^SHA256:/) })
  expect(await deliver()).toEqual({ status: 'delivered' })
  expect((await destination()).config).toEqual(pinned)
  await server.stop()

  const stranger = await startPlainSftpServer('canary-password', server.port)
  expect(await deliver()).toMatchObject({ status: 'failed', errorCode: 'host_key_mismatch' })
  expect(stranger.files.size).toBe(0)
  await stranger.stop()
  await close()
})

test('an attempt sends no credentials over http to a public address, whatever the name resolved to when it was saved', async () => {
  const lookup: Lookup = (_host, _options, done) => done(null, [{ address: '8.8.8.8', family: 4 }])
  const { deliver, close } = await arrange('webhook', { url: 'http://moved.example/in' }, { bearer_token: 'canary-token' }, lookup)
  expect(await deliver()).toMatchObject({ status: 'failed', errorCode: 'tls_required' })
  await close()
})
