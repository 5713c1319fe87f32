import { newId } from '../../src/base/ids.ts'
import { until } from '../support/until.ts'
import type { Json, Row, World } from './world.ts'

// Behaviour that the specification leaves open: the receiver and the bridge, as an API client sees them.

type Refused = readonly [status: number, code: string, when: string, repoIdFor: (acme: World['acme']) => Promise<string>]

const refusesCreate = ([status, code, when, repoIdFor]: Refused): Row => [
  `receiver: a request to ${when} is ${status} ${code} and is captured`,
  async ({ acme }) => {
    const sent = await acme.sendCreate(await repoIdFor(acme), newId())
    expect({ status: sent.status, error: sent.headers.get('x-errordescription') }).toEqual({ status, error: expect.stringContaining(code) })
    expect(await acme.capturedRequest(sent)).toMatchObject({ status_code: status })
  },
]

const receiver: Row[] = [
  ...(
    [
      [404, 'repository_not_found', 'an unknown contRep', async () => 'NOWHERE'],
      [
        403,
        'repository_inactive',
        'an inactive repository',
        async (acme: World['acme']) => {
          const { id, repoId } = await acme.repository()
          await acme.call('PATCH', `/repositories/${id}`, { status: 'inactive' })
          return repoId
        },
      ],
      [
        401,
        'signature_missing',
        'a repository that verifies signatures',
        async (acme: World['acme']) => {
          const { id, repoId } = await acme.repository()
          await acme.call('PATCH', `/repositories/${id}`, { signature_verification: true })
          return repoId
        },
      ],
    ] as const
  ).map(refusesCreate),
  [
    'receiver: a second create of a document is document_exists',
    async ({ acme, specimen }) => {
      const sent = await acme.sendCreate(specimen.repoId, 'SPECIMEN')
      expect({ status: sent.status, error: sent.headers.get('x-errordescription') }).toEqual({
        status: 403,
        error: expect.stringContaining('document_exists'),
      })
    },
  ],
  [
    'receiver: a discarded document is acknowledged with 201, and reading it is 404',
    async ({ acme }) => {
      const { repoId } = await acme.repository()
      expect((await acme.sendCreate(repoId, 'D1')).status).toBe(201)
      expect((await acme.send('GET', `get&pVersion=0045&contRep=${repoId}&docId=D1&compId=data`)).status).toBe(404)
    },
  ],
  [
    'receiver: a document can be read until it is deleted, and its delivery is not affected',
    async ({ acme }) => {
      const { repoId } = await acme.wire(['accepting'])
      const id = await acme.sendDocument(repoId, 'delivered', 'D1')
      const get = () => acme.send('GET', `get&pVersion=0045&contRep=${repoId}&docId=D1&compId=data`)
      expect(await get()).toMatchObject({ status: 200, text: 'hello' })
      expect((await acme.send('GET', `delete&pVersion=0045&contRep=${repoId}&docId=D1`)).status).toBe(200)
      expect((await get()).status).toBe(404)
      expect((await acme.attributesOf(`/documents/${id}`)).status).toBe('delivered')
    },
  ],
  [
    'receiver: an update creates a new document, and both documents are delivered',
    async ({ acme }) => {
      const { repoId } = await acme.wire(['accepting'])
      await acme.sendDocument(repoId, 'delivered', 'D1')
      const query = `update&pVersion=0045&contRep=${repoId}&docId=D1&compId=data`
      expect((await acme.send('PUT', query, 'newer', { 'content-type': 'application/pdf' })).status).toBe(200)
      await until(
        'the delivery of both',
        async () => (await acme.call('GET', `/documents?repo_id=${repoId}`)).json.data,
        (rows: Json[]) => rows.length === 2 && rows.every(({ attributes }) => attributes.status === 'delivered'),
      )
    },
  ],
  [
    'receiver: X-Relay headers of a create set the metadata',
    async ({ acme, specimen }) => {
      const headers = { 'x-relay-object-type': 'BKPF', 'x-relay-object-id': '1', 'x-relay-ar-object': 'ZINVOICE' }
      await acme.send('PUT', `create&pVersion=0045&contRep=${specimen.repoId}&docId=KNOWN&compId=data`, 'x', headers)
      const { json } = await acme.call('GET', `/documents?repo_id=${specimen.repoId}&per_page=100`)
      const { id } = json.data.find(({ attributes }: Json) => attributes.doc_id === 'KNOWN')
      expect((await acme.attributesOf(`/documents/${id}`)).metadata).toEqual({
        erp_object_type: 'BKPF',
        erp_object_id: '1',
        ar_object: 'ZINVOICE',
      })
    },
  ],
]

const bridge: Row[] = [
  [
    'bridge: a call returns exports and tables, requires level member, and is captured and audited',
    async ({ acme }) => {
      const { status, json, headers } = await acme.bridge('RFC_PING', { imports: { REQUTEXT: 'a' } })
      expect({ status, json }).toEqual({ status: 200, json: { exports: { ECHOTEXT: 'pong' }, tables: {} } })
      expect((await acme.bridge('RFC_PING', {}, acme.keys.viewer)).status).toBe(403)
      const captured = await acme.capturedRequest({ requestId: headers.get('x-relay-request-id')! })
      expect(captured).toMatchObject({ channel: 'bridge', uri: `/bridge/${acme.name}/rfc/RFC_PING`, status_code: 200 })
      expect(captured.request_headers.authorization).toBe('[REDACTED]')
      expect((await acme.call('GET', '/audit-logs?event=rfc.call')).json.data.length).toBeGreaterThan(0)
    },
  ],
  [
    'bridge: 422 abap_exception with the name of the exception',
    async ({ acme }) => {
      const { status, json } = await acme.bridge('Z_REFUSED', {})
      expect({ status, error: json.error }).toMatchObject({
        status: 422,
        error: { code: 'abap_exception', details: [{ path: 'exception', message: 'NO_AUTHORITY' }] },
      })
    },
  ],
  [
    'bridge: 403 for a function that is not allowed, 502 rfc_failed for an unknown function',
    async ({ acme }) => {
      expect((await acme.bridge('Z_FORBIDDEN', {})).json.error.code).toBe('forbidden')
      const { status, json } = await acme.bridge('Z_UNKNOWN', {})
      expect({ status, code: json.error.code }).toEqual({ status: 502, code: 'rfc_failed' })
    },
  ],
]

export const decidedSourceRows: Row[] = [...receiver, ...bridge]
