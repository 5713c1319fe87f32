import { insertDocument } from '../http/documents-in.ts'
import { text, time, ulid, type Row } from './world.ts'

// what the specification leaves open: documents, deliveries, certificates

type Status = 'pending' | 'held' | 'retrying' | 'delivered' | 'failed' | 'cancelled'

const derivesStatus = ([statuses, expected]: [Status[], string]): Row => [
  `document status: deliveries that are ${statuses.join(', ')} make it ${expected}`,
  async ({ acme, db }) => {
    const { repoId, repositoryId, connectionId, destinations } = await acme.wire(statuses.map(() => 'taken'))
    const deliveries = destinations.map((destinationId) => ({ destinationId, connectionId, status: 'pending' as const }))
    const id = await insertDocument(db, { workspaceId: acme.id, repositoryId, repoId, deliveries })
    for (const [index, status] of statuses.entries()) {
      await db('deliveries').where({ document_id: id, destination_id: destinations[index]! }).update({ status })
    }
    expect((await acme.attributesOf(`/documents/${id}`)).status).toBe(expected)
  },
]

const documents: Row[] = [
  ...(
    [
      [['failed', 'retrying', 'pending', 'delivered'], 'failed'],
      [['retrying', 'pending', 'delivered'], 'retrying'],
      [['pending', 'delivered'], 'pending'],
      [['held', 'delivered'], 'pending'],
      [['delivered', 'cancelled'], 'delivered'],
      [['cancelled', 'cancelled'], 'failed'],
    ] as [Status[], string][]
  ).map(derivesStatus),
  [
    'delivery status: held where only inactive connections lead there',
    async ({ acme }) => {
      const { repoId } = await acme.wire(['taken'], { is_active: false })
      const { deliveries } = await acme.settled(await acme.document(repoId, 'pending'), 'pending')
      expect(deliveries[0]).toMatchObject({ status: 'held', attempts: 0, delivered_at: null })
    },
  ],
  [
    'delivery status: cancelled where the destination, or the connection that held it, was deleted first',
    async ({ acme }) => {
      const one = await acme.wire(['taken'], { is_active: false })
      const two = await acme.wire(['taken'], { is_active: false })
      const ids = [await acme.document(one.repoId, 'pending'), await acme.document(two.repoId, 'pending')]
      await acme.call('DELETE', `/destinations/${one.destinations[0]}`)
      await acme.call('DELETE', `/connections/${two.connectionId}`)
      for (const id of ids) expect((await acme.settled(id, 'failed')).deliveries[0].status).toBe('cancelled')
    },
  ],
  [
    'a destination reached through two connections gets a document once',
    async ({ acme, arrivalsOf }) => {
      const { repoId, repositoryId, destinations } = await acme.wire(['taken'])
      await acme.connection([repositoryId], destinations)
      const { deliveries } = await acme.settled(await acme.document(repoId, 'delivered'), 'delivered')
      expect({ deliveries: deliveries.length, arrivals: arrivalsOf(repoId).length }).toEqual({ deliveries: 1, arrivals: 1 })
    },
  ],
  [
    'on_resume skip: what was held stays held',
    async ({ acme }) => {
      const { repoId, connectionId } = await acme.wire(['taken'], { is_active: false, settings: { on_resume: 'skip' } })
      const held = await acme.document(repoId, 'pending')
      await acme.call('PATCH', `/connections/${connectionId}`, { is_active: true })
      await acme.document(repoId, 'delivered')
      expect((await acme.attributesOf(`/documents/${held}`)).deliveries[0].status).toBe('held')
    },
  ],
  [
    'connection settings: path_template says where a document lies, filter which ones are forwarded',
    async ({ acme }) => {
      const filter = { content_types: ['application/pdf'], min_bytes: 1 }
      const { repoId } = await acme.wire(['taken'], { settings: { path_template: 'in/{doc_id}/{comp_id}.{ext}', filter } })
      await acme.document(repoId, 'delivered')
      await acme.create(repoId, 'TEXT', 'hello', 'text/plain')
      const { json } = await acme.call('GET', `/documents?repo_id=${repoId}`)
      expect(json.data[0].attributes).toMatchObject({ doc_id: 'TEXT', deliveries: [] })
    },
  ],
  [
    'connection settings: unknown keys are 422',
    async ({ acme, specimen }) => {
      for (const settings of [{ colour: 'red' }, { filter: { colour: 'red' } }, { on_resume: 'wait' }, { path_template: '{colour}' }]) {
        expect(await acme.statusOf('PATCH', `/connections/${specimen.connectionId}`, { settings })).toBe(422)
      }
    },
  ],
  [
    'destination status: failing after a delivery ends failed, with last_error; connected after a success',
    async ({ acme, mend }) => {
      mend(400)
      const { repoId, destinations } = await acme.wire(['mended'])
      const id = await acme.document(repoId, 'failed')
      const path = `/destinations/${destinations[0]}`
      expect(await acme.attributesOf(path)).toMatchObject({ status: 'failing', last_error: text, last_delivered_at: null })
      mend(200)
      await acme.call('POST', `/documents/${id}/retry`)
      await acme.settled(id, 'delivered')
      expect(await acme.attributesOf(path)).toMatchObject({ status: 'connected', last_error: null, last_delivered_at: time })
    },
  ],
  [
    'GET /documents/:id/content gives the bytes with their type; of a discarded document there are none',
    async ({ acme, specimen }) => {
      const { status, text: body, headers } = await acme.call('GET', `/documents/${specimen.documentId}/content`)
      expect({ status, body, type: headers.get('content-type') }).toEqual({ status: 200, body: 'hello', type: 'application/pdf' })
    },
  ],
  [
    'GET /documents/:id/attempts tells of every attempt: when, how long, outcome, error, answer',
    async ({ acme }) => {
      const { repoId, destinations } = await acme.wire(['refused'])
      const id = await acme.document(repoId, 'failed')
      const { status, json } = await acme.call('GET', `/documents/${id}/attempts`)
      expect({ status, json }).toEqual({
        status: 200,
        json: {
          data: [
            {
              id: ulid,
              type: 'delivery_attempt',
              attributes: {
                destination_id: destinations[0],
                destination_name: 'To refused',
                number: 1,
                started_at: time,
                duration_ms: expect.any(Number),
                outcome: 'permanent',
                error: { code: 'http_400', message: text },
                answer: { status: 400, body: 'said' },
                bytes_sent: expect.anything(),
              },
            },
          ],
          meta: { current_page: 1, per_page: 25, total: 1 },
        },
      })
    },
  ],
  [
    'POST /documents/retry retries what the filters match, in the background',
    async ({ acme, mend }) => {
      mend(400)
      const { repoId } = await acme.wire(['mended'])
      const ids = [await acme.document(repoId, 'failed'), await acme.document(repoId, 'failed')]
      mend(200)
      const { status, json } = await acme.call('POST', '/documents/retry', { repo_id: repoId, status: 'failed', date_from: '2020-01-01' })
      expect({ status, type: json.data.type }).toEqual({ status: 202, type: 'bulk_retry' })
      for (const id of ids) await acme.settled(id, 'delivered')
    },
  ],
  [
    'PUT /documents/by-doc-id/:repo_id/:doc_id/metadata sets what a document is about, idempotently',
    async ({ acme, specimen }) => {
      const path = `/documents/by-doc-id/${specimen.repoId}/CAPTURED/metadata`
      const metadata = { erp_object_type: 'BKPF', erp_object_id: '1', ar_object: 'ZINVOICE' }
      const answers = [await acme.call('PUT', path, metadata), await acme.call('PUT', path, metadata)]
      expect(answers[0]).toMatchObject({ status: 200, json: { data: { repo_id: specimen.repoId, doc_id: 'CAPTURED', metadata } } })
      expect(answers[1]!.json).toEqual(answers[0]!.json)
    },
  ],
]

const certificates: Row[] = [
  [
    'certificates: POST adds one, PATCH activates and deactivates it, DELETE removes it',
    async ({ acme, signer }) => {
      const { id } = await acme.repository()
      const path = `/repositories/${id}/certificates`
      const added = await acme.call('POST', path, { auth_id: 'CN=A', certificate: signer.pem })
      expect(added).toMatchObject({ status: 201, json: { data: { id: ulid, type: 'certificate', attributes: { status: 'inactive' } } } })
      const one = `${path}/${added.json.data.id}`
      for (const status of ['active', 'inactive']) {
        const changed = await acme.call('PATCH', one, { status })
        expect({ status: changed.status, now: changed.json.data.attributes.status }).toEqual({ status: 200, now: status })
      }
      expect(await acme.statusOf('PATCH', one, { status: 'revoked' })).toBe(422)
      expect(await acme.statusOf('DELETE', one)).toBe(204)
      expect(await acme.statusOf('DELETE', one)).toBe(404)
    },
  ],
  [
    'certificates: what is none is 422',
    async ({ acme, specimen }) => {
      const body = { auth_id: 'CN=A', certificate: 'garbage' }
      expect(await acme.statusOf('POST', `/repositories/${specimen.repositoryId}/certificates`, body)).toBe(422)
    },
  ],
]

export const decidedDocumentRows: Row[] = [...documents, ...certificates]
