import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { tablesWith } from '../support/canary.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { multipartBody, openSocket, part, type CallOptions } from '../support/source-system.ts'
import { until } from '../support/until.ts'

const scene = share(
  await startScene({
    variables: { CAPTURE_BODY_MAX_BYTES: '1000', RELAY_DOCUMENT_MAX_BYTES: '100000' },
    limits: { receiver: { lingerTimeoutMs: 300 } },
  }),
)
const workspace = await scene.workspace()
await workspace.source.create('D1', 'hello')

const put = (body: CallOptions['body']): CallOptions => ({ method: 'PUT', body: body! })
const onZ1 = 'pVersion=0045&contRep=Z1'

describe('an accepted document', () => {
  test('is captured before it is answered, with the request id of the answer', async () => {
    const began = Date.now()
    const answer = await workspace.source.create('FIRST', 'hello', { headers: { 'content-type': 'text/xml', 'x-extra': 'yes' } })
    const id = answer.headers['x-relay-request-id']!
    // Without waiting, because the capture is committed with the document.
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
        query_string: `create&${onZ1}&docId=FIRST&compId=data`,
        code_page: 'windows-1252',
        request_headers: expect.objectContaining({ 'content-type': 'text/xml', 'content-length': '5', 'x-extra': 'yes' }),
        request_content_type: 'text/xml',
        request_content_length: 5,
        request_body_truncated: false,
        request_body_truncation_reason: null,
        request_body_preview: 'hello',
        source_ip: expect.stringContaining('127.0.0.1'),
        request_at: expect.any(String),
        status_code: 201,
        error_code: null,
        response_headers: {
          'cache-control': 'no-store',
          'content-length': '0',
          'content-security-policy': "sandbox; default-src 'none'",
          'x-content-type-options': 'nosniff',
          'x-relay-request-id': id,
        },
        response_content_type: '',
        response_content_length: 0,
        response_body_truncated: false,
        response_body_truncation_reason: null,
        response_body_preview: null,
        duration_ms: expect.any(Number),
        response_at: expect.any(String),
        created_at: expect.any(String),
        document_ids: [expect.any(String)],
        replay_of: null,
      },
    })
    const { request_at: requestAt, response_at: responseAt, duration_ms: durationMs } = json.data.attributes
    expect(Date.parse(requestAt)).toBeGreaterThanOrEqual(began)
    expect(Date.parse(responseAt) - Date.parse(requestAt)).toBe(durationMs)
  })

  test('is captured once by every command that receives documents, in its transaction', async () => {
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
    const unrouted = await scene.workspace([])
    const discarded = await unrouted.source.create('D1', 'x')
    expect(await scene.db('captured_requests').where({ id: discarded.headers['x-relay-request-id'] })).toHaveLength(1)
  })

  test('is captured as truncated if its body is invalid JSON', async () => {
    const headers = { 'content-type': 'application/json' }
    const [invalid, valid] = ['{"password": "canary-8c1d', '{"password": "canary-8c1d"'].map((start) => start + ' '.repeat(700))
    const withoutBody = await workspace.source.create('BROKEN', `${invalid}`, { headers })
    const withBody = await workspace.source.create('WHOLE', `${valid}}`, { headers })
    const id = withBody.headers['x-relay-request-id']!
    expect((await workspace.bodyOf(id, 'request')).bytes.toString()).toContain('[REDACTED]')
    expect(await workspace.captureOf(withBody)).toMatchObject({ request_content_length: 727, request_body_truncated: false })
    expect(await workspace.captureOf(withoutBody)).toMatchObject({
      request_body_truncated: true,
      request_body_truncation_reason: 'not_json',
    })
    expect((await workspace.bodyOf(withoutBody.headers['x-relay-request-id']!, 'request')).status).toBe(404)
  })

  test('of an mCreate that creates only some of its documents is captured with the final answer', async () => {
    await workspace.source.create('TAKEN', 'x')
    const parts = ['NEW', 'TAKEN'].map((docId) => ({ headers: { 'X-docId': docId, 'X-compId': 'data' }, body: 'y' }))
    const answer = await workspace.source.mCreate('NEW', parts)
    expect(answer.status).toBe(250)
    const id = answer.headers['x-relay-request-id']!
    await until('the final answer is captured', async () => (await workspace.captureOf(answer)).status_code === 250)
    expect((await workspace.bodyOf(id, 'response')).bytes.toString()).toBe(String(answer.body))
    expect((await workspace.bodyOf(id, 'request')).bytes).toEqual(multipartBody('MB7', parts))
  })
})

describe('any other request', () => {
  test.each<[string, string, CallOptions, number, string?]>([
    ['a document that exists', `create&${onZ1}&docId=D1&compId=data`, put('again'), 403],
    ['an unknown command', `steal&${onZ1}&docId=D1`, {}, 400],
    ['an unknown command with a body', `steal&${onZ1}&docId=D1`, put('x'), 400, 'refused'],
    ['a wrong method', `create&${onZ1}&docId=D1&compId=data`, { method: 'DELETE' }, 400],
    ['no query at all', '', {}, 400],
    ['a query that cannot be parsed', '%%%&=&&=?', {}, 400],
    ['an unknown repository', 'create&pVersion=0045&contRep=Z9&docId=D1&compId=data', put('for nobody'), 404],
    ['an unknown document', `update&${onZ1}&docId=NONE&compId=data`, put('for nobody'), 404],
    ['a NUL in a name', `get&pVersion=0045&contRep=%00&docId=%00`, {}, 400],
    ['a name that is too long', `get&pVersion=0045&contRep=Z1&docId=${'x'.repeat(9_000)}`, {}, 400],
    ['a body that is not multipart', `create&${onZ1}&docId=D1`, { method: 'POST', body: 'x' }, 400, 'refused'],
    ['a GET with a body', `info&${onZ1}&docId=D1`, { body: 'unasked' }, 200, 'unread'],
  ])('is captured with its head and its response: %s', async (_, ...[query, options, status, truncation]) => {
    const answer = await workspace.source.call(query, options)
    expect(answer.status).toBe(status)
    const captured = await workspace.captureOf(answer)
    const body = typeof options.body === 'string' ? options.body : ''
    expect(captured).toMatchObject({
      http_method: options.method ?? 'GET',
      query_string: query,
      status_code: status,
      request_body_truncated: truncation !== undefined,
      request_body_truncation_reason: truncation ?? null,
      request_content_length: body.length,
      response_body_truncated: false,
      document_ids: [],
    })
    expect(captured.response_headers).toMatchObject({ 'x-relay-request-id': captured.id })
    const requestBody = await workspace.bodyOf(captured.id, 'request')
    expect([requestBody.status, String(requestBody.bytes)]).toEqual(truncation ? [404, expect.any(String)] : [200, body])
    const responseBody = await workspace.bodyOf(captured.id, 'response')
    expect(responseBody.bytes.equals(answer.body)).toBe(true)
    if (status >= 400) expect(captured.response_body_preview).toBe(String(answer.body))
  })

  test('that reads a document is captured, with the bytes up to the size limit', async () => {
    await workspace.source.create('SMALL', 'x'.repeat(1_000))
    await workspace.source.create('LARGE', 'x'.repeat(1_001))
    const small = await workspace.captureOf(await workspace.source.get('SMALL'))
    expect(small).toMatchObject({ status_code: 200, response_content_length: 1_000, response_body_truncated: false })
    expect(String((await workspace.bodyOf(small.id, 'response')).bytes)).toBe('x'.repeat(1_000))
    const large = await workspace.captureOf(await workspace.source.get('LARGE'))
    expect(large).toMatchObject({ status_code: 200, response_content_length: 1_001, response_body_truncation_reason: 'too_large' })
    expect((await workspace.bodyOf(large.id, 'response')).status).toBe(404)
    const head = await workspace.captureOf(await workspace.source.head('SMALL'))
    expect(head).toMatchObject({ http_method: 'HEAD', response_content_length: 1_000, response_body_truncated: false })
    const bodyOfHead = await workspace.bodyOf(head.id, 'response')
    expect([bodyOfHead.status, bodyOfHead.bytes.length]).toEqual([200, 0])
  })

  test('is captured with its length but without its body above the size limit', async () => {
    const unrouted = await scene.workspace([])
    const over = () => Readable.from([Buffer.alloc(900), Buffer.alloc(101)])
    const accepted = await unrouted.captureOf(await unrouted.source.create('OVER', over()))
    expect(accepted).toMatchObject({ status_code: 201, request_content_length: 1_001, request_body_truncation_reason: 'too_large' })
    expect((await unrouted.bodyOf(accepted.id, 'request')).status).toBe(404)
    const stored = await workspace.captureOf(await workspace.source.create('OVER', over()))
    expect(stored).toMatchObject({ status_code: 201, request_content_length: 1_001, request_body_truncation_reason: null })
    expect((await workspace.bodyOf(stored.id, 'request')).bytes).toEqual(Buffer.alloc(1_001))
    const refused = await workspace.captureOf(await workspace.source.create('HUGE', randomBytes(100_001)))
    expect(refused).toMatchObject({ status_code: 400, request_content_length: 100_001, request_body_truncation_reason: 'refused' })
    const toNobody = `create&pVersion=0045&contRep=Z9&docId=D1&compId=data`
    const unknown = await workspace.captureOf(await workspace.source.call(toNobody, put('x'.repeat(1_001))))
    expect(unknown).toMatchObject({ status_code: 404, request_content_length: 1_001, request_body_truncation_reason: 'too_large' })
    expect(await scene.db('captured_bodies').where({ request_id: accepted.id })).toEqual([])
  })

  test('from an address that is not allowed is captured without its body', async () => {
    const strict = await scene.workspace(undefined, { workspaceSettings: { receiver_allowed_cidrs: ['192.0.2.0/24'] } })
    const captured = await strict.captureOf(await strict.source.create('D1', 'hello'))
    expect(captured).toMatchObject({ status_code: 403, request_content_length: 5, request_body_truncation_reason: 'refused' })
    expect((await strict.bodyOf(captured.id, 'request')).status).toBe(404)
  })

  test('is captured as 499 without its body if the client disconnects before the answer', async () => {
    const gone = await scene.workspace()
    const { send, socket } = await openSocket(scene.api.port)
    await send(`PUT ${gone.path}?create&${onZ1}&docId=GONE&compId=data HTTP/1.1\r\nHost: cs\r\nContent-Length: 10\r\n\r\nhalf`)
    socket.destroy()
    const [captured] = await gone.list(1)
    expect(captured.attributes).toMatchObject({
      status_code: 499,
      request_content_length: 10,
      request_body_truncated: true,
      request_body_truncation_reason: 'incomplete',
      response_content_length: 0,
      response_body_truncated: false,
    })
    expect((await gone.ask('POST', `/requests/${captured.id}/replay`)).status).toBe(409)
  })

  test('that can be replayed is answered after its body, because a client may stop sending when it is answered', async () => {
    await using patient = await startScene({ limits: { receiver: { lingerTimeoutMs: 60_000 } } })
    const refusing = await patient.workspace()
    const { send, received, socket } = await openSocket(patient.api.port)
    await send(
      `PUT ${refusing.path}?create&pVersion=0045&contRep=Z9&docId=D1&compId=data HTTP/1.1\r\nHost: cs\r\nContent-Length: 5\r\n\r\n`,
    )
    await delay(100)
    expect(received()).toBe('')
    await send('hello')
    await until('the refusal is received', received, (text) => text.startsWith('HTTP/1.1 404 '))
    socket.destroy()
    const [{ id }] = await refusing.list(1)
    expect((await refusing.bodyOf(id, 'request')).bytes.toString()).toBe('hello')
  })

  test('is captured and answered if its body never arrives', async () => {
    const idle = await scene.workspace()
    for (const connection of ['close', 'keep-alive']) {
      const { send, received, untilClosed } = await openSocket(scene.api.port)
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

  test('that failed is captured, and can be replayed, after a flood of refused requests', async () => {
    const small = await startScene({ variables: { CAPTURE_MEMORY_MAX_BYTES: String(1024 * 1024) } })
    try {
      const flooded = await small.workspace()
      const headers = { 'x-long': 'x'.repeat(10_000) }
      const lost = async () =>
        (await small.api.captures.metrics[0]!.get()).values.find(({ labels }) => labels['reason'] === 'budget')?.value
      await until('the budget is spent', async () => {
        await flooded.source.call(`get&${onZ1}&docId=NONE`, { headers })
        return (await lost()) !== 0
      })
      await small.db.raw(`
        create function fail() returns trigger language plpgsql as $$ begin raise 'out of memory' using errcode = '53200'; end $$;
        create trigger fail before insert on documents for each row execute function fail();
      `)
      const failed = await flooded.source.create('D1', 'hello')
      expect(failed.status).toBe(503)
      const { id } = await flooded.captureOf(failed)
      await small.db.raw('drop trigger fail on documents')
      expect((await flooded.ask('POST', `/requests/${id}/replay`)).status).toBe(202)
      expect(String((await flooded.source.get('D1')).body)).toBe('hello')
    } finally {
      await small.stop()
    }
  })

  test('to an unknown workspace is only counted', async () => {
    const answer = await fetch(`${scene.api.baseUrl}/receiver/acme/nowhere?get&${onZ1}&docId=D1`)
    expect(answer.status).toBe(404)
    const [lost] = scene.api.captures.metrics
    const lostRequests = async () => (await lost!.get()).values.find(({ labels }) => labels['reason'] === 'no_workspace')?.value
    await until('the request is counted', async () => (await lostRequests()) === 1)
    expect(await scene.db('captured_requests').where({ id: answer.headers.get('x-relay-request-id') })).toEqual([])
  })
})

test('the list is live while a hundred requests per second are captured', async () => {
  const busy = await scene.workspace()
  const answered: string[] = []
  const sending: Promise<unknown>[] = []
  const shown = new AbortController()
  const read = async () => void answered.push((await busy.source.info('NOWHERE')).headers['x-relay-request-id']!)
  const send = async () => {
    const began = Date.now()
    for (let number = 0; !shown.signal.aborted; number += 1) {
      // Captured in the transaction of a document, and after the answer.
      sending.push(number % 2 === 0 ? busy.source.create(`D${number}`, 'hello') : read())
      await delay(Math.max(began + number * 10 - Date.now(), 0))
    }
    await Promise.all(sending)
  }
  const newest = async () => (await busy.ask('GET', '/requests?per_page=1&status_class=4xx')).json.data[0]?.id ?? ''
  // The requests go on until the list has shown those of five moments.
  const follow = async () => {
    for (let moment = 0; moment < 5; moment += 1) {
      const before = answered.length
      await until('another request is answered', () => answered.length > before)
      const latest = answered.toSorted().at(-1)!
      await until('the list shows it', newest, (id) => id >= latest)
    }
    shown.abort()
  }
  await Promise.all([follow().finally(() => shown.abort()), send()])
  const captured = async () => (await scene.db('captured_requests').where({ workspace_id: busy.workspaceId })).length
  await until('all requests are captured', async () => (await captured()) >= sending.length)
  expect(await captured()).toBe(sending.length)
})

describe('a secret', () => {
  const canary = 'canary-3f9c'
  // Part of documents that are stored.
  const storedCanary = 'canary-stored-27b0'
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

  test('in a header or a JSON body is in no row, log line or answer, for any outcome of the request', async () => {
    const unrouted = await scene.workspace([])
    const { source } = unrouted
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
    const captured = await Promise.all(answers.map((answer) => unrouted.captureOf(answer)))
    expect(captured.map(({ request_body_truncated }) => request_body_truncated)).toEqual([false, false, true, false])
    for (const { id, request_headers: requestHeaders } of captured) {
      for (const name of Object.keys(headers)) {
        if (name === 'content-type') continue
        expect([name, requestHeaders[name.toLowerCase()]]).toEqual([name, '[REDACTED]'])
      }
      expect((await unrouted.bodyOf(id, 'request')).bytes.includes(canary)).toBe(false)
    }
    expect(JSON.parse(captured[0]!.request_body_preview)).toEqual({
      user: 'u',
      password: '[REDACTED]',
      deep: [{ Api_Key: '[REDACTED]', nested: JSON.stringify({ inner: { refreshToken: '[REDACTED]' } }) }],
      client_secret: '[REDACTED]',
    })
    expect(JSON.stringify(captured)).not.toContain(canary)

    expect(await tablesWith(scene.db, canary)).toEqual([])
    expect(scene.api.log.join('')).not.toContain(canary)
  })

  test('in a JSON document that is read is redacted in the capture, but not in the answer', async () => {
    const stored = body.replaceAll(canary, storedCanary)
    await workspace.source.create('JSON', stored, { headers: { 'content-type': 'application/json' } })
    const answer = await workspace.source.get('JSON')
    expect(String(answer.body)).toBe(stored)
    const captured = await workspace.captureOf(answer)
    expect(captured.response_body_preview).toContain('[REDACTED]')
    expect(captured.response_body_preview).not.toContain(storedCanary)
  })

  test('in the query string is redacted for every key, and is in no row or log line', async () => {
    const urlCanary = 'canary-url-81d2'
    const before = `get&${onZ1}&docId=NONE&accessMode=r&authId=A&expiration=20261121090000`
    const answer = await workspace.source.call(`${before}&secKey=${urlCanary}&access_token=${urlCanary}`, {
      headers: { referer: `https://erp.example/?secKey=${urlCanary}` },
    })
    const { id, query_string: queryString } = await workspace.captureOf(answer)
    expect(queryString).toBe(`${before}&secKey=[REDACTED]&access_token=[REDACTED]`)
    for (const level of ['viewer', 'member', 'admin'] as const) {
      for (const path of [`/requests/${id}`, '/requests?per_page=100&doc_id=NONE']) {
        const { status, json } = await workspace.ask('GET', path, workspace.keys[level])
        expect([level, status, JSON.stringify(json).includes(urlCanary)]).toEqual([level, 200, false])
        expect(JSON.stringify(json)).toContain('secKey=[REDACTED]')
      }
    }
    const first = await workspace.captureOf(await workspace.source.call(`secKey=${urlCanary}`))
    expect(first.query_string).toBe('secKey=[REDACTED]')
    expect(await tablesWith(scene.db, urlCanary)).toEqual([])
    expect(scene.api.log.join('')).not.toContain(urlCanary)
  })

  test('in a form or in XML is in no row', async () => {
    const bodies = [
      ['application/x-www-form-urlencoded', `user=u&password=${storedCanary}`, 'user=u&password=[REDACTED]'],
      ['text/xml', `<login><pwd>${storedCanary}</pwd></login>`, '<login><pwd>[REDACTED]</pwd></login>'],
    ]
    for (const [contentType, text, safe] of bodies) {
      const answer = await workspace.source.create(`SAFE-${contentType!.length}`, text!, { headers: { 'content-type': contentType! } })
      const { bytes } = await workspace.bodyOf(answer.headers['x-relay-request-id']!, 'request')
      expect(String(bytes)).toBe(safe)
    }
  })
})

test('the duration and the time of the response include the commit', async () => {
  const slow = await scene.workspace()
  const commitMs = 300
  await scene.db.raw(`
    create function commit_slowly() returns trigger language plpgsql as $$ begin perform pg_sleep(${commitMs / 1_000}); return null; end $$;
    create constraint trigger commit_slowly after insert on documents deferrable initially deferred
    for each row when (new.workspace_id = '${slow.workspaceId}') execute function commit_slowly();
  `)
  const answer = await slow.source.create('D1', 'hello')
  const attributes = await until(
    'the duration is complete',
    () => slow.captureOf(answer),
    ({ duration_ms: duration }) => duration >= commitMs,
  )
  expect(Date.parse(attributes.response_at) - Date.parse(attributes.request_at)).toBe(attributes.duration_ms)
  await scene.db.raw('drop trigger commit_slowly on documents')
})

describe('a document and its request', () => {
  const documentsOf = async () => (await workspace.ask('GET', '/documents?per_page=100')).json.data

  test('name each other, and the list of requests is filtered by the document', async () => {
    const parts = ['L1', 'L2'].map((docId) => ({ headers: { 'X-docId': docId, 'X-compId': 'data' }, body: 'y' }))
    const answers = [await workspace.source.mCreate('L1', parts), await workspace.source.update('L1', 'two')]
    for (const [index, answer] of answers.entries()) {
      const requestId = answer.headers['x-relay-request-id']!
      const own = (await documentsOf()).filter(
        ({ attributes }: { attributes: { request_id: string } }) => attributes.request_id === requestId,
      )
      const ids = own.map(({ id }: { id: string }) => id).toSorted()
      expect(ids).toHaveLength(2 - index)
      expect((await workspace.captureOf(answer)).document_ids).toEqual(ids)
      for (const id of ids) {
        const { json } = await workspace.ask('GET', `/requests?document_id=${id}`)
        expect(json.data).toMatchObject([{ id: requestId, attributes: { document_ids: ids } }])
        expect((await workspace.ask('GET', `/documents/${id}`)).json.data.attributes.request_id).toBe(requestId)
      }
    }
    const other = await scene.workspace()
    const [{ id }] = await documentsOf()
    expect((await other.ask('GET', `/requests?document_id=${id}`)).json.data).toEqual([])
  })
})
