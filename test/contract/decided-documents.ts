import { X509Certificate } from 'node:crypto'
import { insertDocument } from '../api/insert-document.ts'
import { text, time, ulid, type Row } from './world.ts'

// Behaviour that the specification leaves open: documents, deliveries, certificates.

type Status = 'pending' | 'held' | 'retrying' | 'delivered' | 'failed' | 'cancelled'

const derivesStatus = ([statuses, expected]: [Status[], string]): Row => [
  `document status: ${expected} if the deliveries are ${statuses.join(', ')}`,
  async ({ acme, db }) => {
    const { repoId, repositoryId, connectionId, destinations } = await acme.wire(statuses.map(() => 'accepting'))
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
    'delivery status: held if only inactive connections lead to the destination',
    async ({ acme }) => {
      const { repoId } = await acme.wire(['accepting'], { is_active: false })
      const { deliveries } = await acme.untilStatus(await acme.sendDocument(repoId, 'pending'), 'pending')
      expect(deliveries[0]).toMatchObject({ status: 'held', attempts: 0, delivered_at: null })
    },
  ],
  [
    'delivery status: cancelled if its destination or the connection that held it is deleted before the delivery',
    async ({ acme }) => {
      const one = await acme.wire(['accepting'], { is_active: false })
      const two = await acme.wire(['accepting'], { is_active: false })
      const ids = [await acme.sendDocument(one.repoId, 'pending'), await acme.sendDocument(two.repoId, 'pending')]
      await acme.call('DELETE', `/destinations/${one.destinations[0]}`)
      await acme.call('DELETE', `/connections/${two.connectionId}`)
      for (const id of ids) expect((await acme.untilStatus(id, 'failed')).deliveries[0].status).toBe('cancelled')
    },
  ],
  [
    'a destination reached through two connections receives a document once',
    async ({ acme, arrivalsOf }) => {
      const { repoId, repositoryId, destinations } = await acme.wire(['accepting'])
      await acme.connect([repositoryId], destinations)
      const { deliveries } = await acme.untilStatus(await acme.sendDocument(repoId, 'delivered'), 'delivered')
      expect({ deliveries: deliveries.length, arrivals: arrivalsOf(repoId).length }).toEqual({ deliveries: 1, arrivals: 1 })
    },
  ],
  [
    'on_resume skip: held deliveries stay held',
    async ({ acme }) => {
      const { repoId, connectionId } = await acme.wire(['accepting'], { is_active: false, settings: { on_resume: 'skip' } })
      const held = await acme.sendDocument(repoId, 'pending')
      await acme.call('PATCH', `/connections/${connectionId}`, { is_active: true })
      await acme.sendDocument(repoId, 'delivered')
      expect((await acme.attributesOf(`/documents/${held}`)).deliveries[0].status).toBe('held')
    },
  ],
  [
    'connection settings: path_template decides the path of a document, filter which documents are forwarded',
    async ({ acme }) => {
      const filter = { content_types: ['application/pdf'], min_bytes: 1 }
      const { repoId } = await acme.wire(['accepting'], { settings: { path_template: 'in/{doc_id}/{comp_id}.{ext}', filter } })
      await acme.sendDocument(repoId, 'delivered')
      await acme.sendCreate(repoId, 'TEXT', 'hello', 'text/plain')
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
    'destination status: failing with last_error after a failed delivery, connected after a success',
    async ({ acme, switchTo }) => {
      switchTo(400)
      const { repoId, destinations } = await acme.wire(['switchable'])
      const id = await acme.sendDocument(repoId, 'failed')
      const path = `/destinations/${destinations[0]}`
      expect(await acme.attributesOf(path)).toMatchObject({ status: 'failing', last_error: text, last_delivered_at: null })
      switchTo(200)
      await acme.call('POST', `/documents/${id}/retry`)
      await acme.untilStatus(id, 'delivered')
      expect(await acme.attributesOf(path)).toMatchObject({ status: 'connected', last_error: null, last_delivered_at: time })
    },
  ],
  [
    'GET /documents/:id/content returns the bytes with their content type',
    async ({ acme, specimen }) => {
      const { status, text: body, headers } = await acme.call('GET', `/documents/${specimen.documentId}/content`)
      expect({ status, body, type: headers.get('content-type') }).toEqual({ status: 200, body: 'hello', type: 'application/pdf' })
    },
  ],
  [
    'GET /documents/:id/attempts lists every attempt with its time, duration, outcome, error and answer',
    async ({ acme }) => {
      const { repoId, destinations } = await acme.wire(['refusing'])
      const id = await acme.sendDocument(repoId, 'failed')
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
                destination_name: 'To refusing',
                number: 1,
                started_at: time,
                duration_ms: expect.any(Number),
                outcome: 'permanent',
                error: { code: 'http_400', message: text },
                answer: { status: 400, body: 'test response' },
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
    'POST /documents/retry retries the documents that match the filters, in the background',
    async ({ acme, switchTo }) => {
      switchTo(400)
      const { repoId } = await acme.wire(['switchable'])
      const ids = [await acme.sendDocument(repoId, 'failed'), await acme.sendDocument(repoId, 'failed')]
      switchTo(200)
      const { status, json } = await acme.call('POST', '/documents/retry', { repo_id: repoId, status: 'failed', date_from: '2020-01-01' })
      expect({ status, type: json.data.type }).toEqual({ status: 202, type: 'bulk_retry' })
      for (const id of ids) await acme.untilStatus(id, 'delivered')
    },
  ],
  [
    'PUT /documents/by-doc-id/:repo_id/:doc_id/metadata sets the metadata of a document, idempotently',
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
    'certificates: POST adds one as inactive, PATCH activates and deactivates it, DELETE removes it, and each is recorded',
    async ({ acme, signer }) => {
      const { id } = await acme.repository()
      const path = `/repositories/${id}/certificates`
      const added = await acme.call('POST', path, { auth_id: 'CN=A', certificate: signer.pem })
      const { fingerprint, fingerprint256, subject, issuer } = new X509Certificate(signer.der)
      const inOneLine = (name: string) => name.split('\n').join(', ')
      const hex = (digest: string) => digest.replaceAll(':', '').toLowerCase()
      expect({ status: added.status, data: added.json.data }).toEqual({
        status: 201,
        data: {
          id: ulid,
          type: 'certificate',
          attributes: {
            auth_id: 'CN=A',
            status: 'inactive',
            subject: inOneLine(subject),
            issuer: inOneLine(issuer),
            serial_number: expect.stringMatching(/^[0-9a-f]+$/),
            valid_from: time,
            valid_to: time,
            key_algorithm: 'rsa',
            key_bits: 2048,
            fingerprint_sha1: hex(fingerprint),
            fingerprint_sha256: hex(fingerprint256),
            warnings: expect.any(Array),
            received_at: time,
            updated_at: time,
          },
        },
      })
      expect((await acme.call('GET', path)).json).toEqual({ data: [added.json.data], meta: { current_page: 1, per_page: 25, total: 1 } })

      const { id: certificateId, attributes } = added.json.data
      const one = `${path}/${certificateId}`
      const ofRepository = async () => (await acme.attributesOf(`/repositories/${id}`)).certificates
      const { valid_from, valid_to } = attributes
      const summary = { id: certificateId, subject: attributes.subject, valid_from, valid_to }
      expect(await ofRepository()).toEqual([{ ...summary, status: 'inactive' }])
      for (const status of ['active', 'active', 'inactive']) {
        const changed = await acme.call('PATCH', one, { status })
        expect({ status: changed.status, now: changed.json.data.attributes.status }).toEqual({ status: 200, now: status })
        expect(await ofRepository()).toEqual([{ ...summary, status }])
      }
      expect(await acme.statusOf('PATCH', one, { status: 'revoked' })).toBe(422)
      expect(await acme.statusOf('DELETE', one)).toBe(204)
      expect(await acme.statusOf('DELETE', one)).toBe(404)
      expect(await ofRepository()).toEqual([])
      expect((await acme.eventsOf(certificateId)).toReversed().map((entry) => entry.attributes)).toEqual(
        ['cert.received', 'cert.activated', 'cert.deactivated', 'cert.deleted'].map((event) =>
          expect.objectContaining({
            event,
            subject_type: 'Certificate',
            actor_type: 'api_key',
            metadata: expect.objectContaining({ fingerprint_sha256: attributes.fingerprint_sha256, valid_to }),
          }),
        ),
      )
    },
  ],
  [
    'certificates: a body that is not a certificate is 422',
    async ({ acme, specimen }) => {
      const body = { auth_id: 'CN=A', certificate: 'garbage' }
      expect(await acme.statusOf('POST', `/repositories/${specimen.repositoryId}/certificates`, body)).toBe(422)
    },
  ],
]

export const decidedDocumentRows: Row[] = [...documents, ...certificates]
