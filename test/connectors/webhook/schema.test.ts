import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createWebhook } from '../../../src/connectors/webhook/index.ts'
import { createAuthority } from '../../support/certificates.ts'
import { later } from '../payloads.ts'

const webhook = createWebhook()
const client = { token_url: 'https://id.example/token', client_id: 'relay', client_secret: 'client-secret' }
const authority = await createAuthority()
afterAll(() => authority.remove())

describe('the schema of a webhook', () => {
  test.each([
    [{ url: 'ftp://example.com/' }],
    [{ url: 'file:///etc/passwd' }],
    [{ url: 'http://user:pass@example.com/' }],
    [{ url: 'not a url' }],
    [{ url: 'unix:/var/run/docker.sock' }],
    [{ headers: { Host: 'other' } }],
    [{ headers: { 'content-length': '1' } }],
    [{ headers: { 'Transfer-Encoding': 'chunked' } }],
    [{ headers: { 'webhook-id': '1' } }],
    [{ headers: { 'x-relay-path': '1' } }],
    [{ headers: { authorization: 'Bearer x' } }],
    [{ headers: { 'x-api-key': 'x' } }],
    [{ headers: { 'X-Functions-Key': 'x' } }],
    [{ headers: { 'ocp-apim-subscription-key': 'x' } }],
    [{ headers: { 'x-auth': 'x' } }],
    [{ headers: { 'x-signature': 'x' } }],
    [{ headers: { 'x-pwd': 'x' } }],
    [{ headers: { 'x-a': 'b\r\nx-c: d' } }],
    [{ headers: { 'x a': 'b' } }],
    [{ headers: { 'x-a': '1', 'X-A': '2' } }],
    [{ method: 'DELETE' }],
    [{ signatures: 'none' }],
    [{ ca_certificate: 'no PEM' }],
    [{ unknown: 1 }],
  ])('refuses the config %j', (config) => {
    expect(webhook.config.safeParse({ url: 'https://example.com/', ...config }).success).toBe(false)
  })

  test.each([
    [{ bearer_token: 'a', username: 'b', password: 'c' }],
    [{ username: 'b' }],
    [{ header_name: 'x-a' }],
    [{ header_name: 'host', header_value: 'c' }],
    [{ header_name: 'Signature', header_value: 'c' }],
    [{ header_name: 'signature-input', header_value: 'c' }],
    [{ header_name: 'x-a', header_value: 'c\r\nd: e' }],
    [{ bearer_token: 'a\nb' }],
    [{ previous_secret: 'a' }],
    [{ secret: 'a', previous_secret_expires_at: '2026-12-01T00:00:00Z' }],
    [{ secret: 'a', previous_secret: 'b', previous_secret_expires_at: 'tomorrow' }],
    [{ secret: 'a', previous_secret: 'b', previous_secret_expires_at: '2026-12-01' }],
    [{ secret: 'whsec_***' }],
    [{ secret: 'whsec_' }],
    [{ secret: 'whsec_A' }],
    [{ secret: 'whsec_abc' }],
    [{ secret: 'whsec_abcde=' }],
    [{ secret: 'whsec_ZmljdGl0aW91cy1zZWNyZXQtb2YtYW4tZXhhbXBsZQ' }],
    [{ secret: 'whsec_ZmljdGl0aW91cy1zZWNyZXQtb2YtYW4tZXhhbXBsZR==' }],
    [{ secret: 'whsec_-_-_dGl0aW91cy1zZWNyZXQtb2YtYW4tZXhhbXBsZQ==' }],
    [{ secret: `whsec_${Buffer.alloc(15).toString('base64')}` }],
    [{ secret: 'a', previous_secret: 'whsec_abc' }],
    [{ token_url: 'https://id.example/token' }],
    [{ token_url: 'https://id.example/token', client_id: 'a' }],
    [{ client_id: 'a', client_secret: 'b' }],
    [{ scope: 'a' }],
    [{ ...client, token_url: 'http://id.example/token' }],
    [{ ...client, token_url: 'https://user:pass@id.example/token' }],
    [{ ...client, scope: 'a  b' }],
    [{ ...client, scope: 'a"b' }],
    [{ ...client, token_auth_method: 'private_key_jwt' }],
    [{ ...client, bearer_token: 'c' }],
    [{ client_key: 'no PEM' }],
  ])('refuses the credentials %j', (credentials) => {
    expect(webhook.credentials.safeParse(credentials).success).toBe(false)
  })

  test.each([
    [{ secret: `whsec_${Buffer.alloc(16, 1).toString('base64')}` }],
    [{ secret: `whsec_${Buffer.alloc(64, 1).toString('base64')}` }],
    [{ secret: 'any text' }],
    [client],
    [{ ...client, scope: 'a:b c/.default', audience: 'https://dms.example', token_auth_method: 'client_secret_post', secret: 'signs' }],
  ])('accepts the credentials %j', (credentials) => {
    expect(webhook.credentials.safeParse(credentials).success).toBe(true)
  })
})

describe('a client certificate', () => {
  const issuesOf = (credentials: object) =>
    webhook.credentials.safeParse(credentials).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? []

  test('is accepted with its key, with its chain, and beside a token', async () => {
    const { cert, key } = await authority.issueClient(30)
    expect(issuesOf({ client_certificate: cert, client_key: key })).toEqual([])
    expect(issuesOf({ client_certificate: `${cert}${authority.certificate}`, client_key: key, ...client })).toEqual([])
  })

  test('expires with the first one of its chain', async () => {
    const { cert } = await authority.issueClient(30)
    const expiresAt = (pem: string) => webhook.credentialsExpireAt?.({ client_certificate: pem })
    expect(expiresAt(cert)?.toISOString()).toBe(new Date(new X509Certificate(cert).validTo).toISOString())
    expect(expiresAt(`${cert}${authority.certificate}`)?.toISOString()).toBe(
      new Date(new X509Certificate(authority.certificate).validTo).toISOString(),
    )
    expect(webhook.credentialsExpireAt?.({ secret: 'signs' })).toBeUndefined()
  })

  test('is refused without its key, with that of another one, and with one that has a passphrase', async () => {
    const [{ cert, key }, other] = [await authority.issueClient(30), await authority.issueClient(30)]
    const encrypted = createPrivateKey(key).export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' }).toString()
    expect(issuesOf({ client_certificate: cert })).toEqual(['client_key: is missing; client_certificate needs it'])
    expect(issuesOf({ client_key: key })).toEqual(['client_certificate: is missing; client_key needs it'])
    expect(issuesOf({ client_certificate: cert, client_key: other.key })).toEqual([
      'client_key: is not the key of the first certificate in client_certificate',
    ])
    expect(issuesOf({ client_certificate: `${authority.certificate}${cert}`, client_key: key })).toHaveLength(1)
    expect(issuesOf({ client_certificate: cert, client_key: encrypted })).toEqual([
      'client_key: must be a PEM private key without a passphrase',
    ])
    expect(issuesOf({ client_certificate: 'no PEM', client_key: 'no PEM' })).toEqual([
      'client_certificate: must be one or more PEM certificates',
      'client_key: must be a PEM private key without a passphrase',
    ])
  })

  test('is refused when it has expired, and before it is valid', async () => {
    const { cert, key } = await authority.issueClient(30)
    const credentials = { client_certificate: cert, client_key: key }
    expect(await later(31 * 24 * 60, async () => issuesOf(credentials))).toEqual([
      expect.stringMatching(/^client_certificate: has expired on \d{4}-\d\d-\d\d \(CN=relay\)$/),
    ])
    expect(await later(-24 * 60, async () => issuesOf(credentials))).toEqual([expect.stringContaining('is not valid before')])
  })

  test('is refused if TLS cannot use it, such as one with a key that is too short', async () => {
    const { cert, key } = await authority.issueClient(30, ['rsa:1024'])
    expect(issuesOf({ client_certificate: cert, client_key: key })).toEqual([
      expect.stringContaining('client_certificate: cannot be used: '),
    ])
  })
})
