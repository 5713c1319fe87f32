import { newId } from '../../src/base/ids.ts'
import { time, ulid, type Json, type Row } from './world.ts'

// Sections 4.2 and 4.3 of the specification: endpoints of destinations and repositories.

const destinations: Row[] = [
  [
    '4.2 GET /destinations filters by type',
    async ({ acme, specimen }) => {
      const { json } = await acme.call('GET', '/destinations?type=webhook&per_page=100')
      expect(new Set(json.data.map(({ attributes }: Json) => attributes.connector_type))).toEqual(new Set(['webhook']))
      expect(await acme.idsOf('/destinations?type=webhook&per_page=100')).toContain(specimen.destinationId)
      expect((await acme.call('GET', '/destinations?type=email')).json).toMatchObject({ data: [], meta: { total: 0 } })
      expect(await acme.statusOf('GET', '/destinations?type=fax')).toBe(400)
    },
  ],
  [
    '4.2 GET /destinations/:id is one destination including connections',
    async ({ acme, specimen }) => {
      const { status, json } = await acme.call('GET', `/destinations/${specimen.destinationId}`)
      expect({ status, connections: json.data.attributes.connections.length }).toEqual({ status: 200, connections: 1 })
    },
  ],
  [
    '4.2 POST /destinations requires name, connector_type, config and credentials',
    async ({ acme }) => {
      for (const missing of ['name', 'connector_type', 'config', 'credentials']) {
        const body = Object.fromEntries(Object.entries(acme.webhook()).filter(([name]) => name !== missing))
        const { status, json } = await acme.call('POST', '/destinations', body)
        expect({ status, details: json.error.details }).toMatchObject({ status: 400, details: [{ path: missing }] })
      }
    },
  ],
  [
    '4.2 POST /destinations answers 201 with the created destination, status connected',
    async ({ acme }) => {
      const body = acme.webhook('accepting', 'Grüße ☃ 文書')
      const { status, json } = await acme.call('POST', '/destinations', body)
      expect({ status, ...json.data }).toEqual({
        status: 201,
        id: ulid,
        type: 'destination',
        attributes: {
          name: body.name,
          connector_type: 'webhook',
          status: 'connected',
          config: body.config,
          // Not part of the specification.
          warnings: [],
          credentials_expire_at: null,
          sign_in: 'none',
          last_error: null,
          last_error_code: null,
          last_error_at: null,
          failed_attempts: 0,
          last_delivered_at: null,
          circuit: 'closed',
          circuit_since: null,
          next_trial_at: null,
          slots: 16,
          slots_in_use: 0,
          created_at: time,
          updated_at: time,
        },
      })
    },
  ],
  [
    '4.2 PATCH merges config, of which null removes a key, and replaces credentials, all optional',
    async ({ acme, target, db }) => {
      const { json } = await acme.call('POST', '/destinations', {
        ...acme.webhook(),
        credentials: { username: 'ada', password: 'first' },
      })
      const path = `/destinations/${json.data.id}`
      const sealedOf = async (): Promise<Buffer> => (await db('destinations').where({ id: json.data.id }).first()).credentials_sealed
      const sealed = await sealedOf()
      const merged = await acme.call('PATCH', path, { config: { method: 'PUT' } })
      expect(merged.json.data.attributes.config).toEqual({ url: `${target.origin}/accepting`, method: 'PUT' })
      expect(await acme.statusOf('PATCH', path, { credentials: { username: 'only' } })).toBe(422)
      expect(await acme.statusOf('PATCH', path, { config: { url: null } })).toBe(422)
      expect(await sealedOf()).toEqual(sealed)
      // The connector refuses two kinds of authentication, so merged credentials would be invalid.
      expect(await acme.statusOf('PATCH', path, { credentials: { bearer_token: 'second' } })).toBe(200)
      expect((await acme.call('POST', `${path}/test`)).json.data.status).toBe('success')
      // Documents of other rows are delivered at the same time.
      const tested = target.arrivals.findLast(({ method, url }) => method === 'PUT' && url === '/accepting')
      expect(tested!.headers.authorization).toBe('Bearer second')
      const replaced = await sealedOf()
      const renamed = await acme.call('PATCH', path, { name: 'B' })
      expect(renamed.json.data.attributes).toMatchObject({ name: 'B', config: { method: 'PUT' } })
      expect(await sealedOf()).toEqual(replaced)
      const removed = await acme.call('PATCH', path, { config: { method: null } })
      expect(removed.json.data.attributes.config).toEqual({ url: `${target.origin}/accepting` })
      expect(await acme.statusOf('PATCH', path, {})).toBe(200)
      expect(await acme.statusOf('PATCH', path, { connector_type: 'sftp' })).toBe(400)
    },
  ],
  [
    '4.2 DELETE answers 204, empty, and is irreversible',
    async ({ acme }) => {
      const id = await acme.destination()
      const { status, text } = await acme.call('DELETE', `/destinations/${id}`)
      expect({ status, text }).toEqual({ status: 204, text: '' })
      for (const method of ['GET', 'DELETE']) expect(await acme.statusOf(method, `/destinations/${id}`)).toBe(404)
      expect(await acme.statusOf('PATCH', `/destinations/${id}`, { name: 'B' })).toBe(404)
    },
  ],
  [
    '4.2 DELETE also removes the connections that use the destination; documents stay delivered',
    async ({ acme }) => {
      const { repoId, repositoryId, destinations: ids, connectionId } = await acme.wire(['accepting', 'accepting'])
      const documentId = await acme.sendDocument(repoId, 'delivered')
      await acme.call('DELETE', `/destinations/${ids[0]}`)
      expect(await acme.statusOf('GET', `/connections/${connectionId}`)).toBe(404)
      expect((await acme.attributesOf(`/repositories/${repositoryId}`)).connections).toEqual([])
      expect((await acme.attributesOf(`/documents/${documentId}`)).status).toBe('delivered')
      await acme.sendDocument(repoId, 'discarded')
    },
  ],
  [
    '4.2 POST /destinations/test returns success or failed with a message and creates nothing',
    async ({ acme }) => {
      const { name: _, ...good } = acme.webhook('accepting')
      const { name: __, ...bad } = acme.webhook('refusing')
      const total = async () => (await acme.call('GET', '/destinations')).json.meta.total
      const before = await total()
      const success = await acme.call('POST', '/destinations/test', good)
      expect(success).toMatchObject({ status: 200, json: { data: { status: 'success', message: expect.any(String) } } })
      const failed = await acme.call('POST', '/destinations/test', bad)
      expect(failed.json).toEqual({ data: { status: 'failed', message: expect.stringContaining('400'), error_code: 'http_400' } })
      expect(await total()).toBe(before)
    },
  ],
]

const repositories: Row[] = [
  [
    '4.3 GET /repositories filters by status',
    async ({ acme }) => {
      const { id } = await acme.repository()
      await acme.call('PATCH', `/repositories/${id}`, { status: 'inactive' })
      expect(await acme.idsOf('/repositories?status=inactive&per_page=100')).toContain(id)
      expect(await acme.idsOf('/repositories?status=active&per_page=100')).not.toContain(id)
      expect(await acme.statusOf('GET', '/repositories?status=paused')).toBe(400)
    },
  ],
  [
    '4.3 GET /repositories/:id is one repository including certificates and connections',
    async ({ acme, specimen }) => {
      const { certificates, connections } = await acme.attributesOf(`/repositories/${specimen.repositoryId}`)
      expect(certificates.map(({ id }: Json) => id)).toContain(specimen.certificateId)
      expect(connections).toEqual([
        { id: specimen.connectionId, name: expect.any(String), destination_name: 'To accepting', status: 'active' },
      ])
    },
  ],
  [
    '4.3 POST /repositories requires repo_id and name',
    async ({ acme }) => {
      expect(await acme.statusOf('POST', '/repositories', { name: 'A' })).toBe(400)
      expect(await acme.statusOf('POST', '/repositories', { repo_id: 'Z9' })).toBe(400)
      expect(await acme.statusOf('POST', '/repositories', { repo_id: 'Z9', name: 'A', signature_verification: 'yes' })).toBe(400)
    },
  ],
  [
    '4.3 POST /repositories answers 201: active, document_count 0, signature_verification false by default',
    async ({ acme }) => {
      for (const requested of [undefined, false, true]) {
        const repoId = newId()
        const body = { repo_id: repoId, name: 'A', ...(requested !== undefined && { signature_verification: requested }) }
        const { status, json } = await acme.call('POST', '/repositories', body)
        expect({ status, data: json.data }).toEqual({
          status: 201,
          data: {
            id: ulid,
            type: 'repository',
            attributes: {
              repo_id: repoId,
              name: 'A',
              status: 'active',
              signature_verification: requested ?? false,
              document_count: 0,
              // Not part of the specification.
              signed_parameter_order: 'fixed',
              accepts_mcreate: true,
              code_page: 'windows-1252',
              home_destination_id: null,
              home_after_days: 30,
              upstream: null,
              active_certificates: 0,
              last_request_at: null,
              warnings: expect.any(Array),
              created_at: time,
              updated_at: time,
            },
          },
        })
      }
    },
  ],
  [
    '4.3 PATCH /repositories/:id changes name, status and signature_verification independently',
    async ({ acme }) => {
      const { id } = await acme.repository()
      const { connections, certificates, ...before } = await acme.attributesOf(`/repositories/${id}`)
      let expected: Json = before
      for (const change of [{ name: 'B' }, { status: 'inactive' }, { signature_verification: true }, {}]) {
        expected = { ...expected, ...change, warnings: expect.any(Array), updated_at: time }
        const { status, json } = await acme.call('PATCH', `/repositories/${id}`, change)
        expect({ status, attributes: json.data.attributes }).toEqual({ status: 200, attributes: expected })
      }
      expect(await acme.attributesOf(`/repositories/${id}`)).toEqual({ ...expected, connections, certificates })
      expect((await acme.attributesOf(`/repositories/${id}`)).updated_at > before.updated_at).toBe(true)
      expect(await acme.statusOf('PATCH', `/repositories/${id}`, { status: 'paused' })).toBe(422)
    },
  ],
  [
    '4.3 DELETE answers 204, empty, and is irreversible',
    async ({ acme }) => {
      const { id } = await acme.repository()
      const { status, text } = await acme.call('DELETE', `/repositories/${id}`)
      expect({ status, text }).toEqual({ status: 204, text: '' })
      for (const method of ['GET', 'DELETE']) expect(await acme.statusOf(method, `/repositories/${id}`)).toBe(404)
    },
  ],
  [
    '4.3 DELETE also removes its certificates and active connections; documents stay delivered',
    async ({ acme, signer }) => {
      const { repoId, repositoryId, destinationId, connectionId } = await acme.wire(['accepting'])
      const certificate = { auth_id: 'CN=A', certificate: signer.pem }
      const certificateId = await acme.create(`/repositories/${repositoryId}/certificates`, certificate)
      const documentId = await acme.sendDocument(repoId, 'delivered')
      await acme.call('DELETE', `/repositories/${repositoryId}`)
      expect(await acme.statusOf('GET', `/connections/${connectionId}`)).toBe(404)
      expect((await acme.attributesOf(`/destinations/${destinationId}`)).connections).toEqual([])
      expect((await acme.eventsOf(certificateId))[0].attributes.event).toBe('cert.deleted')
      expect((await acme.attributesOf(`/documents/${documentId}`)).status).toBe('delivered')
      expect((await acme.sendCreate(repoId, 'D2')).status).toBe(404)
    },
  ],
  [
    '4.3 after deleting a repository, a new one can be created, even with the same repo_id',
    async ({ acme }) => {
      const { id, repoId } = await acme.repository()
      await acme.call('DELETE', `/repositories/${id}`)
      expect((await acme.repository(repoId)).id).not.toBe(id)
    },
  ],
]

export const wiringRows: Row[] = [...destinations, ...repositories]
