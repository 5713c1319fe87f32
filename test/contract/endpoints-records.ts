import { until } from '../support/until.ts'
import { text, type Json, type Row } from './world.ts'

// Sections 4.5 to 4.7 of the specification: endpoints of documents, captured requests and the audit log.

const documents: Row[] = [
  [
    '4.5 GET /documents filters by repo_id, the repository identifier of the source',
    async ({ acme, specimen }) => {
      const { json } = await acme.call('GET', `/documents?repo_id=${specimen.repoId}&per_page=100`)
      expect(new Set(json.data.map(({ attributes }: Json) => attributes.repo_id))).toEqual(new Set([specimen.repoId]))
      expect((await acme.call('GET', '/documents?repo_id=NOWHERE')).json).toMatchObject({ data: [], meta: { total: 0 } })
    },
  ],
  [
    '4.5 GET /documents filters by date_from and date_to, both inclusive on received_at',
    async ({ acme, specimen }) => {
      const { received_at: at } = await acme.attributesOf(`/documents/${specimen.documentId}`)
      const idsMatching = (query: string) => acme.idsOf(`/documents?repo_id=${specimen.repoId}&per_page=100&${query}`)
      const shifted = (ms: number) => new Date(Date.parse(at) + ms).toISOString()
      expect(await idsMatching(`date_from=${at}&date_to=${at}`)).toContain(specimen.documentId)
      expect(await idsMatching(`date_from=${shifted(1)}`)).not.toContain(specimen.documentId)
      expect(await idsMatching(`date_to=${shifted(-1)}`)).not.toContain(specimen.documentId)
      expect(await idsMatching(`date_from=${at.slice(0, 10)}&date_to=${at.slice(0, 10)}`)).toContain(specimen.documentId)
      expect(await idsMatching('date_from=2999-01-01T00:00:00Z')).toEqual([])
    },
  ],
  [
    '4.5 GET /documents combines its filters and refuses unknown filters',
    async ({ acme, specimen }) => {
      const path = `/documents?repo_id=${specimen.repoId}&status=delivered&date_from=2020-01-01&date_to=2999-01-01`
      expect(await acme.idsOf(`${path}&per_page=100`)).toContain(specimen.documentId)
      expect(await acme.idsOf(path.replace('delivered', 'failed'))).toEqual([])
      for (const query of ['status=lost', 'status=held', 'status=', 'date_from=soon', 'docId=D1', 'date_from=2026-13-01']) {
        expect(await acme.statusOf('GET', `/documents?${query}`)).toBe(400)
      }
    },
  ],
  [
    '4.5 GET /documents is newest first',
    async ({ acme }) => {
      const { json } = await acme.call('GET', '/documents?per_page=100')
      const times: string[] = json.data.map(({ attributes }: Json) => attributes.received_at)
      expect(times).toEqual(times.toSorted().toReversed())
    },
  ],
  [
    '4.5 GET /documents/:id is one document with metadata and delivery path',
    async ({ acme, specimen }) => {
      const { status, json } = await acme.call('GET', `/documents/${specimen.documentId}`)
      expect({ status, attributes: json.data.attributes }).toMatchObject({
        status: 200,
        attributes: { metadata: expect.any(Object), deliveries: [{ path: text }] },
      })
    },
  ],
  [
    '4.5 POST /documents/:id/retry requires Member or Admin',
    async ({ acme }) => {
      const { repoId } = await acme.wire(['refusing'])
      const path = `/documents/${await acme.sendDocument(repoId, 'failed')}/retry`
      expect(await acme.statusOf('POST', path, undefined, acme.keys.viewer)).toBe(403)
      expect(await acme.statusOf('POST', path, undefined, acme.keys.admin)).toBe(200)
    },
  ],
  [
    '4.5 only a document that has failed at a destination can be retried',
    async ({ acme, specimen }) => {
      const { repoId } = await acme.wire(['down'])
      const { repoId: unrouted } = await acme.wire([])
      for (const id of [specimen.documentId, await acme.sendDocument(repoId, 'retrying'), await acme.sendDocument(unrouted, 'discarded')]) {
        const { status, json } = await acme.call('POST', `/documents/${id}/retry`)
        expect({ status, code: json.error.code }).toEqual({ status: 409, code: 'nothing_to_retry' })
      }
    },
  ],
]

const findsRequest = ([query, found]: readonly [query: string, found: boolean]): Row => [
  `4.6 GET /requests?${query} ${found ? 'finds' : 'does not find'} a PUT that was answered with 404`,
  async ({ acme }) => {
    const sent = await acme.sendCreate('NOWHERE', 'FILTERED')
    await acme.capturedRequest(sent)
    const ids = await acme.idsOf(`/requests?repo_id=NOWHERE&doc_id=FILTERED&per_page=100&${query}`)
    expect(ids.includes(sent.requestId)).toBe(found)
  },
]

const requests: Row[] = [
  [
    '4.6 GET /requests filters by channel',
    async ({ acme, specimen }) => {
      await acme.capturedRequest({ requestId: specimen.bridgeRequestId })
      expect(await acme.idsOf('/requests?channel=bridge')).toContain(specimen.bridgeRequestId)
      expect(await acme.idsOf('/requests?channel=bridge')).not.toContain(specimen.requestId)
      expect(await acme.idsOf(`/requests?channel=receiver&doc_id=CAPTURED`)).toContain(specimen.requestId)
      expect(await acme.statusOf('GET', '/requests?channel=fax')).toBe(400)
    },
  ],
  ...(
    [
      ['status_code=404', true],
      ['status_code=200', false],
      ['status_class=4xx', true],
      ['status_class=2xx', false],
      ['status_class=3xx', false],
      ['status_class=5xx', false],
      ['method=PUT', true],
      ['method=DELETE', false],
      ['status_class=4xx&method=PUT&channel=receiver&status_code=404', true],
      ['status_class=5xx&method=PUT', false],
      ['date_from=2020-01-01', true],
      ['date_from=2999-01-01', false],
      ['date_to=2999-01-01', true],
      ['date_to=2020-01-01', false],
    ] as const
  ).map(findsRequest),
  [
    '4.6 GET /requests filters by repo_id (contRep in the URI) and doc_id (docId in the URI)',
    async ({ acme, specimen }) => {
      expect(await acme.idsOf(`/requests?repo_id=${specimen.repoId}&doc_id=CAPTURED`)).toEqual([specimen.requestId])
      expect(await acme.idsOf(`/requests?repo_id=${specimen.repoId.toLowerCase()}`)).toEqual([])
      expect(await acme.idsOf('/requests?doc_id=captured')).toEqual([])
    },
  ],
  [
    '4.6 date_from and date_to are inclusive on request_at',
    async ({ acme, specimen }) => {
      const { request_at: at } = await acme.attributesOf(`/requests/${specimen.requestId}`)
      expect(await acme.idsOf(`/requests?doc_id=CAPTURED&date_from=${at}&date_to=${at}`)).toEqual([specimen.requestId])
      const after = new Date(Date.parse(at) + 1).toISOString()
      expect(await acme.idsOf(`/requests?doc_id=CAPTURED&date_from=${after}`)).toEqual([])
    },
  ],
  [
    '4.6 an unknown value or key of the query is 400',
    async ({ acme }) => {
      for (const query of ['status_class=1xx', 'status_class=4', 'status_code=abc', 'date_from=soon', 'colour=red']) {
        expect(await acme.statusOf('GET', `/requests?${query}`)).toBe(400)
      }
    },
  ],
  [
    '4.6 GET /requests/:id has headers and body previews',
    async ({ acme, specimen }) => {
      const { status, json } = await acme.call('GET', `/requests/${specimen.requestId}`)
      expect({ status, attributes: json.data.attributes }).toMatchObject({
        status: 200,
        attributes: { request_headers: expect.any(Object), response_headers: expect.any(Object), request_body_preview: '<invoice/>' },
      })
    },
  ],
  [
    '4.6 GET /requests/:id/body/request returns the raw bytes with their Content-Type, as an attachment',
    async ({ acme, specimen }) => {
      const { status, text: body, headers } = await acme.call('GET', `/requests/${specimen.requestId}/body/request`)
      expect({ status, body, type: headers.get('content-type'), disposition: headers.get('content-disposition') }).toEqual({
        status: 200,
        body: '<invoice/>',
        type: 'text/xml',
        disposition: expect.stringMatching(/^attachment/),
      })
    },
  ],
  [
    '4.6 GET /requests/:id/body/response does the same, and any other kind is 404',
    async ({ acme }) => {
      const sent = await acme.send('GET', 'serverInfo')
      await acme.capturedRequest(sent)
      const { status, text: body, headers } = await acme.call('GET', `/requests/${sent.requestId}/body/response`)
      expect({ status, body, type: headers.get('content-type') }).toEqual({
        status: 200,
        body: sent.text,
        type: sent.headers.get('content-type'),
      })
      expect(await acme.statusOf('GET', `/requests/${sent.requestId}/body/both`)).toBe(404)
    },
  ],
  [
    '4.6 GET /requests/:id/body/:kind is 404 when the body was truncated at capture time',
    async ({ acme, specimen }) => {
      const sent = await acme.sendCreate(specimen.repoId, 'TRUNCATED', 'x'.repeat(100_001), 'text/xml')
      expect(await acme.capturedRequest(sent)).toMatchObject({ request_body_truncated: true })
      expect(await acme.statusOf('GET', `/requests/${sent.requestId}/body/request`)).toBe(404)
    },
  ],
  [
    '4.6 POST /requests/:id/replay answers 202 with both ids, and requires Admin',
    async ({ acme, specimen }) => {
      const path = `/requests/${specimen.requestId}/replay`
      for (const key of [acme.keys.viewer, acme.keys.member]) expect(await acme.statusOf('POST', path, undefined, key)).toBe(403)
      const { status, json } = await acme.call('POST', path)
      expect({ status, json }).toEqual({
        status: 202,
        json: { data: { replay_of: specimen.requestId, new_request_id: text } },
      })
      expect(await acme.capturedRequest({ requestId: json.data.new_request_id })).toMatchObject({ replay_of: specimen.requestId })
    },
  ],
  [
    '4.6 replay re-sends the request through the same processing path',
    async ({ acme }) => {
      const { id, repoId } = await acme.repository()
      const sent = await acme.sendCreate(repoId, 'AGAIN')
      const { document_ids: discarded } = await acme.capturedRequest(sent)
      expect((await acme.attributesOf(`/documents/${discarded[0]}`)).status).toBe('discarded')
      await acme.connect([id], [await acme.destination()])
      await acme.call('POST', `/requests/${sent.requestId}/replay`)
      const { json } = await until(
        'the document that the replay created',
        () => acme.call('GET', `/documents?repo_id=${repoId}`),
        (answer) => answer.json.data[0]?.attributes.status === 'delivered',
      )
      expect(json.data[0].attributes.doc_id).toBe('AGAIN')
    },
  ],
  [
    '4.6 only requests with channel receiver can be replayed',
    async ({ acme, specimen }) => {
      await acme.capturedRequest({ requestId: specimen.bridgeRequestId })
      const { status, json } = await acme.call('POST', `/requests/${specimen.bridgeRequestId}/replay`)
      expect({ status, code: json.error.code }).toEqual({ status: 409, code: 'conflict' })
    },
  ],
]

const csvHeader = 'created_at,event,subject_type,subject_id,description,user_id,actor_type,metadata'

const findsEntry = ([query, found]: readonly [query: string, found: boolean]): Row => [
  `4.7 GET /audit-logs?${query} ${found ? 'finds' : 'does not find'} the creation of a repository, in the list and in the CSV export`,
  async ({ acme, specimen }) => {
    const whole = `subject_id=${specimen.repositoryId}&${query}`
    const { json } = await acme.call('GET', `/audit-logs?${whole}`)
    expect(json.data.map(({ attributes }: Json) => attributes.event)).toEqual(found ? ['repository.created'] : [])
    const { text: csv } = await acme.call('GET', `/audit-logs.csv?${whole}`)
    expect(csv.trimEnd().split('\r\n')).toHaveLength(found ? 2 : 1)
  },
]

const auditLogs: Row[] = [
  ...(
    [
      ['event=repository.created', true],
      ['event=repository.updated', false],
      ['event_prefix=repository.', true],
      ['event_prefix=cert.', false],
      ['subject_type=Repository', true],
      ['subject_type=Connection', false],
      ['user_id=nobody', false],
      ['date_from=2020-01-01', true],
      ['date_from=2999-01-01', false],
      ['date_to=2999-01-01', true],
      ['date_to=2020-01-01', false],
      ['event=repository.created&event_prefix=repo&subject_type=Repository&date_from=2020-01-01', true],
      ['event=repository.created&event_prefix=cert.', false],
    ] as const
  ).map(findsEntry),
  [
    '4.7 GET /audit-logs refuses unknown values and parameters',
    async ({ acme }) => {
      for (const query of ['event=repository.lost', 'subject_type=Fax', 'date_to=soon', 'colour=red']) {
        expect(await acme.statusOf('GET', `/audit-logs?${query}`)).toBe(400)
        expect(await acme.statusOf('GET', `/audit-logs.csv?${query}`)).toBe(400)
      }
    },
  ],
  [
    '4.7 GET /audit-logs.csv is a CSV stream with its columns in order',
    async ({ acme, specimen }) => {
      const { status, text: csv, headers } = await acme.call('GET', `/audit-logs.csv?subject_id=${specimen.repositoryId}`)
      expect({ status, type: headers.get('content-type') }).toEqual({ status: 200, type: expect.stringMatching(/^text\/csv/) })
      const [header, line] = csv.split('\r\n')
      expect(header).toBe(csvHeader)
      expect(line).toMatch(new RegExp(`^\\d{4}-\\d\\d-.*Z,repository\\.created,Repository,${specimen.repositoryId},.*,,api_key,"\\{`))
    },
  ],
  [
    '4.7 GET /audit-logs.csv has at most 100,000 rows',
    async ({ db, tenant }) => {
      const full = await tenant('acme/full')
      await db.raw(
        `insert into audit_logs (id, workspace_id, event, subject_type, subject_id, description, metadata, actor_type)
        select substr(max_id, 1, 10) || lpad(n::text, 16, '0'), ?, 'rfc.call', 'RfcCall', 'S', 'x', '{}', 'system'
        from (select max(id) as max_id from audit_logs) as newest, generate_series(1, 100001) as n`,
        [full.id],
      )
      // As autovacuum does a minute later. Without it, each of the 500 pages of the export takes 25 ms.
      await db.raw('analyze audit_logs')
      const { text: csv } = await full.call('GET', '/audit-logs.csv')
      expect(csv.trimEnd().split('\r\n')).toHaveLength(1 + 100_000)
    },
  ],
]

export const recordRows: Row[] = [...documents, ...requests, ...auditLogs]
