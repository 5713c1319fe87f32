import { ContainerSASPermissions, generateBlobSASQueryParameters, StorageSharedKeyCredential } from '@azure/storage-blob'
import { createBlob } from '../../../src/connectors/blob/index.ts'
import { DeliveryError } from '../../../src/connectors/connector.ts'
import { createEntraTokens, type EntraPrincipal } from '../../../src/connectors/shared/entra-tokens.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startAzurite } from '../../support/azurite.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { contextOf, failure, largePayload, MiB, payloadOf } from '../payloads.ts'

const blob = createBlob(createEntraTokens(), createPartMemory())

const authority = await createAuthority()
const server = await startAzurite({ ...(await authority.issue('IP:127.0.0.1')), authority: authority.certificate })
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
afterAll(async () => {
  await outbound.close()
  await server.stop()
  await authority.remove()
})

const config = (overrides: object = {}) =>
  blob.config.parse({ account_url: server.accountUrl, container: server.container, ca_certificate: authority.certificate, ...overrides })
const sasOf = (permissions: string, expiresOn = new Date(Date.now() + 60_000)) =>
  generateBlobSASQueryParameters(
    { containerName: server.container, permissions: ContainerSASPermissions.parse(permissions), expiresOn },
    new StorageSharedKeyCredential(server.accountName, server.accountKey),
  ).toString()
const withSas = (sas: string) => ({ config: config(), credentials: blob.credentials.parse({ sas_token: sas }) })
const stored = async (path: string) => (await server.client.getBlobClient(path).downloadToBuffer()).toString()

describe('a SAS token', () => {
  test('with the permissions create and write suffices, with or without its question mark', async () => {
    for (const sas of [sasOf('cw'), `?${sasOf('cw')}`]) {
      const payload = payloadOf(Buffer.from('signed'))
      const result = await blob.deliver(payload, withSas(sas), contextOf(outbound))
      expect(await stored(payload.path)).toBe('signed')
      expect(result.path).not.toContain('sig=')
      await blob.probe(withSas(sas), contextOf(outbound))
    }
    const large = largePayload(20 * MiB)
    await blob.deliver(large, withSas(sasOf('cw')), contextOf(outbound))
    expect((await server.client.getBlobClient(large.path).getProperties()).contentLength).toBe(20 * MiB)
  })

  test('that has expired is reported with its expiry time, and not shown', async () => {
    const sas = sasOf('cw', new Date(Date.now() - 60_000))
    const error = await failure(blob.probe(withSas(sas), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true, message: expect.stringContaining('expired at') as string })
    expect(JSON.stringify([error.message, error.answer])).not.toContain(new URLSearchParams(sas).get('sig'))
  })

  test('that permits only reading is reported as missing the permission', async () => {
    const error = await failure(blob.deliver(payloadOf(Buffer.from('x')), withSas(sasOf('r')), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'access_denied', permanent: true })
  })
})

describe('an application of Entra', () => {
  // In place of login.microsoftonline.com: tokens in its form, with an invalid signature.
  const tokenOf = (claims: object) => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    return `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}.${Buffer.from('signature').toString('base64url')}`
  }
  const seconds = () => Math.floor(Date.now() / 1_000)
  const claims = () => ({
    aud: 'https://storage.azure.com',
    iss: 'https://sts.windows.net/00000000-0000-0000-0000-000000000001/',
    iat: seconds() - 60,
    nbf: seconds() - 60,
    exp: seconds() + 600,
  })
  const requested: EntraPrincipal[] = []
  const invalidated: EntraPrincipal[] = []
  const signIn = (more: object = {}) =>
    createBlob(
      {
        get: async (principal) => {
          requested.push(principal)
          return { token: tokenOf({ ...claims(), ...more }), expiresAt: new Date() }
        },
        invalidate: (principal) => void invalidated.push(principal),
      },
      createPartMemory(),
    )
  const credentials = blob.credentials.parse({ tenant_id: 'acme.example', client_id: 'the-application', client_secret: 'the-secret' })

  test('writes with a token for storage', async () => {
    const payload = payloadOf(Buffer.from('by token'))
    await signIn().deliver(payload, { config: config(), credentials }, contextOf(outbound))
    expect(await stored(payload.path)).toBe('by token')
    expect(requested.at(-1)).toEqual({
      tenantId: 'acme.example',
      clientId: 'the-application',
      proof: { secret: 'the-secret' },
      authorityHost: 'https://login.microsoftonline.com',
      scope: 'https://storage.azure.com/.default',
    })
  })

  test('signs in again for a test of the destination, and after a token was refused', async () => {
    const { origin, answerWith, stop } = await startHttpTarget(await authority.issue('IP:127.0.0.1'))
    const target = { config: config({ account_url: `${origin}/acme` }), credentials }
    const respond = (status: number) =>
      answerWith((_, response) => void response.writeHead(status, { 'x-ms-request-id': 'r1', etag: '"0x1"' }).end())
    invalidated.length = 0

    respond(201)
    await signIn().deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound))
    expect(invalidated).toEqual([])
    // This account shows nothing of what it has taken.
    await failure(signIn().probe(target, contextOf(outbound)))
    expect(invalidated).toEqual([requested.at(-1)])
    respond(401)
    await failure(signIn().deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound)))
    expect(invalidated).toHaveLength(2)
    await stop()
  })

  test('is refused with a token for another service', async () => {
    const error = await failure(
      signIn({ aud: 'https://graph.microsoft.com' }).probe({ config: config(), credentials }, contextOf(outbound)),
    )
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
  })

  test('has a token that is not shown if the account echoes it', async () => {
    const account = await startHttpTarget(await authority.issue('IP:127.0.0.1'))
    account.answerWith(({ headers }, response) =>
      response
        .writeHead(400, { 'content-type': 'application/xml', 'x-ms-error-code': 'Odd', 'x-ms-request-id': 'r1' })
        .end(`<Error><Code>Odd</Code><Message>you said ${headers.authorization}</Message></Error>`),
    )
    const target = { config: config({ account_url: `${account.origin}/acme` }), credentials }
    const error = await failure(signIn().deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound)))
    await account.stop()
    expect(error).toMatchObject({ code: 'http_400', answer: { body: 'Odd: you said Bearer [REDACTED]' } })
    expect(error.message).toContain('you said Bearer [REDACTED]')
  })

  test('gets an error of its directory that is redacted, then cut to the limit', async () => {
    const refusing = createBlob(
      {
        get: async () => {
          throw new DeliveryError('http_503', 'busy: the-secret', {
            permanent: false,
            answer: { status: 503, body: `the-secret ${'y'.repeat(100_000)}` },
          })
        },
        invalidate: () => {},
      },
      createPartMemory(),
    )
    const context = contextOf(outbound, { answerMaxBytes: 100 })
    const { message, answer } = await failure(refusing.deliver(payloadOf(Buffer.from('x')), { config: config(), credentials }, context))
    expect(message).toBe('busy: [REDACTED]')
    expect(answer?.body).toBe(`[REDACTED] ${'y'.repeat(89)}`)
  })

  test.each([
    ['https://acme.blob.core.usgovcloudapi.net', 'https://login.microsoftonline.us'],
    ['https://acme.blob.core.chinacloudapi.cn', 'https://login.chinacloudapi.cn'],
  ])('signs in to the cloud of %s', async (account_url, authorityHost) => {
    const nowhere = createOutboundGuard({ allowedCidrs: [], lookup: (_, options, done) => done(null, options.all ? [] : '', 4) })
    await failure(signIn().probe({ config: config({ account_url }), credentials }, contextOf(nowhere)))
    await nowhere.close()
    expect(requested.at(-1)).toMatchObject({ authorityHost })
  })
})

test('an unknown authority is not trusted', async () => {
  const target = { config: config({ ca_certificate: undefined }), credentials: blob.credentials.parse({ account_key: server.accountKey }) }
  expect(await failure(blob.probe(target, contextOf(outbound)))).toMatchObject({ code: 'certificate_refused', permanent: false })
})
