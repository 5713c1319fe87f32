import dns from 'node:dns'
import net, { type LookupFunction } from 'node:net'
import { readConfig } from '../../src/config/config.ts'
import { DeliveryError, type Payload } from '../../src/connectors/connector.ts'
import { createCloudApi, requireUploadUrl } from '../../src/connectors/shared/cloud-api.ts'
import { testTarget } from '../../src/routing/targets.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { blockedByDefaultHosts, alwaysBlockedHosts } from '../support/addresses.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { contextOf, payloadOf, installationId } from './payloads.ts'
import { loadRigs, type Destination } from './rig.ts'

const installation = { id: async () => installationId }

const rigs = await loadRigs()
const withoutBrackets = (host: string) => host.replace(/^\[|\]$/g, '')

const names: Record<string, string> = {
  'localhost.': '127.0.0.1',
  'localhost.localdomain': '127.0.0.1',
  'metadata.google.internal': '169.254.169.254',
  'metadata.google.internal.': '169.254.169.254',
  'instance-data.ec2.internal': '169.254.169.254',
  'innocent.example': '10.0.0.1',
}
const hosts = [...alwaysBlockedHosts, ...blockedByDefaultHosts, ...Object.keys(names)]

/**
 * A resolver that helps an attacker as much as any resolver may: it accepts every form of an address that some library
 * accepts.
 */
const lenientLookup: LookupFunction = (host, options, done) => {
  const parsed = URL.canParse(`http://${host}/`) ? withoutBrackets(new URL(`http://${host}/`).hostname) : host
  const address = names[host] ?? (net.isIP(parsed) ? parsed : undefined)
  if (address === undefined) dns.lookup(host, options, done)
  else done(null, [{ address, family: net.isIP(address) }])
}

const canary = await startHttpTarget()
canary.answerWith((_arrival, response) => response.end('a response that nobody outside may read'))
const outbound = createOutboundGuard({ allowedCidrs: [], lookup: lenientLookup })
afterAll(async () => {
  await outbound.close()
  await canary.stop()
})

const small = () => payloadOf(Buffer.from('x'))
const codeOf = (act: () => Promise<unknown>) =>
  act().then(
    () => 'reached',
    (thrown: unknown) => (thrown instanceof DeliveryError ? `${thrown.code}${thrown.permanent ? ', final' : ''}` : String(thrown)),
  )
const targetOf = ({ connector, config, credentials }: Destination) => ({
  config: connector.config.parse(config),
  credentials: connector.credentials.parse(credentials),
})

test('every kind with a network connection has a setting that names a host', () => {
  expect(rigs.filter(({ hostSettings }) => hostSettings.length > 0).map(({ kind }) => kind)).toEqual(
    rigs.filter(({ usesNetwork }) => usesNetwork).map(({ kind }) => kind),
  )
})

describe.each(rigs.flatMap(({ hostSettings }) => hostSettings))('$name', ({ destination }) => {
  test(`reaches none of ${hosts.length} hosts, neither in a delivery nor in a test, and returns nothing of a response`, async () => {
    const outcomes: Record<string, unknown> = {}
    for (const host of hosts) {
      const each = destination(host, canary.port)
      const deliver = (payload: Payload) => each.connector.deliver(payload, targetOf(each), contextOf(outbound))
      outcomes[host] = [
        await codeOf(() => deliver(small())),
        await codeOf(() => each.connector.probe(targetOf(each), contextOf(outbound))),
        await testTarget({ outbound, installation, config: readConfig({}) }, each.connector, each, {
          workspace: 'acme/invoices',
          disconnected: new AbortController().signal,
        }),
      ]
    }
    const blocked = [
      'blocked_address, final',
      'blocked_address, final',
      { status: 'failed', message: expect.stringContaining('must not reach'), errorCode: 'blocked_address' },
    ]
    expect(outcomes).toEqual(Object.fromEntries(hosts.map((host) => [host, blocked])))
    expect(canary.connections()).toBe(0)
  })

  test('reaches only the address that was checked, even if the name resolves to another one a moment later', async () => {
    let lookups = 0
    // The first address is allowed, but nothing listens there. The second one is the canary's.
    const rebinding: LookupFunction = (_host, _options, done) =>
      done(null, [{ address: ['127.0.0.2', '127.0.0.1'][Math.min(lookups++, 1)]!, family: 4 }])
    const guard = createOutboundGuard({ allowedCidrs: ['127.0.0.2/32'], lookup: rebinding })
    const each = destination('rebinding.example', canary.port)

    const first = await codeOf(() => each.connector.deliver(small(), targetOf(each), contextOf(guard)))
    const second = await codeOf(() => each.connector.deliver(small(), targetOf(each), contextOf(guard)))

    expect([first, second, lookups]).toEqual(['connection_refused', 'blocked_address, final', 2])
    expect(canary.connections()).toBe(0)
    await guard.close()
  })
})

test('the address of an upload session that a service returns reaches none of these hosts either', async () => {
  const cloud = createCloudApi({
    root: 'https://graph.example',
    getToken: async () => 'token',
    invalidateToken: () => {},
    toError: () => new DeliveryError('request_failed', 'refused'),
    secrets: [],
    context: contextOf(outbound),
  })
  for (const host of hosts) {
    const url = `https://${host}:${canary.port}/up`
    const act = () => cloud.requestSession(requireUploadUrl(cloud, url), { method: 'PUT', body: 'x' })
    await expect(act()).rejects.toMatchObject({ code: 'blocked_address' })
  }
})

const addressFields = rigs.flatMap(({ kind, addressField }) => (addressField ? [{ kind, ...addressField }] : []))

test.each(addressFields.filter(({ form }) => form === 'url'))(
  'the config of $kind accepts no address with a user name, of a socket or of a file',
  ({ connector, config, key }) => {
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

test.each(addressFields.filter(({ form }) => form === 'host'))('the host of $kind accepts nothing but a host', ({ connector, config }) => {
  for (const host of ['mail.example@127.0.0.1', '/var/run/docker.sock', 'unix:/var/run/docker.sock', 'a b', 'host\r\nQUIT', '']) {
    expect([host, connector.config.safeParse({ ...config, host }).success]).toEqual([host, false])
  }
})

test('no test above has reached the canary', () => {
  expect(canary.connections()).toBe(0)
})
