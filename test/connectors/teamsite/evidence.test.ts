import type { Payload } from '../../../src/connectors/connector.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import type { DoubleResponse } from '../../support/double.ts'
import { contextOf, failure, largePayload, MiB, payloadOf } from '../payloads.ts'
import { startTeamsite } from './rig.ts'

const rig = await startTeamsite()
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
beforeEach(() => rig.reset())
afterAll(async () => {
  await outbound.close()
  await rig.stop()
})

const deliver = (payload: Payload) => rig.connector.deliver(payload, rig.target(), contextOf(outbound))
const refusalOf = (status: number, code: string, message = 'says Graph'): DoubleResponse => ({ status, json: { error: { code, message } } })
const upload = /content$|^PUT \/up\//
const requestsOf = (match: RegExp) => rig.double.requests.filter((line) => match.test(line))

describe('an answer without the id of a file', () => {
  const html = { 'content-type': 'text/html' }
  test.each<[string, DoubleResponse]>([
    ['a page', { status: 200, headers: html, text: '<html>sign in</html>' }],
    ['a page with 201', { status: 201, headers: html, text: '<html>sign in</html>' }],
    ['another object', { status: 200, json: { ok: true } }],
    ['an id that is no text', { status: 200, json: { id: 7 } }],
    ['an empty id', { status: 201, json: { id: '' } }],
    ['a blank id', { status: 200, json: { id: ' ' } }],
    ['no id', { status: 200, json: { id: null } }],
    ['an error', { status: 200, json: { error: {} } }],
    ['an error of a gateway with an id of its own', { status: 200, json: { id: 'request-1', error: { message: 'sign in' } } }],
    ['an answer of JSON-RPC', { status: 200, json: { jsonrpc: '2.0', id: '1', error: null } }],
    ['a document of JSON:API', { status: 200, json: { errors: [{ id: '1', status: '500' }], id: '1' } }],
    ['a list', { status: 200, json: [] }],
    ['nothing', { status: 204 }],
  ])('is a failed attempt, and its session is aborted: %s', async (_, response) => {
    for (const payload of [payloadOf(Buffer.from('x')), largePayload(5 * MiB)]) {
      rig.double.faults.push({ match: upload, response, times: 1 })
      expect(await failure(deliver(payload))).toMatchObject({
        code: 'answer_unreadable',
        permanent: false,
        answer: { status: response.status },
      })
    }
    expect([...rig.double.items.keys(), ...rig.double.sessions.keys()]).toEqual([])
  })

  test('in the middle of an upload is one, too', async () => {
    rig.double.faults.push({ match: upload, response: { status: 200, headers: html, text: '<html>' }, times: 1 })
    expect(await failure(deliver(largePayload(12 * MiB)))).toMatchObject({ code: 'upload_out_of_step', permanent: false })
  })

  test.each<[string, DoubleResponse]>([
    ['a page', { status: 200, headers: html, text: '<html>' }],
    ['an error', { status: 200, json: { error: { code: 'x' }, Vendor: 'Acme' } }],
    ['another object', { status: 200, json: { message: 'sign in' } }],
    ['nothing', { status: 204 }],
  ])('to the columns is no success: they are set later (%s)', async (_, response) => {
    rig.double.faults.push({ match: /fields$/, response, times: 1 })
    const result = await deliver(payloadOf(Buffer.from('x'), { properties: { Vendor: 'Acme' } }))
    expect(result.propertiesError).toMatch(/without the columns/)
  })
})

test('a file that is empty in SharePoint, and not here, is sent again', async () => {
  const response = { status: 201, json: { id: '01A', size: 0 } }
  rig.double.faults.push({ match: upload, response, times: 2 })
  expect(await failure(deliver(payloadOf(Buffer.from('x'))))).toMatchObject({ code: 'content_altered', permanent: false })
  expect((await deliver(payloadOf(Buffer.alloc(0)))).answer).toMatchObject({ item_id: '01A' })
})

describe.each([
  [423, 'resourceLocked', 'The file is a record and is locked', 'locked', false],
  [423, 'notAllowed', 'says Graph', 'locked', false],
  [403, 'accessDenied', 'Items with this retention label cannot be changed', 'access_denied', true],
  [409, 'nameAlreadyExists', 'The name exists', 'http_409', false],
  [412, 'notAllowed', 'says Graph', 'http_412', false],
  [400, 'invalidRequest', 'The item is on hold and cannot be modified', 'http_400', true],
] as const)('a library that answers %i %s to an overwrite', (status, code, message, ours, permanent) => {
  const refusal = refusalOf(status, code, message)
  const lost = refusalOf(503, 'serviceNotAvailable')

  test('has the document whose answer was lost, small or large', async () => {
    for (const payload of [payloadOf(Buffer.from('content')), largePayload(9 * MiB)]) {
      rig.double.faults.push({ match: upload, response: lost, times: 1, isLate: true })
      expect(await failure(deliver(payload))).toMatchObject({ code: 'http_503', permanent: false })
      expect(rig.double.items.size).toBe(1)
      rig.double.faults.push({ match: /content$|createUploadSession$/, response: refusal, times: 1 })
      const [item] = rig.double.items.values()
      expect(await deliver({ ...payload, attempt: 2 })).toMatchObject({ bytesSent: 0, answer: { status: 200, item_id: item!.id } })
      rig.reset()
    }
  })

  test('has no document that was changed since', async () => {
    const payload = payloadOf(Buffer.from('content'))
    await deliver(payload)
    for (const bytes of ['c0ntent', 'content and more']) {
      rig.double.faults.push({ match: upload, response: refusal, times: 1 })
      const error = await failure(deliver(payloadOf(Buffer.from(bytes), { deliveryId: payload.deliveryId, path: payload.path })))
      expect(error).toMatchObject({ code: ours, permanent, message: expect.stringMatching(/another content.*under its name$/) as string })
    }
  })

  test('and has no file of the name: the refusal stands', async () => {
    rig.double.faults.push({ match: upload, response: refusal, times: 1 })
    const error = await failure(deliver(payloadOf(Buffer.from('content'))))
    expect(error).toMatchObject({ code: ours, permanent, message: expect.stringContaining(message) as string })
    expect(error.message).not.toMatch(/under its name/)
  })

  test('and may not be read: the message says what is not known', async () => {
    const payload = payloadOf(Buffer.from('content'))
    rig.double.faults.push({ match: upload, response: refusal, times: 1 })
    rig.double.faults.push({ match: /^GET .*\/data$/, response: refusalOf(403, 'accessDenied'), times: 1 })
    const error = await failure(deliver({ ...payload, attempt: 2 }))
    expect(error).toMatchObject({ code: ours, message: expect.stringMatching(/An earlier attempt may have stored the document/) as string })
  })
})

test('an upload session that is gone because a gateway has sent the last part twice', async () => {
  const payload = largePayload(9 * MiB)
  rig.double.faults.push({ match: /^PUT \/up\//, response: refusalOf(404, 'itemNotFound'), times: 1, isLate: true })
  const [result, ...items] = [await deliver(payload), ...rig.double.items.values()]
  expect(items).toHaveLength(1)
  expect(result).toMatchObject({ bytesSent: 0, answer: { item_id: items[0]!.id } })
})

test('a document that is stored at once is not looked at', async () => {
  await deliver(payloadOf(Buffer.from('x')))
  expect(requestsOf(/^GET .*\/root:/)).toEqual([])
})
