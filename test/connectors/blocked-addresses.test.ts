import dns from 'node:dns'
import net, { type LookupFunction } from 'node:net'
import { generateKeyPairSync } from 'node:crypto'
import { readConfig } from '../../src/config.ts'
import { createBlob } from '../../src/connectors/blob.ts'
import { createCloudApi, takeUploadUrl } from '../../src/connectors/cloud-api.ts'
import { DeliveryError, type Connector, type Parcel } from '../../src/connectors/connector.ts'
import { createDrive } from '../../src/connectors/drive.ts'
import { email } from '../../src/connectors/email.ts'
import { createEntraTokens } from '../../src/connectors/entra-token.ts'
import { objstore } from '../../src/connectors/objstore.ts'
import { sftp } from '../../src/connectors/sftp.ts'
import { webhook } from '../../src/connectors/webhook.ts'
import { testTarget } from '../../src/http/targets.ts'
import { createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import { guardedHosts, shutHosts } from '../support/addresses.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { contextOf, parcelOf } from './parcels.ts'
import { teamsiteAt } from './teamsite-rig.ts'

const account = {
  type: 'service_account',
  client_email: 'relay@project.example',
  private_key: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
}
const entra = { tenant_id: 'contoso.example', client_id: 'client-1', client_secret: 'the-secret' }
const site = { site_url: 'https://contoso.sharepoint.com/sites/Finance', document_library: 'Documents' }
const withoutBrackets = (host: string) => host.replace(/^\[|\]$/g, '')

interface Way {
  connector: Connector
  config: object
  credentials: object
}

/** Every place where somebody may name a host, and how a connector is led there. */
const ways: Record<string, (host: string, port: number) => Way> = {
  'the endpoint of objstore': (host, port) => ({
    connector: objstore,
    config: { bucket: 'documents', region: 'us-east-1', endpoint: `http://${host}:${port}`, path_style: true },
    credentials: { access_key_id: 'key', secret_access_key: 'secret' },
  }),
  'the account_url of blob': (host, port) => ({
    connector: createBlob(createEntraTokens()),
    config: { account_url: `http://${host}:${port}/acme`, container: 'documents' },
    credentials: { account_key: 'c2VjcmV0' },
  }),
  'the authority where teamsite signs in': (host, port) => ({
    // no workspace names it: only its form in a URL is to be tried
    connector: teamsiteAt(new URL(`https://${host}:${port}`).origin, 'https://graph.example/.default'),
    config: site,
    credentials: entra,
  }),
  'the token_uri of drive': (host, port) => ({
    connector: createDrive(),
    config: { folder_id: 'folder' },
    credentials: { service_account: { ...account, token_uri: `https://${host}:${port}/token` } },
  }),
  'the host of sftp': (host, port) => ({
    connector: sftp,
    config: { host: withoutBrackets(host), port },
    credentials: { username: 'relay', password: 'secret' },
  }),
  'the host of email': (host, port) => ({
    connector: email,
    config: { host: withoutBrackets(host), port, tls: 'none', from: 'relay@acme.example', to: 'archive@acme.example' },
    credentials: {},
  }),
  'the url of webhook': (host, port) => ({ connector: webhook, config: { url: `http://${host}:${port}/` }, credentials: {} }),
}

const names: Record<string, string> = {
  'localhost.': '127.0.0.1',
  'localhost.localdomain': '127.0.0.1',
  'metadata.google.internal': '169.254.169.254',
  'metadata.google.internal.': '169.254.169.254',
  'instance-data.ec2.internal': '169.254.169.254',
  'innocent.example': '10.0.0.1',
}
const hosts = [...shutHosts, ...guardedHosts, ...Object.keys(names)]

/** As helpful to a caller with evil intent as a resolver can be: it understands every form of an address that some library does. */
const helpful: LookupFunction = (host, options, done) => {
  const read = URL.canParse(`http://${host}/`) ? withoutBrackets(new URL(`http://${host}/`).hostname) : host
  const address = names[host] ?? (net.isIP(read) ? read : undefined)
  if (address === undefined) dns.lookup(host, options, done)
  else done(null, [{ address, family: net.isIP(address) }])
}

let canary: HttpTarget
let outbound: OutboundGuard
beforeAll(async () => {
  canary = await startHttpTarget()
  canary.answerWith((_arrival, response) => response.end('what nobody outside is to read'))
  outbound = createOutboundGuard({ allowedCidrs: [], lookup: helpful })
})
afterAll(async () => {
  await outbound.close()
  await canary.stop()
})

const small = () => parcelOf(Buffer.from('x'))
const codeOf = (act: () => Promise<unknown>) =>
  act().then(
    () => 'reached',
    (thrown: unknown) => (thrown instanceof DeliveryError ? `${thrown.code}${thrown.permanent ? ', final' : ''}` : String(thrown)),
  )
const targetOf = ({ connector, config, credentials }: Way) => ({
  config: connector.config.parse(config),
  credentials: connector.credentials.parse(credentials),
})

describe.each(Object.entries(ways))('%s', (_name, way) => {
  test(`leads to none of ${hosts.length} hosts, neither in a delivery nor in a test, and nothing of an answer comes back`, async () => {
    const outcomes: Record<string, unknown> = {}
    for (const host of hosts) {
      const each = way(host, canary.port)
      const deliver = (parcel: Parcel) => each.connector.deliver(parcel, targetOf(each), contextOf(outbound))
      outcomes[host] = [
        await codeOf(() => deliver(small())),
        await codeOf(() => each.connector.probe(targetOf(each), contextOf(outbound))),
        await testTarget({ outbound, config: readConfig({}) }, each.connector, each, new AbortController().signal),
      ]
    }
    const blocked = [
      'blocked_address, final',
      'blocked_address, final',
      { status: 'failed', message: expect.stringContaining('may not reach') },
    ]
    expect(outcomes).toEqual(Object.fromEntries(hosts.map((host) => [host, blocked])))
    expect(canary.connections()).toBe(0)
  })

  test('leads to the address that was judged, and to no other when the name leads elsewhere a moment later', async () => {
    let asked = 0
    // nothing listens at the first one, which may be reached; the second is that of the canary
    const rebinding: LookupFunction = (_host, _options, done) =>
      done(null, [{ address: ['127.0.0.2', '127.0.0.1'][Math.min(asked++, 1)]!, family: 4 }])
    const guard = createOutboundGuard({ allowedCidrs: ['127.0.0.2/32'], lookup: rebinding })
    const each = way('rebinding.example', canary.port)

    const first = await codeOf(() => each.connector.deliver(small(), targetOf(each), contextOf(guard)))
    const second = await codeOf(() => each.connector.deliver(small(), targetOf(each), contextOf(guard)))

    expect([first, second, asked]).toEqual(['connection_refused', 'blocked_address, final', 2])
    expect(canary.connections()).toBe(0)
    await guard.close()
  })
})

test('an address of an upload session that a service names leads to none of them either', async () => {
  const cloud = createCloudApi({
    root: 'https://graph.example',
    takeToken: async () => 'token',
    forgetToken: () => {},
    refusalOf: () => new DeliveryError('refused', 'refused'),
    secrets: [],
    context: contextOf(outbound),
  })
  for (const host of hosts) {
    const url = `https://${host}:${canary.port}/up`
    const act = () => cloud.callSession(takeUploadUrl(cloud, url), { method: 'PUT', body: 'x' })
    await expect(act()).rejects.toMatchObject({ code: 'blocked_address' })
  }
})

test.each([
  ['objstore', objstore, { bucket: 'documents', region: 'us-east-1' }, 'endpoint'],
  ['blob', createBlob(createEntraTokens()), { container: 'documents' }, 'account_url'],
  ['webhook', webhook, {}, 'url'],
  ['teamsite', teamsiteAt('https://graph.example', 's'), { document_library: 'Documents' }, 'site_url'],
] as [string, Connector, object, string][])(
  'the config of %s takes no address with a user, of a socket or of a file',
  (_kind, connector, config, key) => {
    for (const url of [
      'https://contoso.sharepoint.com@127.0.0.1/',
      'http://user:password@127.0.0.1/',
      'unix:///var/run/docker.sock',
      'http+unix://%2Fvar%2Frun%2Fdocker.sock/',
      'file:///etc/passwd',
      'gopher://127.0.0.1:6379/_FLUSHALL',
      'javascript:alert(1)',
      '//127.0.0.1/',
      'http://',
    ]) {
      expect([url, connector.config.safeParse({ ...config, [key]: url }).success]).toEqual([url, false])
    }
  },
)

test.each([
  ['sftp', sftp, {}],
  ['email', email, { from: 'relay@acme.example', to: 'archive@acme.example' }],
] as [string, Connector, object][])('the host of %s is a host and nothing else', (_kind, connector, config) => {
  for (const host of ['mail.example@127.0.0.1', '/var/run/docker.sock', 'unix:/var/run/docker.sock', 'a b', 'host\r\nQUIT', '']) {
    expect([host, connector.config.safeParse({ ...config, host }).success]).toEqual([host, false])
  }
})

test('nothing above has reached what nobody outside is to read', () => {
  expect(canary.connections()).toBe(0)
})
