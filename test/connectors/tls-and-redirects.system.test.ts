import type { TlsOptions } from 'node:tls'
import { DeliveryError } from '../../src/connectors/connector.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createAuthority } from '../support/certificates.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { contextOf, payloadOf } from './payloads.ts'
import { loadRigs, type Destination, type TlsCase } from './rig.ts'

const cases = (await loadRigs()).flatMap(({ tlsCases }) => tlsCases)

const authority = await createAuthority()
const stranger = await createAuthority()
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
afterAll(async () => {
  await outbound.close()
  await authority.remove()
  await stranger.remove()
})

const attempt = ({ connector, config, credentials }: Destination, ca: string | undefined) => {
  const target = {
    config: connector.config.parse({ ...config, ...(ca !== undefined && { ca_certificate: ca }) }),
    credentials: connector.credentials.parse(credentials),
  }
  return connector.deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound)).then(
    () => 'delivered',
    (thrown: unknown) => (thrown instanceof DeliveryError ? thrown.code : String(thrown)),
  )
}
const run = async ({ destination, listen }: TlsCase, tls: TlsOptions, ca?: string) => {
  const server = await listen(tls)
  try {
    return await attempt(destination(server.port), ca)
  } finally {
    await server.stop()
  }
}

describe.each(cases)('TLS of $name', (tlsCase) => {
  test('accepts a certificate of the authority that the destination names', async () => {
    const outcome = await run(tlsCase, await authority.issue('IP:127.0.0.1'), authority.certificate)
    expect(['certificate_refused', 'tls_failed', 'connection_lost', 'timeout']).not.toContain(outcome)
  })

  test.each<[string, () => Promise<[TlsOptions, string | undefined]>]>([
    ['of an unknown authority', async () => [await authority.issue('IP:127.0.0.1'), undefined]],
    ['of another authority than the destination names', async () => [await stranger.issue('IP:127.0.0.1'), authority.certificate]],
    ['for another host', async () => [await authority.issue('DNS:other.example'), authority.certificate]],
    [
      'that has expired',
      async () => [
        await authority
          .issue('IP:127.0.0.1', ['-not_before', '20250101000000Z', '-not_after', '20250102000000Z'])
          .catch(() => authority.issue('IP:127.0.0.1', ['-days', '-1'])),
        authority.certificate,
      ],
    ],
  ])('refuses a certificate %s', async (_which, prepare) => {
    const [tls, ca] = await prepare()
    expect(await run(tlsCase, tls, ca)).toBe('certificate_refused')
  })

  test('refuses TLS 1.1', async () => {
    const tls = {
      ...(await authority.issue('IP:127.0.0.1')),
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'ALL:@SECLEVEL=0',
    } as const
    expect(await run(tlsCase, tls, authority.certificate)).toBe('tls_failed')
  })
})

describe.each(cases.filter(({ isHttp }) => isHttp))('a redirect of $name', ({ destination }) => {
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

  test.each([301, 302, 303, 307, 308])('with status %i is not followed: the other host gets no connection', async (status) => {
    here.answerWith((_arrival, response) => response.writeHead(status, { location: `${elsewhere.origin}/elsewhere` }).end())
    expect(await attempt(destination(here.port), authority.certificate)).not.toBe('delivered')
    expect(here.arrivals.length).toBeGreaterThan(0)
    expect(elsewhere.connections()).toBe(0)
  })
})
