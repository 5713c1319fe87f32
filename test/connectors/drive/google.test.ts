import type { Payload } from '../../../src/connectors/connector.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import type { DoubleResponse } from '../../support/double.ts'
import { contextOf, failure, largePayload, later, MiB, payloadOf } from '../payloads.ts'
import { startDrive } from './rig.ts'

const rig = await startDrive()
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
beforeEach(() => rig.reset())
afterAll(async () => {
  await outbound.close()
  await rig.stop()
})

const deliver = (payload: Payload, target = rig.target(), connector = rig.connector) =>
  connector.deliver(payload, target, contextOf(outbound))
const small = () => payloadOf(Buffer.from('x'))
const files = () => [...rig.double.files.values()]
const driveError = (status: number, reason: string, headers: Record<string, string> = {}): DoubleResponse => ({
  status,
  json: { error: { code: status, message: 'says Drive', errors: [{ reason, message: 'says Drive' }] } },
  headers,
})

describe('drive, against a double of Google Drive', () => {
  test('a file has the whole path as its name, and properties that identify the document', async () => {
    const payload = payloadOf(Buffer.from('x'), { path: 'R1/4F2A/data.pdf', contentType: 'Text/Plain; charset=utf-8' })
    const { path, answer } = await deliver(payload)
    expect(files()).toMatchObject([
      {
        name: 'R1 - 4F2A - data.pdf',
        description: 'R1/4F2A/data.pdf',
        mimeType: 'text/plain',
        parents: [rig.double.folders.shared],
        appProperties: { relay_delivery: payload.deliveryId, relay_document: payload.documentId },
      },
    ])
    expect(path).toBe(`https://drive.google.com/file/d/${files()[0]!.id}/view`)
    expect(answer).toEqual({ status: 201, file_id: files()[0]!.id })
  })

  test.each(['application/vnd.google-apps.document', 'no type', ''])(
    'the content type %j is replaced, so that Drive does not convert the document',
    async (contentType) => {
      await deliver(payloadOf(Buffer.from('x'), { contentType }))
      expect(files()).toMatchObject([{ mimeType: 'application/octet-stream' }])
    },
  )

  test('requests token and folder once', async () => {
    await deliver(small())
    rig.double.requests.length = 0
    await deliver(small())
    expect(rig.double.requests).toEqual([
      'GET /drive/v3/files',
      'GET /drive/v3/files/generateIds',
      'POST /upload/drive/v3/files',
      'PUT /upload/drive/v3/files',
    ])
  })

  test('looks up the folder again after ten minutes, even if documents are delivered all the time', async () => {
    const connector = rig.connectorAt()
    const lookedUp: boolean[] = []
    for (const minutes of [0, 6, 12]) {
      rig.double.requests.length = 0
      const payload = small()
      await later(minutes, () => deliver(payload, rig.target(), connector))
      lookedUp.push(rig.double.requests.includes(`GET /drive/v3/files/${rig.double.folders.shared}`))
    }
    expect(lookedUp).toEqual([true, false, true])
  })

  test('sends a large document in parts, and sends again what Drive did not store', async () => {
    const payload = largePayload(20 * MiB + 1)
    rig.double.storeAtMost.bytes = 3 * 256 * 1024
    await deliver(payload)
    expect(files()).toMatchObject([{ sha256: payload.sha256 }])
    expect(rig.double.requests.filter((line) => line.startsWith('PUT'))).toHaveLength(4)
  })

  test('after a worker was lost at the end of its upload, another one finds the file and sends nothing', async () => {
    const payload = payloadOf(Buffer.from('content'))
    const first = await deliver(payload)
    const again = await deliver(payload, rig.target(), rig.connectorAt())
    expect(again).toMatchObject({ path: first.path, bytesSent: 0 })
    expect(files()).toHaveLength(1)
  })

  test('a file that a search does not find yet is found by its id', async () => {
    const payload = payloadOf(Buffer.from('content'))
    await deliver(payload)
    rig.double.unsearchable.add(files()[0]!.id)
    expect(await deliver(payload)).toMatchObject({ bytesSent: 0 })
    expect(files()).toHaveLength(1)
  })

  test('a file that was stored although the answer was lost is found by another worker before a search finds it', async () => {
    const payload = payloadOf(Buffer.from('content'))
    let saved: unknown
    rig.double.faults.push({ match: /^PUT \/upload/, response: driveError(503, 'backendError'), times: 1, isLate: true })
    const save = (state: unknown) => void (saved = state)
    expect(await failure(rig.connector.deliver(payload, rig.target(), contextOf(outbound, { save })))).toMatchObject({ permanent: false })
    rig.double.unsearchable.add(files()[0]!.id)
    const again = await rig.connectorAt().deliver(payload, rig.target(), contextOf(outbound, { saved }))
    expect(again).toMatchObject({ bytesSent: 0, answer: { file_id: files()[0]!.id } })
    expect(files()).toHaveLength(1)
  })

  test('the file of an earlier delivery gets new content from another worker before a search finds it', async () => {
    const payload = payloadOf(Buffer.from('content'))
    const { path: location } = await deliver(payload)
    rig.double.unsearchable.add(files()[0]!.id)
    const appended = { ...payloadOf(Buffer.from('content and more')), deliveryId: payload.deliveryId, path: payload.path, location }
    expect(await deliver(appended, rig.target(), rig.connectorAt())).toMatchObject({ path: location })
    expect(files()).toMatchObject([{ sha256: appended.sha256 }])
    // If it was deleted, its id cannot be used again.
    rig.double.files.clear()
    expect((await deliver(appended, rig.target(), rig.connectorAt())).path).not.toBe(location)
    expect(files()).toHaveLength(1)
  })

  test('a delivery with changed content replaces the content of its file', async () => {
    const payload = payloadOf(Buffer.from('content'))
    const first = await deliver(payload)
    const appended = { ...payloadOf(Buffer.from('content and more')), deliveryId: payload.deliveryId, path: payload.path }
    for (const connector of [rig.connector, rig.connectorAt()]) {
      expect(await deliver(appended, rig.target(), connector)).toMatchObject({ path: first.path })
    }
    expect(files()).toMatchObject([{ sha256: appended.sha256 }])
  })

  test('a file that was moved to the trash is not written to again', async () => {
    const payload = payloadOf(Buffer.from('content'))
    await deliver(payload)
    files()[0]!.trashed = true
    await deliver(payload)
    expect(files().map(({ trashed }) => trashed)).toEqual([true, false])
  })

  test('a service account owns no storage: a personal folder needs a user in subject', async () => {
    const personal = { folder_id: rig.double.folders.personal }
    expect(await failure(deliver(small(), rig.target({ config: personal })))).toMatchObject({
      code: 'storage_quota_exceeded',
      permanent: true,
      message: expect.stringMatching(/shared drive.*subject/) as string,
    })
    await deliver(small(), rig.target({ config: { ...personal, subject: rig.double.subject } }), rig.connectorAt())
    expect(files()).toMatchObject([{ owner: rig.double.subject }])
  })

  test('full storage of a user is retried, since it can be freed', async () => {
    rig.double.faults.push({ match: /^POST \/upload/, response: driveError(403, 'storageQuotaExceeded'), times: 1 })
    const target = rig.target({ config: { subject: rig.double.subject } })
    expect(await failure(deliver(small(), target, rig.connectorAt()))).toMatchObject({
      code: 'storage_quota_exceeded',
      permanent: false,
    })
  })

  test('a read-only folder is reported as such', async () => {
    const target = rig.target({ config: { folder_id: rig.double.folders.readOnly } })
    expect(await failure(deliver(small(), target))).toMatchObject({ code: 'access_denied', permanent: true })
    expect(await failure(rig.connector.probe(target, contextOf(outbound)))).toMatchObject({ code: 'access_denied', permanent: true })
  })

  test.each([
    ['application/pdf', false],
    ['application/vnd.google-apps.folder', true],
  ])('a folder_id of an item with type %s (in the trash: %s) is reported as no folder', async (mimeType, trashed) => {
    const response = { status: 200, json: { id: 'f', mimeType, trashed, capabilities: { canAddChildren: true } } }
    rig.double.faults.push({ match: /folder-on-shared-drive$/, response, times: 1 })
    expect(await failure(deliver(small(), rig.target(), rig.connectorAt()))).toMatchObject({ code: 'folder_missing', permanent: true })
  })

  test.each([
    [{ account: { client_email: 'other@project.example' } }, /does not exist or is disabled/],
    [{ config: { subject: 'stranger@contoso.example' } }, /is not permitted to act for stranger@contoso.example/],
  ])('the message about refused credentials says what to correct: %j', async (overrides, message) => {
    expect(await failure(deliver(small(), rig.target(overrides)))).toMatchObject({
      code: 'credentials_refused',
      permanent: true,
      message: expect.stringMatching(message) as string,
    })
  })

  test('a difference of the clocks is retried', async () => {
    const json = { error: 'invalid_grant', error_description: 'Invalid JWT: check your iat and exp values' }
    rig.double.faults.push({ match: /token$/, response: { status: 400, json }, times: 1 })
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
    [403, 'myDriveHierarchyDepthLimitExceeded', 'folder_full', true],
    [403, 'storageQuotaExceeded', 'storage_quota_exceeded', true],
    [400, 'badRequest', 'http_400', true],
    [401, 'authError', 'token_refused', false],
    [404, 'notFound', 'http_404', false],
    [409, 'fileIdInUse', 'http_409', false],
    [500, 'internalError', 'http_500', false],
    [503, 'backendError', 'http_503', false],
    [302, 'redirect', 'http_302', false],
  ])('%i %s becomes %s, permanent: %s', async (status, reason, code, permanent) => {
    rig.double.faults.push({ match: /^POST \/upload/, response: driveError(status, reason), times: 1 })
    expect(await failure(deliver(small()))).toMatchObject({ code, permanent, message: expect.stringContaining('says Drive') as string })
  })

  const rpc = (status: number, name: string, details: object[] = []): DoubleResponse => ({
    status,
    json: { error: { code: status, message: 'says Google', status: name, details } },
  })
  const info = (reason: string) => ({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'googleapis.com' })
  test.each<[string, DoubleResponse, string, number | undefined]>([
    [
      'a page about automated queries',
      { status: 403, headers: { 'content-type': 'text/html' }, text: '<html>' },
      'answer_unreadable',
      undefined,
    ],
    ['a page with 400', { status: 400, text: 'Bad Request' }, 'answer_unreadable', undefined],
    ['a daily limit', driveError(403, 'dailyLimitExceeded'), 'rate_limited', undefined],
    ['a limit of uploads', driveError(403, 'uploadRateLimitExceeded'), 'rate_limited', undefined],
    ['a quota of requests', driveError(403, 'quotaExceeded'), 'rate_limited', undefined],
    ['a limit of shares', driveError(403, 'sharingRateLimitExceeded'), 'rate_limited', undefined],
    ['a reason that is not known', driveError(403, 'somethingNew'), 'http_403', undefined],
    ['a fraction', driveError(403, 'forbidden', { 'retry-after': '2.542' }), 'rate_limited', 2_542],
    ['a limit in the new form', rpc(403, 'PERMISSION_DENIED', [info('RATE_LIMIT_EXCEEDED')]), 'rate_limited', undefined],
    ['an exhausted resource', rpc(403, 'RESOURCE_EXHAUSTED', [{ retryDelay: '7.5s' }]), 'rate_limited', 7_500],
    ['429 in the new form', rpc(429, 'RESOURCE_EXHAUSTED', [{ retryDelay: '3s' }]), 'http_429', 3_000],
    ['412 without a condition', driveError(412, 'conditionNotMet'), 'http_412', undefined],
    ['load with 400', driveError(400, 'backendError'), 'http_400', undefined],
    ['423', driveError(423, 'locked'), 'http_423', undefined],
  ])('%s passes', async (_, response, code, retryAfterMs) => {
    for (const match of [/^POST \/upload/, /^PUT \/upload/]) {
      rig.double.faults.push({ match, response, times: 1 })
      expect(await failure(deliver(small()))).toMatchObject({ code, permanent: false, retryAfterMs })
    }
  })

  test.each([
    ['SERVICE_DISABLED', 'api_disabled'],
    ['ACCESS_TOKEN_SCOPE_INSUFFICIENT', 'access_denied'],
  ])('%s in the new form is final', async (reason, code) => {
    rig.double.faults.push({ match: /^POST \/upload/, response: rpc(403, 'PERMISSION_DENIED', [info(reason)]), times: 1 })
    expect(await failure(deliver(small()))).toMatchObject({
      code,
      permanent: true,
      message: expect.stringContaining('says Google') as string,
    })
  })

  test('a page in place of a token passes', async () => {
    rig.double.faults.push({ match: /token$/, response: { status: 403, text: '<html>' }, times: 1 })
    expect(await failure(deliver(small(), rig.target(), rig.connectorAt()))).toMatchObject({ code: 'http_403', permanent: false })
  })

  const stages: [string, RegExp][] = [
    ['the token', /token$/],
    ['the folder', /GET .*folder-on-shared-drive$/],
    ['the search', /GET \/drive\/v3\/files$/],
    ['an id', /generateIds$/],
    ['an upload session', /^POST \/upload/],
    ['a part', /^PUT \/upload/],
  ]
  test.each(stages)('429 for %s keeps the time to wait, in both forms', async (_stage, match) => {
    for (const [header, least, most] of [
      ['120', 120_000, 120_000],
      [new Date(Date.now() + 90_000).toUTCString(), 80_000, 90_000],
    ] as const) {
      rig.double.faults.push({ match, response: driveError(429, 'rateLimitExceeded', { 'retry-after': header }), times: 1 })
      // A new connector each time, since a cache would skip the request.
      const error = await failure(deliver(small(), rig.target(), rig.connectorAt()))
      expect(error).toMatchObject({ code: 'http_429', permanent: false })
      expect(error.retryAfterMs).toBeGreaterThanOrEqual(least)
      expect(error.retryAfterMs).toBeLessThanOrEqual(most)
    }
    expect(files()).toEqual([])
  })

  test.each([
    [404, 'upload_expired'],
    [410, 'upload_expired'],
    [409, 'http_409'],
    [308, 'upload_out_of_step'],
  ])('%i in the middle of an upload becomes %s, and the session is aborted', async (status, code) => {
    rig.double.faults.push({ match: /^PUT \/upload/, response: { status: 308, headers: { range: `bytes=0-${8 * MiB - 1}` } }, times: 1 })
    rig.double.faults.push({ match: /^PUT \/upload/, response: driveError(status, 'gone'), times: 1 })
    expect(await failure(deliver(largePayload(20 * MiB)))).toMatchObject({ code, permanent: false })
    expect(rig.double.requests.at(-1)).toMatch(/^DELETE \/upload/)
    expect(rig.double.sessions.size).toBe(0)
  })

  test('content that Drive stored differently is reported, and replaced by the next attempt', async () => {
    const payload = small()
    const response = { status: 200, json: { id: 'f', sha256Checksum: 'ab'.repeat(32) } }
    rig.double.faults.push({ match: /^PUT \/upload/, response, times: 1 })
    expect(await failure(deliver(payload))).toMatchObject({ code: 'content_altered', permanent: false })
    await deliver(payload)
    expect(files()).toMatchObject([{ sha256: payload.sha256 }])
  })

  describe('an answer that does not identify the file', () => {
    const html = { 'content-type': 'text/html' }
    test.each<[string, DoubleResponse]>([
      ['a page', { status: 200, headers: html, text: '<html>sign in</html>' }],
      ['a page with 202', { status: 202, headers: html, text: '<html>sign in</html>' }],
      ['another object', { status: 201, json: { ok: true } }],
      ['an empty id', { status: 200, json: { id: '' } }],
      ['another file', { status: 200, json: { id: 'another-file' } }],
      ['nothing', { status: 204 }],
    ])('is a failed attempt, and the session is aborted: %s', async (_, response) => {
      for (const payload of [small(), largePayload(9 * MiB)]) {
        rig.double.faults.push({ match: /^PUT \/upload/, response, times: 1 })
        expect(await failure(deliver(payload))).toMatchObject({ code: 'answer_unreadable', permanent: false })
      }
      expect([...files(), ...rig.double.sessions.keys()]).toEqual([])
    })

    test('is looked up if Drive has told the id, and no digest yet', async () => {
      const payload = small()
      const { faults } = rig.double
      rig.double.nextDigest.isMissing = true
      expect((await deliver(payload)).answer).toMatchObject({ file_id: files()[0]!.id })
      expect(rig.double.requests.at(-1)).toBe(`GET /drive/v3/files/${files()[0]!.id}`)
      // The file that is looked up has another content.
      rig.double.nextDigest.isMissing = true
      const changed = { status: 200, json: { id: 'f', parents: [rig.double.folders.shared], sha256Checksum: 'ab'.repeat(32) } }
      faults.push({ match: /^GET \/drive\/v3\/files\/1/, response: changed, times: 1 })
      expect(await failure(deliver(small()))).toMatchObject({ code: 'content_altered', permanent: false })
    })

    test.each([
      ['a search', /GET \/drive\/v3\/files$/],
      ['the start of an upload', /^POST \/upload/],
      ['an id', /generateIds$/],
    ])('to %s creates no second file', async (_, match) => {
      const payload = small()
      await deliver(payload)
      rig.double.faults.push({ match, response: { status: 200, headers: html, text: '<html>' }, times: 1 })
      const again = match.test('GET /drive/v3/files') ? payload : small()
      expect(await failure(deliver(again, rig.target(), rig.connectorAt()))).toMatchObject({ code: 'answer_unreadable', permanent: false })
      expect(files()).toHaveLength(1)
    })

    test('to the properties of a file that is there already does not fail the delivery', async () => {
      const payload = payloadOf(Buffer.from('x'), { properties: { Vendor: 'Acme' } })
      await deliver(payload)
      for (const response of [driveError(403, 'fileIsReadOnly'), { status: 200, headers: html, text: '<html>' }]) {
        rig.double.faults.push({ match: /^PATCH \/drive/, response, times: 1 })
        expect(await deliver(payload)).toMatchObject({ bytesSent: 0, propertiesError: expect.any(String) as string })
      }
    })
  })

  test('a revoked token costs one attempt, and a folder that is no longer shared is looked up again', async () => {
    await deliver(small())
    rig.double.revokeTokens()
    expect(await failure(deliver(small()))).toMatchObject({ code: 'token_refused', permanent: false })
    await deliver(small())

    rig.double.faults.push({ match: /^POST \/upload/, response: driveError(404, 'notFound'), times: 1 })
    await failure(deliver(small()))
    rig.double.faults.push({ match: /folder-on-shared-drive$/, response: driveError(404, 'notFound'), times: 1 })
    expect(await failure(deliver(small()))).toMatchObject({ code: 'folder_missing', permanent: true })
  })

  test.each([
    ['https://169.254.169.254/up', 'blocked_address'],
    ['http://127.0.0.1/up', 'answer_unreadable'],
    ['', 'answer_unreadable'],
  ])('an upload address of %j is not followed', async (location, code) => {
    rig.double.faults.push({ match: /^POST \/upload/, response: { status: 200, headers: { location } }, times: 1 })
    expect(await failure(deliver(small()))).toMatchObject({ code })
  })

  test('the token_uri of a key file reaches no address that is not allowed', async () => {
    const target = rig.target({ account: { token_uri: 'https://169.254.169.254/token' } })
    expect(await failure(rig.connector.probe(target, contextOf(outbound)))).toMatchObject({ code: 'blocked_address', permanent: true })
  })

  test('neither token nor upload address is shown if the service echoes them', async () => {
    const location = `https://localhost:${rig.double.port}/upload/drive/v3/files?upload_id=the-key-itself`
    rig.double.faults.push({ match: /^POST \/upload/, response: { status: 200, headers: { location } }, times: 1 })
    rig.double.faults.push({ match: /^PUT \/upload/, response: driveError(400, `${location} ?upload_id=the-key-itself`), times: 1 })
    const error = await failure(deliver(small()))
    const text = JSON.stringify([error.message, error.answer])
    expect(text).not.toContain('the-key-itself')
    expect(text).toContain('[REDACTED]')
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
  ])('refuses a key file with %j and shows nothing of it', (overrides) => {
    const parsed = rig.connector.credentials.safeParse({ service_account: { ...rig.double.keyFile(), ...overrides } })
    expect(parsed.success).toBe(false)
    expect(JSON.stringify(parsed.error)).not.toContain('PRIVATE KEY')
  })
})
