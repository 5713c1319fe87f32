import { createWebhook } from '../../../src/connectors/webhook/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { createAuthority, type Authority } from '../../support/certificates.ts'
import { startHttpTarget, type HttpTarget } from '../../support/http-target.ts'
import { contextOf, payloadOf, failure } from '../payloads.ts'

const webhook = createWebhook()

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
afterAll(() => outbound.close())

describe('a webhook over TLS', () => {
  let authority: Authority
  const servers: HttpTarget[] = []
  beforeAll(async () => {
    authority = await createAuthority()
  })
  afterAll(async () => {
    for (const each of servers) await each.stop()
    await authority.remove()
  })
  const start = async (subjectAltName: string, validity?: string[]) => {
    const started = await startHttpTarget(await authority.issue(subjectAltName, validity))
    servers.push(started)
    return started
  }
  const to = (url: string, ca_certificate?: string) =>
    webhook.deliver(
      payloadOf(Buffer.from('x')),
      { config: webhook.config.parse({ url, ...(ca_certificate && { ca_certificate }) }), credentials: {} },
      contextOf(outbound),
    )

  test('trusts the authority that the destination names, by address and by host name', async () => {
    const secure = await start('DNS:localhost,IP:127.0.0.1')
    await to(secure.origin, authority.certificate)
    await to(`https://localhost:${secure.port}/`, authority.certificate)
    expect(secure.arrivals).toHaveLength(2)
  })

  test('does not trust an unknown authority, even if NODE_TLS_REJECT_UNAUTHORIZED is 0', async () => {
    const secure = await start('DNS:localhost,IP:127.0.0.1')
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      expect(await failure(to(secure.origin))).toMatchObject({ code: 'certificate_refused', permanent: false })
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    }
    expect(secure.arrivals).toHaveLength(0)
  })

  test('refuses a certificate for another host, and one that has expired', async () => {
    const other = await start('DNS:other.example')
    expect(await failure(to(other.origin, authority.certificate))).toMatchObject({ code: 'certificate_refused' })
    const old = await start('IP:127.0.0.1', ['-not_before', '20250101000000Z', '-not_after', '20250102000000Z']).catch(() =>
      start('IP:127.0.0.1', ['-days', '-1']),
    )
    expect(await failure(to(old.origin, authority.certificate))).toMatchObject({ code: 'certificate_refused' })
  })

  test('refuses TLS 1.1', async () => {
    const old = await startHttpTarget({
      ...(await authority.issue('IP:127.0.0.1')),
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'ALL:@SECLEVEL=0',
    })
    servers.push(old)
    expect(await failure(to(old.origin, authority.certificate))).toMatchObject({ code: 'tls_failed' })
  })
})
