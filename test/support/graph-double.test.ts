import { Agent, request } from 'undici'
import { createAuthority } from './certificates.ts'
import { disposable } from './disposable.ts'
import { startGraphDouble } from './graph-double.ts'
import { share } from './share.ts'

// If a double accepted everything, every test of the connector would pass. These tests send the double incorrect requests.

const KiB = 1024
const authority = share(await createAuthority())
const double = share(disposable(await startGraphDouble(await authority.issue('DNS:localhost,IP:127.0.0.1')), (each) => each.stop()))
const dispatcher = share(disposable(new Agent({ connect: { ca: authority.certificate } }), (each) => each.close()))
beforeEach(() => {
  double.items.clear()
  double.sessions.clear()
})

const send = async (
  method: 'GET' | 'PUT' | 'POST',
  url: string,
  options: { headers?: Record<string, string>; body?: Buffer | string } = {},
) => {
  const { statusCode, body } = await request(url, { method, dispatcher, ...options })
  const text = await body.text()
  return { status: statusCode, json: (text ? JSON.parse(text) : {}) as Record<string, unknown> }
}
const { clientId, clientSecret, tenantId } = double.application
const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret, scope: double.scope }
const answer = await send('POST', `${double.rootAt()}/${tenantId}/oauth2/v2.0/token`, {
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(form).toString(),
})
const token = `Bearer ${answer.json.access_token as string}`
const graph = (method: 'GET' | 'PUT' | 'POST', path: string, body?: Buffer | string) =>
  send(method, `${double.rootAt()}/v1.0${path}`, { headers: { authorization: token }, ...(body !== undefined && { body }) })
const begin = async (behavior: object) => {
  const { status, json } = await graph('POST', '/drives/b!drive0/root:/a.bin:/createUploadSession', JSON.stringify(behavior))
  return { status, uploadUrl: json.uploadUrl as string }
}
const replace = { item: { '@microsoft.graph.conflictBehavior': 'replace' } }
const sendPart = async (uploadUrl: string, range: string, sizeBytes: number, headers: Record<string, string> = {}) =>
  (await send('PUT', uploadUrl, { headers: { 'content-range': `bytes ${range}`, ...headers }, body: Buffer.alloc(sizeBytes) })).status

describe('the double of Microsoft Graph refuses', () => {
  test('a request without a token', async () => {
    expect((await send('GET', `${double.rootAt()}/v1.0/sites/contoso.sharepoint.com:/sites/Finance`)).status).toBe(401)
  })

  test.each(['a%2Ab', '~$a.docx', 'a.', '%20a', 'x_vti_y', 'CON', 'a'.repeat(256)])('the name %s', async (name) => {
    expect((await graph('PUT', `/drives/b!drive0/root:/${name}:/content`, 'x')).status).toBe(400)
  })

  test('more than 4 MiB in one request', async () => {
    expect((await graph('PUT', '/drives/b!drive0/root:/a.bin:/content', Buffer.alloc(4 * KiB * KiB + 1))).status).toBe(413)
    expect(double.items.size).toBe(0)
  })

  test('a name that exists, if replacing was not requested in the right place', async () => {
    await graph('PUT', '/drives/b!drive0/root:/A.bin:/content', 'x')
    expect((await begin({})).status).toBe(409)
    expect((await begin({ '@microsoft.graph.conflictBehavior': 'replace' })).status).toBe(409)
    expect((await begin(replace)).status).toBe(200)
  })

  test('parts that are out of order, of the wrong size, repeated, too large, or sent with a token', async () => {
    const { uploadUrl } = await begin(replace)
    expect(new URL(uploadUrl).hostname).not.toBe('127.0.0.1')
    expect(await sendPart(uploadUrl, '0-9/100', 10, { authorization: token })).toBe(401)
    expect(await sendPart(uploadUrl, '0-1048575/9999999', KiB * KiB)).toBe(400)
    expect(await sendPart(uploadUrl, '0-*/9999999', KiB)).toBe(400)
    expect(await sendPart(uploadUrl, `${320 * KiB}-${640 * KiB - 1}/9999999`, 320 * KiB)).toBe(416)
    expect(await sendPart(uploadUrl, `0-${60 * KiB * KiB - 1}/99999999`, 60 * KiB * KiB)).toBe(413)
    expect(await sendPart(uploadUrl, `0-${320 * KiB - 1}/9999999`, 320 * KiB)).toBe(202)
    expect(await sendPart(uploadUrl, `0-${320 * KiB - 1}/9999999`, 320 * KiB)).toBe(416)
    expect(await sendPart(uploadUrl, `${320 * KiB}-${640 * KiB - 1}/8888888`, 320 * KiB)).toBe(400)
    expect(await send('GET', uploadUrl)).toMatchObject({ status: 200, json: { nextExpectedRanges: [`${320 * KiB}-`] } })
    expect(double.items.size).toBe(0)
  })

  test('a request to a session that has expired, and one without the key of the session', async () => {
    const { uploadUrl } = await begin(replace)
    expect((await send('GET', uploadUrl.replace(/\?.*/, ''))).status).toBe(404)
    double.sessions.clear()
    expect(await sendPart(uploadUrl, '0-9/10', 10)).toBe(404)
  })
})
