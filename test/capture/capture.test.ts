import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { tablesWith } from '../support/canary.ts'
import { multipartBody, openSocket, part, type CallOptions } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { startCaptureScene, type CaptureScene, type CaptureWorkspace } from './scene.ts'

let scene: CaptureScene
let workspace: CaptureWorkspace

beforeAll(async () => {
  scene = await startCaptureScene({
    CAPTURE_BODY_MAX_BYTES: '1000',
    CAPTURE_COMMIT_BODY_MAX_BYTES: '600',
    RELAY_DOCUMENT_MAX_BYTES: '100000',
    RELAY_HTTP_LINGER_TIMEOUT_MS: '300',
  })
  workspace = await scene.workspace()
})
afterAll(() => scene.stop())

const put = (body: CallOptions['body']): CallOptions => ({ method: 'PUT', body: body! })
const onZ1 = 'pVersion=0045&contRep=Z1'

describe('an accepted document', () => {
  it('has its request captured as soon as it is answered, under the id of the answer', async () => {
    const began = Date.now()
    const answer = await workspace.source.create('D1', 'hello', { headers: { 'content-type': 'text/xml', 'x-extra': 'yes' } })
    const id = answer.headers['x-relay-request-id']!
    // no waiting: it was committed with the document
    const { status, json } = await workspace.ask('GET', `/requests/${id}`)
    expect(status).toBe(200)
    expect(json.data).toEqual({
      id,
      type: 'captured_request',
      attributes: {
        channel: 'receiver',
        workspace_id: workspace.workspaceId,
        http_method: 'PUT',
        uri: workspace.path,
        query_string: `create&${onZ1}&docId=D1&compId=data`,
        request_headers: expect.objectContaining({ 'content-type': 'text/xml', 'content-length': '5', 'x-extra': 'yes' }),
        request_content_type: 'text/xml',
        request_content_length: 5,
        request_body_truncated: false,
        request_body_preview: 'hello',
        source_ip: expect.stringContaining('127.0.0.1'),
        request_at: expect.any(String),
        status_code: 201,
        response_headers: { 'cache-control': 'no-store', 'content-length': '0', 'x-relay-request-id': id },
        response_content_type: '',
        response_content_length: 0,
        response_body_truncated: false,
        response_body_preview: null,
        duration_ms: expect.any(Number),
        response_at: expect.any(String),
        created_at: expect.any(String),
        replay_of: null,
      },
    })
    const { request_at: requestAt, response_at: responseAt, duration_ms: durationMs } = json.data.attributes
    expect(Date.parse(requestAt)).toBeGreaterThanOrEqual(began)
    expect(Date.parse(responseAt) - Date.parse(requestAt)).toBe(durationMs)
  })

  it('has it captured by every command that brings one, once, and in the transaction', async () => {
    const all = await scene.workspace()
    const answers = [
      await all.source.create('D1', 'one'),
      await all.source.createParts('D2', [part('data', 'two'), part('note', 'three')]),
      await all.source.mCreate('D3', [
        { headers: { 'X-docId': 'D3', 'X-compId': 'data' }, body: 'a' },
        { headers: { 'X-docId': 'D4', 'X-compId': 'data' }, body: 'b' },
      ]),
      await all.source.update('D1', 'four'),
      await all.source.append('D1', 'five'),
    ]
    const rows = await scene.db('captured_requests').where({ workspace_id: all.workspaceId }).orderBy('id')
    expect(rows.map(({ id, status_code }) => [id, status_code])).toEqual(
      answers.map(({ status, headers }) => [headers['x-relay-request-id'], status]),
    )
    expect((await all.bodyOf(rows[2]!.id, 'response')).bytes.toString()).toBe(String(answers[2]!.body))
    const unwired = await scene.workspace([])
    const discarded = await unwired.source.create('D1', 'x')
    expect(await scene.db('captured_requests').where({ id: discarded.headers['x-relay-request-id'] })).toHaveLength(1)
  })

  it('with a body that follows is said to lack it where that is JSON that nobody can read', async () => {
    const headers = { 'content-type': 'application/json' }
    const [broken, whole] = ['{"password": "canary-8c1d', '{"password": "canary-8c1d"'].map((start) => start + ' '.repeat(700))
    const lacking = await workspace.source.create('BROKEN', `${broken}`, { headers })
    const kept = await workspace.source.create('WHOLE', `${whole}}`, { headers })
    const id = kept.headers['x-relay-request-id']!
    await until('the body', async () => (await workspace.bodyOf(id, 'request')).status === 200)
    expect((await workspace.bodyOf(id, 'request')).bytes.toString()).toContain('[REDACTED]')
    expect(await workspace.captureOf(kept)).toMatchObject({ request_content_length: 727, request_body_truncated: false })
    await until('the word of it', async () => (await workspace.captureOf(lacking)).request_body_truncated === true)
    expect((await workspace.bodyOf(lacking.headers['x-relay-request-id']!, 'request')).status).toBe(404)
  })

  it('of an mCreate that half failed is captured with the answer that was given in the end', async () => {
    await workspace.source.create('TAKEN', 'x')
    const parts = ['NEW', 'TAKEN'].map((docId) => ({ headers: { 'X-docId': docId, 'X-compId': 'data' }, body: 'y' }))
    const answer = await workspace.source.mCreate('NEW', parts)
    expect(answer.status).toBe(250)
    const id = answer.headers['x-relay-request-id']!
    await until('the answer of the end', async () => (await workspace.captureOf(answer)).status_code === 250)
    expect((await workspace.bodyOf(id, 'response')).bytes.toString()).toBe(String(answer.body))
    expect((await workspace.bodyOf(id, 'request')).bytes).toEqual(multipartBody('MB7', parts))
  })
})

describe('every other request', () => {
  it.each<[string, string, CallOptions, number]>([
    ['a document that is there already', `create&${onZ1}&docId=D1&compId=data`, put('again'), 403],
    ['an unknown command', `steal&${onZ1}&docId=D1`, {}, 400],
    ['a wrong method', `create&${onZ1}&docId=D1&compId=data`, { method: 'DELETE' }, 400],
    ['no query at all', '', {}, 400],
    ['a query that nobody can parse', '%%%&=&&=?', {}, 400],
    ['an unknown repository', 'create&pVersion=0045&contRep=Z9&docId=D1&compId=data', put('for nobody'), 404],
    ['a NUL in a name', `get&pVersion=0045&contRep=%00&docId=%00`, {}, 400],
    ['a name longer than any', `get&pVersion=0045&contRep=Z1&docId=${'x'.repeat(9_000)}`, {}, 400],
    ['a body that is not multipart', `create&${onZ1}&docId=D1`, { method: 'POST', body: 'x' }, 400],
    ['a GET with a body', `info&${onZ1}&docId=D1`, { body: 'unasked' }, 200],
  ])('is captured with its body: %s', async (_, query, options, status) => {
    const answer = await workspace.source.call(query, options)
    expect(answer.status).toBe(status)
    const captured = await workspace.captureOf(answer)
    expect(captured).toMatchObject({
      http_method: options.method ?? 'GET',
      query_string: query,
      status_code: status,
      request_body_truncated: false,
      request_content_length: typeof options.body === 'string' ? options.body.length : 0,
      response_body_truncated: false,
    })
    expect(captured.response_headers).toMatchObject({ 'x-relay-request-id': captured.id })
    const [asked, answered] = [await workspace.bodyOf(captured.id, 'request'), await workspace.bodyOf(captured.id, 'response')]
    expect([asked.status, asked.status === 200 ? String(asked.bytes) : undefined]).toEqual(
      options.body === undefined ? [404, undefined] : [200, options.body],
    )
    expect(answered.bytes.equals(answer.body)).toBe(true)
  })

  it('is captured where it reads a document, with the bytes if they are few', async () => {
    await workspace.source.create('SMALL', 'x'.repeat(1_000))
    await workspace.source.create('LARGE', 'x'.repeat(1_001))
    const small = await workspace.captureOf(await workspace.source.get('SMALL'))
    expect(small).toMatchObject({ status_code: 200, response_content_length: 1_000, response_body_truncated: false })
    expect(String((await workspace.bodyOf(small.id, 'response')).bytes)).toBe('x'.repeat(1_000))
    const large = await workspace.captureOf(await workspace.source.get('LARGE'))
    expect(large).toMatchObject({ status_code: 200, response_content_length: 1_001, response_body_truncated: true })
    expect((await workspace.bodyOf(large.id, 'response')).status).toBe(404)
    const head = await workspace.captureOf(await workspace.source.head('SMALL'))
    expect(head).toMatchObject({ http_method: 'HEAD', response_content_length: 1_000, response_body_truncated: false })
    expect((await workspace.bodyOf(head.id, 'response')).status).toBe(404)
  })

  it('is captured without a body that is over the cap, with its length, announced or not, taken or not', async () => {
    const taken = await workspace.captureOf(await workspace.source.create('OVER', Readable.from([Buffer.alloc(900), Buffer.alloc(101)])))
    expect(taken).toMatchObject({ status_code: 201, request_content_length: 1_001, request_body_truncated: true })
    expect((await workspace.bodyOf(taken.id, 'request')).status).toBe(404)
    const refused = await workspace.captureOf(await workspace.source.create('HUGE', randomBytes(100_001)))
    expect(refused).toMatchObject({ status_code: 400, request_content_length: 100_001, request_body_truncated: true })
    expect(await scene.db('captured_bodies').where({ request_id: taken.id })).toEqual([])
  })

  it('is captured as 499, without its body, where the client hangs up before it is answered', async () => {
    const gone = await scene.workspace()
    const { send, socket } = await openSocket(scene.receiver.port)
    await send(`PUT ${gone.path}?create&${onZ1}&docId=GONE&compId=data HTTP/1.1\r\nHost: cs\r\nContent-Length: 10\r\n\r\nhalf`)
    socket.destroy()
    const [captured] = await gone.list(1)
    expect(captured.attributes).toMatchObject({
      status_code: 499,
      request_content_length: 10,
      request_body_truncated: true,
      response_content_length: 0,
      response_body_truncated: false,
    })
    expect((await gone.ask('POST', `/requests/${captured.id}/replay`)).status).toBe(409)
  })

  it('is captured and answered where its body never comes', async () => {
    const idle = await scene.workspace()
    for (const connection of ['close', 'keep-alive']) {
      const { send, received, untilClosed } = await openSocket(scene.receiver.port)
      await send(`PUT ${idle.path}?nonsense HTTP/1.1\r\nHost: cs\r\nContent-Length: 10\r\nConnection: ${connection}\r\n\r\nhalf`)
      await untilClosed()
      expect(received()).toMatch(/^HTTP\/1.1 400 /)
    }
    const captured = await idle.list(2)
    expect(captured.map(({ attributes }: { attributes: object }) => attributes)).toMatchObject([
      { status_code: 400, request_body_truncated: true, response_body_truncated: false },
      { status_code: 400, request_body_truncated: true, response_body_truncated: false },
    ])
  })

  it('to no workspace is counted only', async () => {
    const answer = await fetch(`${scene.receiver.baseUrl}/receiver/acme/nowhere?get&${onZ1}&docId=D1`)
    expect(answer.status).toBe(404)
    const [lost] = scene.receiver.captures.metrics
    const counted = async () => (await lost!.get()).values.find(({ labels }) => labels['reason'] === 'no_workspace')?.value
    await until('it is counted', async () => (await counted()) === 1)
    expect(await scene.db('captured_requests').where({ id: answer.headers.get('x-relay-request-id') })).toEqual([])
  })
})

it('the list is live while a hundred requests a second are captured', async () => {
  const busy = await scene.workspace()
  const count = 500
  const answered: { id: string; at: number }[] = []
  const sending: Promise<unknown>[] = []
  const began = Date.now()
  const sent = new AbortController()
  const read = async () => {
    const { headers } = await busy.source.info('NOWHERE')
    answered.push({ id: headers['x-relay-request-id']!, at: Date.now() })
  }
  const send = async () => {
    for (let number = 0; number < count; number += 1) {
      await delay(Math.max(began + number * 10 - Date.now(), 0))
      // by the transaction of a document, and by what is written soon after the answer
      sending.push(number % 2 === 0 ? busy.source.create(`D${number}`, 'hello') : read())
    }
    await Promise.all(sending)
    sent.abort()
  }
  const look = async () => {
    const [waitsMs, timesMs] = [[0], [0]]
    while (!sent.signal.aborted) {
      const askedAt = Date.now()
      const { json } = await busy.ask('GET', '/requests?per_page=100&status_class=4xx')
      timesMs.push(Date.now() - askedAt)
      const [newest] = json.data
      waitsMs.push(...answered.filter(({ id, at }) => at < askedAt && !(id <= newest?.id)).map(({ at }) => askedAt - at))
      await delay(50)
    }
    return { waitMs: Math.max(...waitsMs), timeMs: Math.max(...timesMs) }
  }
  const [seen] = await Promise.all([look(), send()])
  // a second is promised, and the machine may have others to serve
  expect(seen.waitMs).toBeLessThan(2_000)
  expect(seen.timeMs).toBeLessThan(2_000)
  const captured = () => scene.db('captured_requests').where({ workspace_id: busy.workspaceId })
  await until('each is captured', async () => (await captured()).length === count)
})

describe('a secret', () => {
  const canary = 'canary-3f9c'
  const headers = {
    authorization: `Basic ${canary}`,
    'proxy-authorization': canary,
    cookie: `session=${canary}`,
    'x-auth-token': canary,
    'X-Client-Secret': canary,
    'x-password': canary,
    'x-api-key': canary,
    'content-type': 'application/json',
  }
  const nested = JSON.stringify({ inner: { refreshToken: canary } })
  const body = JSON.stringify({ user: 'u', password: canary, deep: [{ Api_Key: [canary], nested }], client_secret: { value: canary } })

  it('in a header or a JSON body is in no row, log or answer, whatever becomes of the request', async () => {
    const secretive = await scene.workspace([])
    const { source } = secretive
    const answers = [
      await source.create('S1', body, { headers }),
      await source.call(`create&pVersion=0045&contRep=Z9&docId=S1&compId=data`, { method: 'PUT', headers, body }),
      await source.call(`create&${onZ1}&docId=S2&compId=data`, { method: 'PUT', headers, body: body.slice(0, -1) }),
      await source.call(`create&${onZ1}&docId=S3&compId=data`, {
        method: 'PUT',
        headers: { ...headers, 'content-type': 'text/plain' },
        body,
      }),
    ]
    const captured = await Promise.all(answers.map((answer) => secretive.captureOf(answer)))
    expect(captured.map(({ request_body_truncated }) => request_body_truncated)).toEqual([false, false, true, false])
    for (const { id, request_headers: kept } of captured) {
      for (const name of Object.keys(headers)) {
        if (name === 'content-type') continue
        expect([name, kept[name.toLowerCase()]]).toEqual([name, '[REDACTED]'])
      }
      expect((await secretive.bodyOf(id, 'request')).bytes.includes(canary)).toBe(false)
    }
    expect(JSON.parse(captured[0]!.request_body_preview)).toEqual({
      user: 'u',
      password: '[REDACTED]',
      deep: [{ Api_Key: '[REDACTED]', nested: JSON.stringify({ inner: { refreshToken: '[REDACTED]' } }) }],
      client_secret: '[REDACTED]',
    })
    expect(JSON.stringify(captured)).not.toContain(canary)

    expect(await tablesWith(scene.db, canary)).toEqual([])
    expect(scene.receiver.log.join('')).not.toContain(canary)
  })

  it('in the answer is redacted, too, where a JSON document is read, and the reader gets it whole', async () => {
    await workspace.source.create('JSON', body, { headers: { 'content-type': 'application/json' } })
    const answer = await workspace.source.get('JSON')
    expect(String(answer.body)).toBe(body)
    const captured = await workspace.captureOf(answer)
    expect(captured.response_body_preview).toContain('[REDACTED]')
    expect(captured.response_body_preview).not.toContain(canary)
  })

  it('in the query string is kept, and never logged', async () => {
    const query = `get&${onZ1}&docId=NONE&accessMode=r&authId=A&expiration=20261121090000&secKey=${canary}`
    const captured = await workspace.captureOf(await workspace.source.call(query))
    expect(captured.query_string).toBe(query)
    const first = await workspace.captureOf(await workspace.source.call(`secKey=${canary}`))
    expect(JSON.stringify(first.response_headers)).not.toContain(canary)
    expect(scene.receiver.log.join('')).not.toContain(canary)
  })
})
