import { idPrefixAt } from '../../src/base/ids.ts'
import { upsertCaptures, type Capture } from '../../src/capture/capture.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const { database, api, acme } = share(await startScene())
const other = await api.tenant('acme/test')
const listed = await api.tenant('acme/listed')

const firstRequestMs = Date.parse('2026-11-21T09:00:00Z')
let captureCount = 0

/** Returns a captured request. Each call is one second later, starting at 09:00:00. */
const captureOf = (changes: Partial<Capture> = {}): Capture => {
  const requestAt = new Date(firstRequestMs + captureCount * 1_000)
  captureCount += 1
  return {
    id: `${idPrefixAt(requestAt)}${String(captureCount).padStart(16, '0')}`,
    channel: 'receiver',
    userSlug: 'acme',
    workspaceSlug: 'prod',
    httpMethod: 'PUT',
    uri: '/receiver/acme/prod',
    queryString: 'create&contRep=Z1&docId=D1',
    querySealed: null,
    repoId: 'Z1',
    docId: 'D1',
    requestHeaders: { 'content-type': 'text/plain' },
    requestContentType: 'text/plain',
    requestContentLength: 5,
    requestBodyTruncationReason: null,
    requestBody: { data: Buffer.from('hello'), redacted: false, pieces: null },
    sourceIp: '192.0.2.7',
    requestAt,
    statusCode: 201,
    errorCode: null,
    responseHeaders: {},
    responseContentType: null,
    responseContentLength: 0,
    responseBodyTruncationReason: null,
    responseBody: null,
    durationMs: 12,
    responseAt: new Date(requestAt.getTime() + 12),
    replayOf: null,
    ...changes,
  }
}

const insert = async (changes: Partial<Capture>[]): Promise<string[]> => {
  const captures = changes.map(captureOf)
  await ensurePartitions(database.db, new Date(firstRequestMs))
  expect((await upsertCaptures(database.db, captures)).toSorted()).toEqual(captures.map(({ id }) => id))
  return captures.map(({ id }) => id)
}

const idsOf = async (query: string, tenant = listed): Promise<string[]> => {
  const { status, json } = await tenant.call('GET', `/requests?${query}`)
  expect(status).toBe(200)
  return json.data.map(({ id }: { id: string }) => id)
}

// The first that are inserted: the list is asked for their times.
const ids = await insert(
  [
    {},
    { statusCode: 250, docId: 'D2' },
    { statusCode: 404, repoId: 'Z9', httpMethod: 'GET' },
    { statusCode: 401, errorCode: 'signature_invalid', httpMethod: 'GET', docId: null },
    { statusCode: 503, channel: 'bridge' as const, repoId: null, docId: null, httpMethod: 'POST' },
    { workspaceSlug: 'test' },
  ].map((changes) => ({ workspaceSlug: 'listed', ...changes })),
)

describe('the list of captured requests', () => {
  const nth = (...numbers: number[]) => numbers.map((number) => ids[number])

  test('is ordered newest first, contains only this workspace, and omits headers and previews', async () => {
    expect(await idsOf('')).toEqual(nth(4, 3, 2, 1, 0))
    expect(await idsOf('', other)).toEqual(nth(5))
    const { json } = await listed.call('GET', `/requests?per_page=1&status_code=201`)
    expect(json).toEqual({
      data: [
        {
          id: ids[0],
          type: 'captured_request',
          attributes: {
            channel: 'receiver',
            workspace_id: listed.id,
            http_method: 'PUT',
            uri: '/receiver/acme/prod',
            query_string: 'create&contRep=Z1&docId=D1',
            request_content_type: 'text/plain',
            request_content_length: 5,
            request_body_truncated: false,
            request_body_truncation_reason: null,
            source_ip: '192.0.2.7',
            request_at: '2026-11-21T09:00:00.000Z',
            status_code: 201,
            error_code: null,
            response_content_type: '',
            response_content_length: 0,
            response_body_truncated: false,
            response_body_truncation_reason: null,
            duration_ms: 12,
            response_at: '2026-11-21T09:00:00.012Z',
            created_at: expect.any(String),
            document_ids: [],
          },
        },
      ],
      meta: { per_page: 1, next_cursor: null },
    })
  })

  test.each<[string, number[]]>([
    ['channel=bridge', [4]],
    ['channel=receiver', [3, 2, 1, 0]],
    ['status_code=404', [2]],
    ['error_code=signature_invalid', [3]],
    ['error_code=url_expired', []],
    ['status_class=2xx', [1, 0]],
    ['status_class=3xx', []],
    ['status_class=4xx', [3, 2]],
    ['status_class=5xx', [4]],
    ['method=GET', [3, 2]],
    ['method=get', [3, 2]],
    ['method=DELETE', []],
    ['repo_id=Z1', [3, 1, 0]],
    ['repo_id=z1', []],
    ['doc_id=D2', [1]],
    ['date_from=2026-11-21T09:00:02Z', [4, 3, 2]],
    ['date_to=2026-11-21T09:00:02Z', [2, 1, 0]],
    ['date_from=2026-11-21T10:00:01%2B01:00&date_to=2026-11-21T09:00:01.000Z', [1]],
    ['date_from=2026-11-22', []],
    ['date_to=2026-11-21', [4, 3, 2, 1, 0]],
    ['status_class=4xx&method=GET&repo_id=Z1', [3]],
    ['status_class=4xx&status_code=201', []],
    ['after=00000000000000000000000000', [0, 1, 2, 3, 4]],
    ['after=00000000000000000000000000&status_class=4xx&method=GET', [2, 3]],
    ['after=00000000000000000000000000&date_to=2026-11-21T09:00:01Z', [0, 1]],
  ])('finds the matching requests for %s', async (query, numbers) => {
    expect(await idsOf(query)).toEqual(nth(...numbers))
  })

  test('continues before the last id of the previous page until no rows remain', async () => {
    const first = await listed.call('GET', '/requests?per_page=2&status_class=4xx')
    expect(first.json.meta).toEqual({ per_page: 2, next_cursor: null })
    const page = await listed.call('GET', '/requests?per_page=2')
    expect(page.json.meta).toEqual({ per_page: 2, next_cursor: ids[3] })
    expect(await idsOf(`per_page=100&before=${ids[3]}`)).toEqual(nth(2, 1, 0))
  })
})

describe('a single captured request', () => {
  const small = (text: string | Buffer, contentType: string | null): Partial<Capture> => ({
    requestContentType: contentType,
    requestBody: { data: Buffer.from(text), redacted: false, pieces: null },
  })
  const previewOf = async (changes: Partial<Capture>) => {
    const [id] = await insert([changes])
    const { json } = await acme.call('GET', `/requests/${id}`)
    return json.data.attributes.request_body_preview
  }

  test.each(['text/html', 'TEXT/HTML; charset=utf-8', 'application/json', 'application/xml', 'text/xml', 'application/problem+json'])(
    'has a preview of a small body of type %s',
    async (contentType) => {
      expect(await previewOf(small('<ä>', contentType))).toBe('<ä>')
    },
  )

  test.each([
    ['the charset of the content type', Buffer.from('<p>ä</p>', 'latin1'), 'text/html; charset=ISO-8859-1', '<p>ä</p>'],
    ['a quoted charset', Buffer.from('{"a":"ä"}', 'latin1'), 'application/json;Charset="iso-8859-1"', '{"a":"ä"}'],
    [
      'the charset and not the XML declaration',
      Buffer.from('<?xml version="1.0" encoding="ISO-8859-1"?><a>ä</a>'),
      'text/xml; charset=utf-8',
    ],
    ['the XML declaration', Buffer.from('<?xml version="1.0" encoding="windows-1251"?><a>\xe4</a>', 'latin1'), 'text/xml', 'д</a>'],
    ['its byte order mark', Buffer.from('\uFEFF<a>ä</a>', 'utf16le'), 'text/xml', '<a>ä</a>'],
    ['ISO-8859-1 if it is not UTF-8', Buffer.from('<p>ä</p>', 'latin1'), 'text/html', '<p>ä</p>'],
    ['UTF-8 if the charset does not exist', Buffer.from('<p>ä</p>'), 'text/html; charset=nonsense', '<p>ä</p>'],
    ['UTF-8 if the XML declaration is not true', Buffer.from('<?xml version="1.0" encoding="UTF-16"?><a>ä</a>'), 'text/xml', '<a>ä</a>'],
  ])('decodes a preview by %s', async (_, bytes, contentType, expected = '<a>ä</a>') => {
    const preview = await previewOf(small(bytes, contentType))
    expect(preview.slice(-expected.length)).toBe(expected)
  })

  test.each(['text/plain', 'application/pdf', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', null])(
    'has no preview of a body of type %s',
    async (contentType) => {
      expect(await previewOf(small('<a>', contentType))).toBeNull()
    },
  )
})

describe('a captured body', () => {
  test('is downloaded unchanged with its own content type, as an attachment, with nosniff', async () => {
    const data = Buffer.from([0, 1, 255, 60])
    const [id] = await insert([{ requestContentType: 'image/tiff', requestBody: { data, redacted: false, pieces: null } }])
    const headers = { authorization: `Bearer ${acme.keys.viewer}` }
    const response = await fetch(`${api.baseUrl}${acme.path}/requests/${id}/body/request`, { headers })
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'image/tiff',
      'content-length': '4',
      'content-disposition': `attachment; filename="${id}-request"`,
      'x-content-type-options': 'nosniff',
    })
    expect(Buffer.from(await response.arrayBuffer())).toEqual(data)
  })

  test('that is empty is downloaded with 0 bytes', async () => {
    const [id] = await insert([{ requestContentLength: 0, requestBody: null }])
    const [head] = await insert([{ httpMethod: 'HEAD', responseContentLength: 1_000, responseContentType: 'text/plain' }])
    for (const path of [`${id}/body/request`, `${id}/body/response`, `${head}/body/response`]) {
      const headers = { authorization: `Bearer ${acme.keys.viewer}` }
      const response = await fetch(`${api.baseUrl}${acme.path}/requests/${path}`, { headers })
      expect([path, response.status, response.headers.get('content-length'), await response.text()]).toEqual([path, 200, '0', ''])
    }
  })
})
