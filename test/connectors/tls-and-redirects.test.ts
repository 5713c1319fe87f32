import { generateKeyPairSync } from 'node:crypto'
import type { TlsOptions } from 'node:tls'
import { createBlob } from '../../src/connectors/blob.ts'
import { DeliveryError, type Connector } from '../../src/connectors/connector.ts'
import { createDrive } from '../../src/connectors/drive.ts'
import { email } from '../../src/connectors/email.ts'
import { createEntraTokens } from '../../src/connectors/entra-token.ts'
import { objstore } from '../../src/connectors/objstore.ts'
import { webhook } from '../../src/connectors/webhook.ts'
import { createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import { createAuthority, type Authority } from '../support/certificates.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { startMailServer } from '../support/smtp-server.ts'
import { contextOf, parcelOf } from './parcels.ts'
import { teamsiteAt } from './teamsite-rig.ts'

const privateKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

interface Way {
  connector: Connector
  config: object
  credentials: object
}

const overHttp: Record<string, (port: number) => Way> = {
  objstore: (port) => ({
    connector: objstore,
    config: { bucket: 'documents', region: 'us-east-1', endpoint: `https://127.0.0.1:${port}`, path_style: true },
    credentials: { access_key_id: 'key', secret_access_key: 'secret' },
  }),
  blob: (port) => ({
    connector: createBlob(createEntraTokens()),
    config: { account_url: `https://127.0.0.1:${port}/acme`, container: 'documents' },
    credentials: { account_key: 'c2VjcmV0' },
  }),
  'teamsite, where it signs in': (port) => ({
    connector: teamsiteAt(`https://127.0.0.1:${port}`, 'https://graph.example/.default'),
    config: { site_url: 'https://contoso.sharepoint.com/sites/Finance', document_library: 'Documents' },
    credentials: { tenant_id: 'contoso.example', client_id: 'client-1', client_secret: 'the-secret' },
  }),
  'drive, where it signs in': (port) => ({
    connector: createDrive(`https://127.0.0.1:${port}`),
    config: { folder_id: 'folder' },
    credentials: {
      service_account: {
        type: 'service_account',
        client_email: 'relay@project.example',
        private_key: privateKey,
        token_uri: `https://127.0.0.1:${port}/token`,
      },
    },
  }),
  webhook: (port) => ({ connector: webhook, config: { url: `https://127.0.0.1:${port}/` }, credentials: { bearer_token: 'right-token' } }),
}
const mail = (tls: 'implicit' | 'starttls') => (port: number) => ({
  connector: email,
  config: { host: '127.0.0.1', port, tls, from: 'relay@acme.example', to: 'archive@acme.example' },
  credentials: {},
})
const overSmtp = { 'email, TLS from the beginning': mail('implicit'), 'email, changing over to TLS': mail('starttls') }
const ways: [string, (port: number) => Way][] = Object.entries({ ...overHttp, ...overSmtp })

let authority: Authority
let stranger: Authority
let outbound: OutboundGuard
beforeAll(async () => {
  authority = await createAuthority()
  stranger = await createAuthority()
  outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
})
afterAll(async () => {
  await outbound.close()
  await authority.remove()
  await stranger.remove()
})

/** Something that speaks TLS, and the protocol of that kind as far as it needs to. */
const listen = async (name: string, tls: TlsOptions) => {
  if (!name.startsWith('email')) return startHttpTarget(tls)
  return startMailServer({ ...tls, secure: name.includes('beginning'), authOptional: true })
}
const attempt = ({ connector, config, credentials }: Way, ca: string | undefined) => {
  const target = {
    config: connector.config.parse({ ...config, ...(ca !== undefined && { ca_certificate: ca }) }),
    credentials: connector.credentials.parse(credentials),
  }
  return connector.deliver(parcelOf(Buffer.from('x')), target, contextOf(outbound)).then(
    () => 'delivered',
    (thrown: unknown) => (thrown instanceof DeliveryError ? thrown.code : String(thrown)),
  )
}
const run = async (name: string, way: (port: number) => Way, tls: TlsOptions, ca?: string) => {
  const server = await listen(name, tls)
  try {
    return await attempt(way(server.port), ca)
  } finally {
    await server.stop()
  }
}

describe.each(ways)('TLS of %s', (name, way) => {
  test('with a certificate of the authority that the destination names is taken', async () => {
    const outcome = await run(name, way, await authority.issue('IP:127.0.0.1'), authority.certificate)
    expect(['certificate_refused', 'tls_failed', 'connection_lost', 'timeout']).not.toContain(outcome)
  })

  test.each<[string, () => Promise<[TlsOptions, string | undefined]>]>([
    ['an authority nobody knows', async () => [await authority.issue('IP:127.0.0.1'), undefined]],
    ['another authority than the destination names', async () => [await stranger.issue('IP:127.0.0.1'), authority.certificate]],
    ['another host', async () => [await authority.issue('DNS:other.example'), authority.certificate]],
    [
      'a time that is over',
      async () => [
        await authority
          .issue('IP:127.0.0.1', ['-not_before', '20250101000000Z', '-not_after', '20250102000000Z'])
          .catch(() => authority.issue('IP:127.0.0.1', ['-days', '-1'])),
        authority.certificate,
      ],
    ],
  ])('with a certificate of %s is refused', async (_what, prepare) => {
    const [tls, ca] = await prepare()
    expect(await run(name, way, tls, ca)).toBe('certificate_refused')
  })

  test('of version 1.1 is refused', async () => {
    const tls = {
      ...(await authority.issue('IP:127.0.0.1')),
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'ALL:@SECLEVEL=0',
    } as const
    expect(await run(name, way, tls, authority.certificate)).toBe('tls_failed')
  })
})

describe.each(Object.entries(overHttp))('a redirect of %s', (_name, way) => {
  let here: HttpTarget
  let elsewhere: HttpTarget
  beforeAll(async () => {
    const certificate = await authority.issue('IP:127.0.0.1')
    here = await startHttpTarget(certificate)
    elsewhere = await startHttpTarget(certificate)
  })
  afterAll(async () => {
    await here.stop()
    await elsewhere.stop()
  })

  test.each([301, 302, 303, 307, 308])('%i is not followed: neither document nor Authorization reach the other host', async (status) => {
    here.answerWith((_arrival, response) => response.writeHead(status, { location: `${elsewhere.origin}/taken` }).end())
    expect(await attempt(way(here.port), authority.certificate)).not.toBe('delivered')
    expect(here.arrivals.length).toBeGreaterThan(0)
    expect(elsewhere.connections()).toBe(0)
  })
})
