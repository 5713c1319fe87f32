import { attributesAt, firstOf, itemAt, listed, single } from './specimens.ts'
import { count, fields, text, time, ulid, type Json, type Row, type World } from './world.ts'

// Sections 2.4 to 2.6 of the specification: resources and their fields.

const delivery = {
  destination_id: ulid,
  destination_name: 'To accepting',
  status: 'delivered',
  delivered_at: time,
  attempts: 1,
  // Not part of the specification.
  status_since: time,
  next_attempt_at: null,
  waiting_for: null,
  last_error: null,
  ended_by: null,
}
const document = {
  doc_id: 'SPECIMEN',
  repo_id: text,
  comp_id: 'data',
  content_type: 'application/pdf',
  size_bytes: 5,
  status: 'delivered',
  // Not part of the specification.
  origin: 'source',
  content_retained: true,
  acknowledged_at: null,
  received_at: time,
  // Not part of the specification.
  repository_name: text,
  legal_hold: false,
  file_name: null,
  description: null,
  superseded_at: null,
  request_id: ulid,
  deliveries: [delivery],
}
// Not part of the specification.
const receipt = expect.objectContaining({
  sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  target: expect.objectContaining({ status: 200 }),
})
const metadata = { erp_object_type: null, erp_object_id: null, ar_object: null }
const singleDocument = {
  ...document,
  metadata,
  deliveries: [{ ...delivery, path: expect.stringMatching(/^[^/]+\/SPECIMEN\/data$/), receipt, late_data: null }],
  // Not part of the specification.
  fields: {},
  enrichments: [],
  legal_holds: [],
}

const documents: Row[] = [
  ...fields('2.4 a document in a list', document, listed.document),
  ...fields('2.4 a single document', singleDocument, attributesAt(single.document)),
  ...fields('2.4 a delivery in a list', delivery, async (world) => (await listed.document(world)).deliveries[0]),
  ...fields('2.4 a delivery of a single document', { ...delivery, path: text, receipt, late_data: null }, async (world) => {
    const { deliveries } = await world.acme.attributesOf(single.document(world))
    return deliveries[0]
  }),
  [
    '2.4 metadata has strings once they are known',
    async ({ acme, specimen }) => {
      await acme.sendDocument(specimen.repoId, 'delivered', 'ABOUT')
      const known = { erp_object_type: 'BKPF', erp_object_id: '1000-4711', ar_object: 'ZINVOICE' }
      await acme.call('PUT', `/documents/by-doc-id/${specimen.repoId}/ABOUT/metadata`, known)
      const { json } = await acme.call('GET', `/documents?repo_id=${specimen.repoId}`)
      const { id } = json.data.find(({ attributes }: Json) => attributes.doc_id === 'ABOUT')
      expect((await acme.attributesOf(`/documents/${id}`)).metadata).toEqual(known)
    },
  ],
  [
    '2.4 delivered_at is null when not yet delivered',
    async ({ acme }) => {
      const { repoId } = await acme.wire(['down'])
      const { deliveries } = await acme.untilStatus(await acme.sendDocument(repoId, 'retrying'), 'retrying')
      expect(deliveries[0]).toMatchObject({ status: 'retrying', delivered_at: null, attempts: count })
    },
  ],
  [
    '2.4 the retry response is without comp_id, content_type, size_bytes',
    async ({ acme }) => {
      const { repoId } = await acme.wire(['refusing'])
      const { json } = await acme.call('POST', `/documents/${await acme.sendDocument(repoId, 'failed')}/retry`)
      expect(json).toEqual({
        data: {
          id: ulid,
          type: 'document',
          attributes: { doc_id: text, repo_id: repoId, status: 'retrying', received_at: time, deliveries: [expect.any(Object)] },
        },
      })
    },
  ],
]

const headers = expect.objectContaining({ 'content-type': expect.any(String) })
const listedRequest = {
  channel: 'receiver',
  workspace_id: ulid,
  http_method: 'PUT',
  uri: '/receiver/acme/invoices',
  query_string: expect.stringMatching(/^create&pVersion=0045&contRep=R\w+&docId=CAPTURED&compId=data$/),
  request_content_type: 'text/xml',
  request_content_length: 10,
  request_body_truncated: false,
  source_ip: expect.stringMatching(/127\.0\.0\.1$/),
  request_at: time,
  status_code: 201,
  response_content_type: '',
  response_content_length: 0,
  response_body_truncated: false,
  duration_ms: count,
  response_at: time,
  created_at: time,
  // Not part of the specification.
  error_code: null,
  request_body_truncation_reason: null,
  response_body_truncation_reason: null,
  document_ids: [ulid],
}

const capturedRequests: Row[] = [
  ['2.5 id is a ULID, sortable by time', async (world) => expect((await itemAt(single.request)(world)).data.id).toEqual(ulid)],
  ...fields('2.5 a captured request in a list', listedRequest, listed.request),
  ...fields(
    '2.5 a single captured request',
    {
      ...listedRequest,
      request_headers: headers,
      response_headers: expect.objectContaining({ 'x-relay-request-id': ulid }),
      request_body_preview: '<invoice/>',
      response_body_preview: null,
      // Not part of the specification.
      replay_of: null,
      code_page: 'windows-1252',
    },
    attributesAt(single.request),
  ),
  ['2.5 workspace_id is the owning workspace', async (world) => expect((await listed.request(world)).workspace_id).toBe(world.acme.id)],
  [
    '2.5 the channel of a call through the bridge is bridge',
    async ({ acme, specimen }) =>
      expect(await acme.capturedRequest({ requestId: specimen.bridgeRequestId })).toMatchObject({ channel: 'bridge', http_method: 'POST' }),
  ],
  [
    '2.5 a missing content type is an empty string',
    async ({ acme }) => {
      const captured = await acme.capturedRequest(await acme.send('GET', 'serverInfo'))
      expect(captured).toMatchObject({
        request_content_type: '',
        request_content_length: 0,
        response_content_type: expect.stringMatching(/^text\/plain/),
      })
    },
  ],
  [
    '2.5 a body over the capture cap sets the flag and is not stored, in both directions',
    async ({ acme, specimen }) => {
      const large = 'x'.repeat(100_001)
      const sent = await acme.capturedRequest(await acme.sendCreate(specimen.repoId, 'LARGE', large, 'text/xml'))
      expect(sent).toMatchObject({ request_body_truncated: true, request_body_preview: null, request_content_length: 100_001 })
      const got = await acme.capturedRequest(await acme.send('GET', `get&pVersion=0045&contRep=${specimen.repoId}&docId=LARGE&compId=data`))
      expect(got).toMatchObject({ response_body_truncated: true, response_body_preview: null, response_content_length: 100_001 })
    },
  ],
  [
    '2.5 a preview is null for a body that is not HTML, JSON or XML',
    async ({ acme, specimen }) => {
      const captured = await acme.capturedRequest(await acme.sendCreate(specimen.repoId, 'BINARY', Buffer.from([0, 255, 7]), 'image/tiff'))
      expect(captured).toMatchObject({ request_body_preview: null, request_body_truncated: false })
    },
  ],
  [
    '2.5 the response headers include a request-identifier header',
    async (world) => {
      const { response_headers: responseHeaders } = await world.acme.attributesOf(single.request(world))
      expect(responseHeaders['x-relay-request-id']).toBe(world.specimen.requestId)
    },
  ],
]

const auditLog = {
  event: 'cert.activated',
  subject_type: 'Certificate',
  subject_id: ulid,
  description: expect.stringMatching(/\S/),
  metadata: { fingerprint_sha256: expect.stringMatching(/^[0-9a-f]{64}$/), valid_to: time, key_id: ulid, key_name: expect.any(String) },
  user_id: null,
  actor_type: 'api_key',
  created_at: time,
}

const auditLogs: Row[] = [
  ['2.6 id is a ULID', async (world) => expect((await firstOf('/audit-logs')(world)).id).toEqual(ulid)],
  ...fields('2.6 an audit log entry', auditLog, async (world) => (await firstOf('/audit-logs?event=cert.activated')(world)).attributes),
  [
    '2.6 subject_id is the identifier of the affected resource',
    async ({ acme, specimen }) => {
      const [entry] = await acme.eventsOf(specimen.repositoryId)
      expect(entry.attributes).toMatchObject({ event: 'repository.created', subject_type: 'Repository', subject_id: specimen.repositoryId })
    },
  ],
  [
    '2.6 actor_type is system and user_id is null for actions of the source system',
    async ({ acme, signer, specimen }) => {
      const query = `putCert&pVersion=0045&contRep=${specimen.repoId}&authId=CN%3DSYS&permissions=rcud`
      expect((await acme.send('PUT', query, signer.der)).status).toBe(200)
      const entry = await firstOf('/audit-logs?event=cert.received')({ acme } as World)
      expect(entry.attributes).toMatchObject({ actor_type: 'system', user_id: null })
    },
  ],
]

export const documentResourceRows: Row[] = [...documents, ...capturedRequests, ...auditLogs]
