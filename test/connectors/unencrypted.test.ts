import type { LookupFunction } from 'node:net'
import type { Connector } from '../../src/connectors/connector.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { outboundFor } from '../../src/connectors/target.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, failure, payloadOf } from './payloads.ts'

const { find } = createConnectors()
// No process listens at the port: a connection that is allowed is refused by the machine.
const port = await findFreePort()

/** Resolves every name to one address. A connection to the public one would leave the machine. */
const guardFor = (address: string) => {
  const lookup: LookupFunction = (_host, _options, done) => done(null, [{ address, family: 4 }])
  return createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'], lookup })
}

const email = { from: 'relay@acme.example', to: 'archive@acme.example' }
const kinds: [kind: string, config: object, credentials: object][] = [
  ['webhook', { url: `http://target.example:${port}/` }, { bearer_token: 'canary' }],
  ['webhook', { url: `http://target.example:${port}/` }, { username: 'relay', password: 'canary' }],
  ['webhook', { url: `http://target.example:${port}/` }, { header_name: 'x-key', header_value: 'canary' }],
  [
    'objstore',
    { bucket: 'archive', region: 'us-east-1', endpoint: `http://target.example:${port}`, path_style: true },
    { access_key_id: 'AKIA', secret_access_key: 'canary', session_token: 'canary' },
  ],
  ['blob', { account_url: `http://target.example:${port}/acme`, container: 'archive' }, { account_key: 'Y2FuYXJ5' }],
  ['blob', { account_url: `http://target.example:${port}/acme`, container: 'archive' }, { sas_token: 'sv=1&sig=canary' }],
  ['email', { host: 'target.example', port, tls: 'none', ...email }, { username: 'relay', password: 'canary' }],
]

const attempt = async (kind: string, config: object, credentials: object, address: string) => {
  const connector: Connector = find(kind)!
  const target = { config: connector.config.parse(config), credentials: connector.credentials.parse(credentials) }
  const guard = guardFor(address)
  const outbound = outboundFor(guard, connector, target)
  try {
    return await failure(connector.deliver(payloadOf(Buffer.from('x')), target, contextOf(guard, { outbound, connectTimeoutMs: 2_000 })))
  } finally {
    await guard.close()
  }
}

test.each(kinds)('%s sends its credentials without encryption to an allowed private address only: %j %j', async (...destination) => {
  expect(await attempt(...destination, '8.8.8.8')).toMatchObject({ code: 'tls_required', permanent: true })
  expect(await attempt(...destination, '10.0.0.1')).toMatchObject({ code: 'blocked_address' })
  expect(await attempt(...destination, '127.0.0.1')).toMatchObject({ code: 'connection_refused' })
})

test.each<[string, object, object]>([
  ['webhook', { url: 'https://target.example/' }, { bearer_token: 'canary' }],
  ['webhook', { url: 'http://target.example/' }, { secret: 'only-signs' }],
  ['webhook', { url: 'http://target.example/' }, {}],
  ['email', { host: 'target.example', tls: 'none', ...email }, {}],
  ['email', { host: 'target.example', ...email }, { username: 'relay', password: 'canary' }],
  ['sftp', { host: 'target.example' }, { username: 'relay', password: 'canary' }],
])('%s with %j and %j may connect to any public address', async (kind, config, credentials) => {
  const guard = guardFor('8.8.8.8')
  expect(outboundFor(guard, find(kind)!, { config, credentials })).toBe(guard)
  await guard.close()
})

test('a connection with TLS may go to public addresses, also in an attempt whose target is not encrypted', async () => {
  const guard = createOutboundGuard({
    allowedCidrs: [],
    lookup: (_host, _options, done) => done(null, [{ address: '10.0.0.1', family: 4 }]),
  })
  const { https } = guard.unencryptedPrivate.agents({ connectTimeoutMs: 100 })
  const { get } = await import('node:https')
  const error = await new Promise((resolve) => get('https://login.example/', { agent: https }).once('error', resolve))
  // The check of the address, and not that of encryption, has refused it.
  expect(error).toMatchObject({ code: 'blocked_address' })
  await guard.close()
})
