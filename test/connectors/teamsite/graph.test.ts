import type { Payload } from '../../../src/connectors/connector.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import type { DoubleResponse } from '../../support/double.ts'
import { contextOf, failure, largePayload, later, MiB, payloadOf } from '../payloads.ts'
import { startTeamsite } from './rig.ts'

const rig = await startTeamsite()
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
beforeEach(() => rig.reset())
afterAll(async () => {
  await outbound.close()
  await rig.stop()
})

const deliver = (payload: Payload, target = rig.target()) => rig.connector.deliver(payload, target, contextOf(outbound))
const small = () => payloadOf(Buffer.from('x'))
const graphError = (status: number, code: string, headers: Record<string, string> = {}): DoubleResponse => ({
  status,
  json: { error: { code, message: 'says Graph' } },
  headers,
})

describe('teamsite, against a double of Microsoft Graph', () => {
  test('requests token, site and library once, and sends a small document in one request', async () => {
    await deliver(small())
    rig.double.requests.length = 0
    const { path } = await deliver(payloadOf(Buffer.from('x'), { path: 'R1/a b#c/d.pdf' }))
    expect(rig.double.requests).toEqual(['PUT /v1.0/drives/b!drive0/root:/From the relay/R1/a b#c/d.pdf:/content'])
    expect(path).toBe('https://contoso.sharepoint.com/sites/Finance/Documents/From%20the%20relay/R1/a%20b%23c/d.pdf')
    expect([...rig.double.agents]).toEqual([expect.stringMatching(/^ISV\|\w+\|\w+\/[\d.]+$/)])
  })

  test('looks up the library again after ten minutes, even if documents are delivered all the time', async () => {
    const connector = rig.connectorAt()
    const lookedUp: boolean[] = []
    for (const minutes of [0, 6, 12]) {
      rig.double.requests.length = 0
      const payload = small()
      await later(minutes, () => connector.deliver(payload, rig.target(), contextOf(outbound)))
      lookedUp.push(rig.double.requests.some((line) => line.endsWith('/drives')))
    }
    expect(lookedUp).toEqual([true, false, true])
  })

  test('sends a large document in parts, to the upload host and without the token', async () => {
    const payload = largePayload(25 * MiB + 1)
    await deliver(payload)
    expect(rig.double.requests.filter((line) => line.startsWith('PUT /up/'))).toHaveLength(3)
    expect([...rig.double.items.values()]).toMatchObject([{ sha256: payload.sha256 }])
  })

  test('a large document that is delivered again replaces its file, which keeps its id', async () => {
    const payload = largePayload(5 * MiB)
    const first = await deliver(payload)
    const again = await deliver({ ...largePayload(6 * MiB), path: payload.path })
    expect(again.path).toBe(first.path)
    expect(again.answer).toMatchObject({ status: 200, item_id: first.answer?.item_id })
    expect([...rig.double.items.values()]).toMatchObject([{ sizeBytes: 6 * MiB }])
  })

  test('finds a library on a later page, whatever the case of its name', async () => {
    const { path } = await deliver(small(), rig.target({ document_library: 'invoices & MORE', folder: '' }))
    expect(path).toContain('/sites/Finance/Invoices%20%26%20more/R1/')
  })

  test('a missing library is reported with the names of the existing ones', async () => {
    const error = await failure(deliver(small(), rig.target({ document_library: 'Receipts' })))
    expect(error).toMatchObject({ code: 'library_missing', permanent: true })
    expect(error.message).toContain('Documents, Invoices & more')
  })

  test.each(['https://contoso.sharepoint.com/sites/Elsewhere', 'https://contoso.sharepoint.com/'])(
    '%s is reported as a missing site',
    async (url) => {
      expect(await failure(deliver(small(), rig.target({ site_url: url })))).toMatchObject({ code: 'site_missing', permanent: true })
    },
  )

  const stages: [string, RegExp][] = [
    ['the token', /token$/],
    ['the site', /sites\/[^/]+:/],
    ['the libraries', /drives$/],
    ['the document', /content$/],
    ['an upload session', /createUploadSession$/],
    ['a part', /PUT \/up\//],
  ]
  test.each(stages)('429 for %s keeps the time to wait, in both forms', async (_stage, match) => {
    const payload = match.test('/content') ? small() : largePayload(12 * MiB)
    for (const [header, least, most] of [
      ['120', 120_000, 120_000],
      [new Date(Date.now() + 90_000).toUTCString(), 80_000, 90_000],
    ] as const) {
      rig.double.faults.push({ match, response: graphError(429, 'activityLimitReached', { 'retry-after': header }), times: 1 })
      // A new connector each time, since a cache would skip the request.
      const error = await failure(rig.connectorAt().deliver(payload, rig.target(), contextOf(outbound)))
      expect(error).toMatchObject({ code: 'http_429', permanent: false })
      expect(error.retryAfterMs).toBeGreaterThanOrEqual(least)
      expect(error.retryAfterMs).toBeLessThanOrEqual(most)
    }
    expect(rig.double.requests.filter((line) => match.test(line))).toHaveLength(2)
    expect([...rig.double.items.keys()]).toEqual([])
  })

  test.each([
    [403, 'accessDenied', 'access_denied', true],
    [400, 'invalidRequest', 'http_400', true],
    [404, 'itemNotFound', 'http_404', false],
    [409, 'nameAlreadyExists', 'http_409', false],
    [423, 'resourceLocked', 'locked', false],
    [500, 'generalException', 'http_500', false],
    [503, 'serviceNotAvailable', 'http_503', false],
    [507, 'quotaLimitReached', 'quota_exceeded', false],
    [302, 'redirect', 'http_302', false],
  ])('%i %s becomes %s, permanent: %s', async (status, graphCode, code, permanent) => {
    rig.double.faults.push({ match: /content$/, response: graphError(status, graphCode), times: 1 })
    expect(await failure(deliver(small()))).toMatchObject({ code, permanent, message: expect.stringContaining('says Graph') as string })
  })

  test.each<[string, DoubleResponse, string]>([
    ['a 412 to a request without a condition', graphError(412, 'resourceModified'), 'http_412'],
    ['a limit that is named with 403', graphError(403, 'activityLimitReached'), 'http_403'],
    ['a service that may only be read for now', graphError(400, 'serviceReadOnly'), 'http_400'],
    ['a lock with another status', graphError(403, 'lockNotFoundOrAlreadyExpired'), 'http_403'],
    [
      'an open file with another code',
      { status: 403, json: { error: { code: 'notAllowed', innerError: { code: 'resourceLocked' } } } },
      'http_403',
    ],
    ['an unknown code with 403', graphError(403, 'siteIsBeingMoved'), 'http_403'],
    ['403 with a time to wait', graphError(403, 'accessDenied', { 'retry-after': '2.542' }), 'http_403'],
    ['400 with a time to wait', graphError(400, 'invalidRequest', { 'retry-after': '2' }), 'http_400'],
    [
      'a limit in an inner error',
      { status: 403, json: { error: { code: 'accessDenied', message: 'x', innerError: { code: 'throttledRequest' } } } },
      'http_403',
    ],
    [
      'a time to wait in the error',
      { status: 403, json: { error: { code: 'accessDenied', message: 'x', retryAfterSeconds: 2.542 } } },
      'http_403',
    ],
    ['a page with 403', { status: 403, headers: { 'content-type': 'text/html' }, text: '<html>blocked</html>' }, 'answer_unreadable'],
    ['a page with 400', { status: 400, headers: { 'content-type': 'text/html' }, text: '<html>bad</html>' }, 'answer_unreadable'],
    ['a page with 421', { status: 421, text: '' }, 'http_421'],
  ])('%s passes', async (_, response, code) => {
    for (const match of [/content$/, /createUploadSession$/, /^PUT \/up/]) {
      const payload = match.test('/content') ? small() : largePayload(5 * MiB)
      rig.double.faults.push({ match, response, times: 1 })
      expect(await failure(deliver(payload))).toMatchObject({ code, permanent: false })
    }
  })

  test.each([
    [{ 'odata.error': { code: '-2147024891, System.UnauthorizedAccessException', message: { lang: 'en-US', value: 'Access denied.' } } }],
    [{ error: { code: '-2147024891, System.UnauthorizedAccessException', message: { lang: 'en-US', value: 'Access denied.' } } }],
    [{ error: { code: 'Forbidden', message: 'Access denied.' } }],
  ])('a denial in an older form is final: %j', async (json) => {
    rig.double.faults.push({ match: /content$/, response: { status: 403, json }, times: 1 })
    const error = await failure(deliver(small()))
    expect(error).toMatchObject({ code: 'access_denied', permanent: true, message: expect.stringContaining('Access denied.') as string })
  })

  test.each([
    [404, 'upload_expired'],
    [410, 'upload_expired'],
    [416, 'upload_out_of_step'],
    [409, 'http_409'],
    [202, 'upload_out_of_step'],
  ])('%i in the middle of an upload becomes %s, and the session is aborted', async (status, code) => {
    rig.double.faults.push({ match: /^PUT \/up\//, response: { status: 202, json: { nextExpectedRanges: [`${10 * MiB}-`] } }, times: 1 })
    rig.double.faults.push({ match: /^PUT \/up\//, response: graphError(status, 'itemNotFound'), times: 1 })
    expect(await failure(deliver(largePayload(25 * MiB)))).toMatchObject({ code, permanent: false })
    expect(rig.double.requests).toContainEqual(expect.stringMatching(/^DELETE \/up\//))
    expect(rig.double.sessions.size).toBe(0)
  })

  test('a revoked token costs one attempt, and the next attempt requests a new one', async () => {
    await deliver(small())
    rig.double.revokeTokens()
    expect(await failure(deliver(small()))).toMatchObject({ code: 'token_refused', permanent: false })
    await deliver(small())
  })

  test('a library that was created again costs one attempt', async () => {
    await deliver(small())
    rig.double.faults.push({ match: /content$/, response: graphError(404, 'itemNotFound'), times: 1 })
    expect(await failure(deliver(small()))).toMatchObject({ code: 'http_404', permanent: false })
    rig.double.requests.length = 0
    await deliver(small())
    expect(rig.double.requests).toContainEqual(expect.stringMatching(/drives$/))
  })

  test('a probe requests a new token', async () => {
    await deliver(small())
    await rig.connector.probe(rig.target(), contextOf(outbound))
    expect(rig.double.requests.filter((line) => line.endsWith('/token'))).not.toEqual([])
  })

  test.each([
    ['https://169.254.169.254/up', 'blocked_address'],
    ['http://127.0.0.1/up', 'answer_unreadable'],
    [undefined, 'answer_unreadable'],
  ])('an upload address of %s is not followed', async (uploadUrl, code) => {
    rig.double.faults.push({ match: /createUploadSession$/, response: { status: 200, json: { uploadUrl } }, times: 1 })
    expect(await failure(deliver(largePayload(5 * MiB)))).toMatchObject({ code })
  })

  test('the token is not sent to another host that a list refers to', async () => {
    const json = { value: [], '@odata.nextLink': `https://localhost:${rig.double.port}/v1.0/more` }
    rig.double.faults.push({ match: /drives$/, response: { status: 200, json }, times: 1 })
    const fresh = rig.connectorAt()
    expect(await failure(fresh.deliver(small(), rig.target(), contextOf(outbound)))).toMatchObject({ code: 'answer_unreadable' })
    expect(rig.double.requests).not.toContain('GET /v1.0/more')
  })

  test('neither token nor upload address nor secret is shown if the target echoes them', async () => {
    const uploadUrl = `https://localhost:${rig.double.port}/up/none?tempauth=the-key-itself`
    rig.double.faults.push({ match: /createUploadSession$/, response: { status: 200, json: { uploadUrl } }, times: 1 })
    const message = `${uploadUrl} ${rig.double.application.clientSecret} ?tempauth=the-key-itself entra-token-1`
    rig.double.faults.push({ match: /^PUT \/up\//, response: { status: 400, json: { error: { code: 'bad', message } } }, times: 1 })
    const error = await failure(rig.connectorAt().deliver(largePayload(5 * MiB), rig.target(), contextOf(outbound)))
    const text = JSON.stringify([error.message, error.answer])
    for (const secret of ['the-key-itself', rig.double.application.clientSecret]) expect(text).not.toContain(secret)
    expect(text).toContain('[REDACTED]')
  })

  test.each([
    [{ site_url: 'http://contoso.sharepoint.com/sites/Finance' }],
    [{ site_url: 'https://user:secret@contoso.sharepoint.com/sites/Finance' }],
    [{ site_url: 'https://contoso.sharepoint.com/sites/Finance?web=1' }],
    [{ document_library: '' }],
    [{ folder: 'a*b' }],
    [{ folder: '../up' }],
    [{ cloud: 'germany' }],
    [{ ca_certificate: 'none' }],
  ])('refuses the config %j', (config) => {
    expect(rig.connector.config.safeParse({ ...rig.target().config, ...config }).success).toBe(false)
  })
})
