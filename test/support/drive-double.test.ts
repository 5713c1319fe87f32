import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { Agent, request } from 'undici'
import { createAuthority } from './certificates.ts'
import { disposable } from './disposable.ts'
import { startDriveDouble } from './drive-double.ts'
import { share } from './share.ts'

// If a double accepted everything, every test of the connector would pass. These tests send the double incorrect requests.

const unit = 256 * 1024
const authority = share(await createAuthority())
const double = share(disposable(await startDriveDouble(await authority.issue('DNS:localhost,IP:127.0.0.1')), (each) => each.stop()))
const dispatcher = share(disposable(new Agent({ connect: { ca: authority.certificate } }), (each) => each.close()))
beforeEach(() => {
  double.files.clear()
  double.sessions.clear()
})

type Method = 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'
const send = async (method: Method, url: string, options: { headers?: Record<string, string>; body?: Buffer | string } = {}) => {
  const { statusCode, headers, body } = await request(url, { method, dispatcher, ...options })
  const text = await body.text()
  const json = (text ? JSON.parse(text) : {}) as Record<string, unknown> & { error?: { errors?: { reason: string }[] } }
  return { status: statusCode, headers, json, reason: json.error?.errors?.[0]?.reason }
}
const askToken = async ({ claims = {}, key }: { claims?: Record<string, unknown>; key?: string }) => {
  const { private_key: own, client_email: iss, token_uri: aud } = double.keyFile()
  const now = Math.floor(Date.now() / 1_000)
  const jwt = new SignJWT({ iss, aud, scope: 'https://www.googleapis.com/auth/drive', iat: now, exp: now + 3_600, ...claims })
  const assertion = await jwt.setProtectedHeader({ alg: 'RS256' }).sign(createPrivateKey(key ?? own ?? ''))
  return send('POST', `${double.rootAt()}/token`, {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }).toString(),
  })
}
const token = `Bearer ${(await askToken({})).json.access_token as string}`
const drive = (method: Method, path: string, body?: object, headers: Record<string, string> = {}) =>
  send(method, `${double.rootAt()}${path}`, {
    headers: { authorization: token, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
const resumable = '/upload/drive/v3/files?uploadType=resumable'
const begin = (metadata: object, sizeBytes = 10, more = '&supportsAllDrives=true') =>
  drive('POST', `${resumable}${more}`, { parents: [double.folders.shared], ...metadata }, { 'x-upload-content-length': String(sizeBytes) })
const sendPart = (url: string, sizeBytes: number, range: string) =>
  send('PUT', url, { headers: { 'content-range': `bytes ${range}` }, body: Buffer.alloc(sizeBytes) })

describe('the double of Google Drive refuses', () => {
  test.each([
    ['signed with another key', {}, true],
    ['of another account', { iss: 'other@example' }, false],
    ['that lasts too long', { exp: 4_102_444_800 }, false],
    ['that has expired', { iat: 1_000, exp: 2_000 }, false],
    ['for another address', { aud: 'https://oauth2.example/token' }, false],
    ['for a user without delegation', { sub: 'stranger@example' }, false],
    ['with another scope', { scope: 'email' }, false],
  ])('an assertion %s', async (_what, claims, otherKey) => {
    const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    expect((await askToken({ claims, ...(otherKey && { key }) })).status).toBeGreaterThanOrEqual(400)
  })

  test('a request without a token, and one that does not include shared drives', async () => {
    expect((await send('GET', `${double.rootAt()}/drive/v3/files/${double.folders.shared}`)).status).toBe(401)
    expect((await drive('GET', `/drive/v3/files/${double.folders.shared}`)).status).toBe(404)
    expect((await begin({}, 10, '')).status).toBe(404)
  })

  test('an id that was not issued, one that is in use, and properties that are too long', async () => {
    expect((await begin({ id: 'invented' })).reason).toBe('invalid')
    expect((await begin({ appProperties: { key: 'v'.repeat(122) } })).reason).toBe('propertyTooLong')
    const { json } = await drive('GET', '/drive/v3/files/generateIds?count=1')
    const [id] = json.ids as string[]
    const { headers } = await begin({ id })
    expect((await sendPart(String(headers.location), 10, '0-9/10')).status).toBe(201)
    expect(await begin({ id })).toMatchObject({ status: 409, reason: 'fileIdInUse' })
  })

  test('parts of the wrong size, position or total, and reports its position', async () => {
    const location = String((await begin({}, 4 * unit)).headers.location)
    expect((await sendPart(location, 1_000, `0-999/${4 * unit}`)).status).toBe(400)
    expect((await sendPart(location, unit, `${unit}-${2 * unit - 1}/${4 * unit}`)).status).toBe(503)
    expect((await sendPart(location, unit, `0-${unit - 1}/${5 * unit}`)).status).toBe(400)
    expect((await sendPart(location, 0, `*/${4 * unit}`)).headers.range).toBeUndefined()
    expect((await sendPart(location, unit, `0-${unit - 1}/${4 * unit}`)).status).toBe(308)
    expect((await sendPart(location, 0, `*/${4 * unit}`)).headers.range).toBe(`bytes=0-${unit - 1}`)
    expect((await send('DELETE', location)).status).toBe(499)
    expect((await sendPart(location, unit, `${unit}-${2 * unit - 1}/${4 * unit}`)).status).toBe(404)
    expect(double.files.size).toBe(0)
  })

  test('storage of a service account, writing without permission, and changing the parents of a file', async () => {
    expect((await begin({ parents: [double.folders.personal] })).reason).toBe('storageQuotaExceeded')
    expect((await begin({ parents: [double.folders.readOnly] })).reason).toBe('insufficientFilePermissions')
    await sendPart(String((await begin({})).headers.location), 10, '0-9/10')
    const [file] = double.files.values()
    const update = (metadata: object) =>
      drive('PATCH', `/upload/drive/v3/files/${file?.id}?uploadType=resumable&supportsAllDrives=true`, metadata)
    expect((await update({ parents: ['x'] })).status).toBe(403)
    expect((await update({ name: 'y' })).status).toBe(200)
  })
})
