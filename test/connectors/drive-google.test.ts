import type { Parcel } from '../../src/connectors/connector.ts'
import { createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import type { Said } from '../support/double.ts'
import { startDriveRig, type DriveRig } from './drive-rig.ts'
import { contextOf, failure, largeParcel, later, MiB, parcelOf } from './parcels.ts'

let rig: DriveRig
let outbound: OutboundGuard
beforeAll(async () => {
  rig = await startDriveRig()
  outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
})
beforeEach(() => rig.reset())
afterAll(async () => {
  await outbound.close()
  await rig.stop()
})

const deliver = (parcel: Parcel, target = rig.target(), connector = rig.connector) => connector.deliver(parcel, target, contextOf(outbound))
const small = () => parcelOf(Buffer.from('x'))
const files = () => [...rig.double.files.values()]
const driveError = (status: number, reason: string, headers: Record<string, string> = {}): Said => ({
  status,
  json: { error: { code: status, message: 'says Drive', errors: [{ reason, message: 'says Drive' }] } },
  headers,
})

describe('drive, against a double of Google Drive', () => {
  test('a file is named by the whole path, and tells where it comes from', async () => {
    const parcel = parcelOf(Buffer.from('x'), { path: 'R1/4F2A/data.pdf', contentType: 'Text/Plain; charset=utf-8' })
    const { path, answer } = await deliver(parcel)
    expect(files()).toMatchObject([
      {
        name: 'R1 - 4F2A - data.pdf',
        description: 'R1/4F2A/data.pdf',
        mimeType: 'text/plain',
        parents: [rig.double.folders.shared],
        appProperties: { relay_delivery: parcel.deliveryId, relay_document: parcel.documentId },
      },
    ])
    expect(path).toBe(`https://drive.google.com/file/d/${files()[0]!.id}/view`)
    expect(answer).toEqual({ status: 201, file_id: files()[0]!.id })
  })

  test.each(['application/vnd.google-apps.document', 'no type', ''])(
    'the content type %j is kept from being acted upon',
    async (contentType) => {
      await deliver(parcelOf(Buffer.from('x'), { contentType }))
      expect(files()).toMatchObject([{ mimeType: 'application/octet-stream' }])
    },
  )

  test('looks up token and folder once', async () => {
    await deliver(small())
    rig.double.asked.length = 0
    await deliver(small())
    expect(rig.double.asked).toEqual([
      'GET /drive/v3/files',
      'GET /drive/v3/files/generateIds',
      'POST /upload/drive/v3/files',
      'PUT /upload/drive/v3/files',
    ])
  })

  test('looks up the folder again after ten minutes, however many documents come meanwhile', async () => {
    const connector = rig.connectorAt()
    const lookedUp: boolean[] = []
    for (const minutes of [0, 6, 12]) {
      rig.double.asked.length = 0
      await later(minutes, () => deliver(small(), rig.target(), connector))
      lookedUp.push(rig.double.asked.includes(`GET /drive/v3/files/${rig.double.folders.shared}`))
    }
    expect(lookedUp).toEqual([true, false, true])
  })

  test('sends a large document in chunks, and again what was not kept', async () => {
    const parcel = largeParcel(20 * MiB + 1)
    rig.double.keepAtMost.bytes = 3 * 256 * 1024
    await deliver(parcel)
    expect(files()).toMatchObject([{ sha256: parcel.sha256 }])
    expect(rig.double.asked.filter((line) => line.startsWith('PUT'))).toHaveLength(4)
  })

  test('a worker that died after its upload: another one finds the file, and sends nothing', async () => {
    const parcel = parcelOf(Buffer.from('content'))
    const first = await deliver(parcel)
    const again = await deliver(parcel, rig.target(), rig.connectorAt())
    expect(again).toMatchObject({ path: first.path, bytesSent: 0 })
    expect(files()).toHaveLength(1)
  })

  test('a file that a search does not find yet is found by its id', async () => {
    const parcel = parcelOf(Buffer.from('content'))
    await deliver(parcel)
    rig.double.unsearchable.add(files()[0]!.id)
    expect(await deliver(parcel)).toMatchObject({ bytesSent: 0 })
    expect(files()).toHaveLength(1)
  })

  test('a delivery whose content has changed replaces what its file holds', async () => {
    const parcel = parcelOf(Buffer.from('content'))
    const first = await deliver(parcel)
    const appended = { ...parcelOf(Buffer.from('content and more')), deliveryId: parcel.deliveryId, path: parcel.path }
    for (const connector of [rig.connector, rig.connectorAt()]) {
      expect(await deliver(appended, rig.target(), connector)).toMatchObject({ path: first.path })
    }
    expect(files()).toMatchObject([{ sha256: appended.sha256 }])
  })

  test('a file that was put into the trash is not written into again', async () => {
    const parcel = parcelOf(Buffer.from('content'))
    await deliver(parcel)
    files()[0]!.trashed = true
    await deliver(parcel)
    expect(files().map(({ trashed }) => trashed)).toEqual([true, false])
  })

  test('a service account owns no storage: a folder of its own kind needs a user', async () => {
    const personal = { folder_id: rig.double.folders.personal }
    expect(await failure(deliver(small(), rig.target({ config: personal })))).toMatchObject({
      code: 'storage_quota_exceeded',
      permanent: true,
      message: expect.stringMatching(/shared drive.*subject/) as string,
    })
    await deliver(small(), rig.target({ config: { ...personal, subject: rig.double.subject } }))
    expect(files()).toMatchObject([{ owner: rig.double.subject }])
  })

  test('the storage of a user who is full may be emptied', async () => {
    rig.double.faults.push({ match: /^POST \/upload/, say: driveError(403, 'storageQuotaExceeded'), times: 1 })
    expect(await failure(deliver(small(), rig.target({ config: { subject: rig.double.subject } })))).toMatchObject({
      code: 'storage_quota_exceeded',
      permanent: false,
    })
  })

  test('a folder that may only be read is told as such', async () => {
    const target = rig.target({ config: { folder_id: rig.double.folders.readOnly } })
    expect(await failure(deliver(small(), target))).toMatchObject({ code: 'access_denied', permanent: true })
    expect(await failure(rig.connector.probe(target, contextOf(outbound)))).toMatchObject({ code: 'access_denied', permanent: true })
  })

  test.each([
    ['application/pdf', false],
    ['application/vnd.google-apps.folder', true],
  ])('a folder_id that names a thing of type %s, in the trash: %s, is no folder', async (mimeType, trashed) => {
    const say = { status: 200, json: { id: 'f', mimeType, trashed, capabilities: { canAddChildren: true } } }
    rig.double.faults.push({ match: /folder-on-shared-drive$/, say, times: 1 })
    expect(await failure(deliver(small(), rig.target(), rig.connectorAt()))).toMatchObject({ code: 'folder_missing', permanent: true })
  })

  test.each([
    [{ account: { client_email: 'other@project.example' } }, /gone or disabled/],
    [{ config: { subject: 'stranger@contoso.example' } }, /may not act for stranger@contoso.example/],
  ])('credentials that are refused are told by what to correct: %j', async (overrides, message) => {
    expect(await failure(deliver(small(), rig.target(overrides)))).toMatchObject({
      code: 'credentials_refused',
      permanent: true,
      message: expect.stringMatching(message) as string,
    })
  })

  test('clocks that differ come to agree again', async () => {
    const json = { error: 'invalid_grant', error_description: 'Invalid JWT: check your iat and exp values' }
    rig.double.faults.push({ match: /token$/, say: { status: 400, json }, times: 1 })
    expect(await failure(deliver(small(), rig.target(), rig.connectorAt()))).toMatchObject({
      code: 'credentials_refused',
      permanent: false,
      message: expect.stringContaining('clock') as string,
    })
  })

  test.each([
    [403, 'userRateLimitExceeded', 'rate_limited', false],
    [403, 'rateLimitExceeded', 'rate_limited', false],
    [403, 'accessNotConfigured', 'api_disabled', true],
    [403, 'insufficientFilePermissions', 'access_denied', true],
    [403, 'teamDriveFileLimitExceeded', 'folder_full', true],
    [400, 'badRequest', 'http_400', true],
    [401, 'authError', 'token_refused', false],
    [404, 'notFound', 'http_404', false],
    [409, 'fileIdInUse', 'http_409', false],
    [500, 'internalError', 'http_500', false],
    [503, 'backendError', 'http_503', false],
    [302, 'redirect', 'http_302', false],
  ])('%i %s becomes %s, final: %s', async (status, reason, code, permanent) => {
    rig.double.faults.push({ match: /^POST \/upload/, say: driveError(status, reason), times: 1 })
    expect(await failure(deliver(small()))).toMatchObject({ code, permanent, message: expect.stringContaining('says Drive') as string })
  })

  const stages: [string, RegExp][] = [
    ['the token', /token$/],
    ['the folder', /GET .*folder-on-shared-drive$/],
    ['the search', /GET \/drive\/v3\/files$/],
    ['an id', /generateIds$/],
    ['an upload session', /^POST \/upload/],
    ['a chunk', /^PUT \/upload/],
  ]
  test.each(stages)('429 for %s is passed on with the time to wait, in both forms', async (_stage, match) => {
    for (const [header, least, most] of [
      ['120', 120_000, 120_000],
      [new Date(Date.now() + 90_000).toUTCString(), 80_000, 90_000],
    ] as const) {
      rig.double.faults.push({ match, say: driveError(429, 'rateLimitExceeded', { 'retry-after': header }), times: 1 })
      // anew each time: nothing is to be remembered from an earlier attempt
      const error = await failure(deliver(small(), rig.target(), rig.connectorAt()))
      expect(error).toMatchObject({ code: 'http_429', permanent: false })
      expect(error.retryAfterMs).toBeGreaterThanOrEqual(least)
      expect(error.retryAfterMs).toBeLessThanOrEqual(most)
    }
    expect([...rig.double.sessions.keys(), ...files()]).toEqual([])
  })

  test.each([
    [404, 'upload_expired'],
    [410, 'upload_expired'],
    [503, 'http_503'],
    [308, 'upload_out_of_step'],
  ])('%i in the midst of an upload becomes %s, and the session is given up', async (status, code) => {
    rig.double.faults.push({ match: /^PUT \/upload/, say: { status: 308, headers: { range: `bytes=0-${8 * MiB - 1}` } }, times: 1 })
    rig.double.faults.push({ match: /^PUT \/upload/, say: driveError(status, 'gone'), times: 1 })
    expect(await failure(deliver(largeParcel(20 * MiB)))).toMatchObject({ code, permanent: false })
    expect(rig.double.asked.at(-1)).toMatch(/^DELETE \/upload/)
    expect(rig.double.sessions.size).toBe(0)
  })

  test('a content that arrived as another one is told, and replaced by the next attempt', async () => {
    const parcel = small()
    const say = { status: 200, json: { id: 'f', sha256Checksum: 'ab'.repeat(32) } }
    rig.double.faults.push({ match: /^PUT \/upload/, say, times: 1 })
    expect(await failure(deliver(parcel))).toMatchObject({ code: 'content_altered', permanent: false })
    await deliver(parcel)
    expect(files()).toMatchObject([{ sha256: parcel.sha256 }])
  })

  test('a token that was revoked costs an attempt, and a folder that was unshared is looked up again', async () => {
    await deliver(small())
    rig.double.revokeTokens()
    expect(await failure(deliver(small()))).toMatchObject({ code: 'token_refused', permanent: false })
    await deliver(small())

    rig.double.faults.push({ match: /^POST \/upload/, say: driveError(404, 'notFound'), times: 1 })
    await failure(deliver(small()))
    rig.double.faults.push({ match: /folder-on-shared-drive$/, say: driveError(404, 'notFound'), times: 1 })
    expect(await failure(deliver(small()))).toMatchObject({ code: 'folder_missing', permanent: true })
  })

  test.each([
    ['https://169.254.169.254/up', 'blocked_address'],
    ['http://127.0.0.1/up', 'answer_unreadable'],
    ['', 'answer_unreadable'],
  ])('an upload address of %j is not followed', async (location, code) => {
    rig.double.faults.push({ match: /^POST \/upload/, say: { status: 200, headers: { location } }, times: 1 })
    expect(await failure(deliver(small()))).toMatchObject({ code })
  })

  test('the token address of a key file leads nowhere that was not allowed', async () => {
    const target = rig.target({ account: { token_uri: 'https://169.254.169.254/token' } })
    expect(await failure(rig.connector.probe(target, contextOf(outbound)))).toMatchObject({ code: 'blocked_address', permanent: true })
  })

  test('neither token nor upload address is shown when the service repeats them', async () => {
    const location = `https://localhost:${rig.double.port}/upload/drive/v3/files?upload_id=the-key-itself`
    rig.double.faults.push({ match: /^POST \/upload/, say: { status: 200, headers: { location } }, times: 1 })
    rig.double.faults.push({ match: /^PUT \/upload/, say: driveError(400, `${location} ?upload_id=the-key-itself`), times: 1 })
    const error = await failure(deliver(small()))
    const said = JSON.stringify([error.message, error.answer])
    expect(said).not.toContain('the-key-itself')
    expect(said).toContain('[REDACTED]')
  })

  test.each([
    [{ folder_id: 'https://drive.google.com/drive/folders/1abc' }],
    [{ folder_id: "x' in parents or '" }],
    [{ folder_id: '' }],
    [{ subject: 'nobody' }],
    [{ unheard_of: 1 }],
  ])('refuses the config %j', (config) => {
    expect(rig.connector.config.safeParse({ ...rig.target().config, ...config }).success).toBe(false)
  })

  test.each([
    [{ type: 'authorized_user' }],
    [{ private_key: 'none' }],
    [{ private_key: null }],
    [{ client_email: null }],
    [{ token_uri: 'http://oauth2.googleapis.com/token' }],
  ])('refuses a key file with %j, and shows nothing of it', (overrides) => {
    const parsed = rig.connector.credentials.safeParse({ service_account: { ...rig.double.keyFile(), ...overrides } })
    expect(parsed.success).toBe(false)
    expect(JSON.stringify(parsed.error)).not.toContain('PRIVATE KEY')
  })
})
