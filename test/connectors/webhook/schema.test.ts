import { webhook } from '../../../src/connectors/webhook/index.ts'

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
    [{ header_name: 'x-a', header_value: 'c\r\nd: e' }],
    [{ bearer_token: 'a\nb' }],
    [{ previous_secret: 'a' }],
    [{ secret: 'whsec_***' }],
  ])('refuses the credentials %j', (credentials) => {
    expect(webhook.credentials.safeParse(credentials).success).toBe(false)
  })
})
