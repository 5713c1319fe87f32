import { attributesAt, firstOf, itemAt, listed, single } from './specimens.ts'
import { count, fields, text, time, ulid, type Json, type Row } from './world.ts'

// Sections 2 to 2.3 of the specification: resources and their fields.

const connectorTypes = ['objstore', 'blob', 'teamsite', 'drive', 'sftp', 'email', 'webhook']

const isWrapped = ([type, path]: readonly [type: string, path: string]): Row => [
  `2 a resource of ${path} is { id, type: ${type}, attributes }`,
  async (world) => expect(await firstOf(path)(world)).toEqual({ id: text, type, attributes: expect.any(Object) }),
]

const preamble: Row[] = [
  [
    '2 a single resource is wrapped as { data }',
    async ({ acme, specimen }) => {
      for (const path of ['destinations', 'repositories', 'documents', 'requests'] as const) {
        const id = { destinations: 'destinationId', repositories: 'repositoryId', documents: 'documentId', requests: 'requestId' } as const
        const { json } = await acme.call('GET', `/${path}/${specimen[id[path]]}`)
        expect(Object.keys(json)).toEqual(['data'])
      }
    },
  ],
  [
    '2 a list is { data: [...], meta: {...} }',
    async ({ acme }) => {
      for (const path of ['destinations', 'repositories', 'documents', 'requests', 'audit-logs']) {
        const { json } = await acme.call('GET', `/${path}`)
        expect(json).toEqual({ data: expect.any(Array), meta: expect.any(Object) })
      }
    },
  ],
  ...(
    [
      ['destination', '/destinations'],
      ['repository', '/repositories'],
      ['document', '/documents'],
      ['captured_request', '/requests'],
      ['audit_log', '/audit-logs'],
    ] as const
  ).map(isWrapped),
  ['2 identifiers are opaque strings', async (world) => expect((await firstOf('/destinations')(world)).id).toEqual(text)],
  ['2 timestamps are ISO 8601 in UTC', async (world) => expect((await listed.document(world)).received_at).toEqual(time)],
]

const destination = {
  name: 'To accepting',
  connector_type: 'webhook',
  status: 'connected',
  config: { url: expect.stringMatching(/\/accepting$/) },
  // Not part of the specification.
  warnings: [],
  credentials_expire_at: null,
  sign_in: 'none',
  last_error: null,
  last_error_code: null,
  last_error_at: null,
  failed_attempts: 0,
  last_delivered_at: time,
  circuit: 'closed',
  circuit_since: null,
  next_trial_at: null,
  slots: count,
  slots_in_use: count,
  created_at: time,
  updated_at: time,
}
const destinationConnection = { id: ulid, name: text, source_repo_id: text, source_name: text, status: 'active' }

const isFilter = (type: string): Row => [
  `2.1 connector type ${type} is a value of the filter type`,
  async ({ acme }) => expect(await acme.statusOf('GET', `/destinations?type=${type}`)).toBe(200),
]

const isConnectorType = (type: string): Row => [
  `2.1 connector type ${type} is a value of connector_type`,
  async ({ acme }) => {
    // Everything except the type is invalid.
    const { status, json } = await acme.call('POST', '/destinations', {
      name: 'A',
      connector_type: type,
      config: { colour: 'red' },
      credentials: {},
    })
    expect(status).toBe(422)
    const paths = json.error.details.map(({ path }: Json) => path)
    expect(paths).toContain('config.colour')
    expect(paths).not.toContain('connector_type')
  },
]

const destinations: Row[] = [
  ...fields('2.1 a destination in a list', destination, listed.destination),
  ...fields('2.1 a single destination', { ...destination, connections: [destinationConnection] }, attributesAt(single.destination)),
  [
    '2.1 connections of a destination name the repository they come from',
    async (world) => {
      const { connectionId, repoId } = world.specimen
      const { connections } = await world.acme.attributesOf(single.destination(world))
      expect(connections).toEqual([
        { id: connectionId, name: text, source_repo_id: repoId, source_name: `Repository ${repoId}`, status: 'active' },
      ])
    },
  ],
  [
    '2.1 connections are only in the single response, not in the responses to POST and PATCH',
    async ({ acme }) => {
      const created = await acme.call('POST', '/destinations', acme.webhook())
      const changed = await acme.call('PATCH', `/destinations/${created.json.data.id}`, { name: 'B' })
      for (const { json } of [created, changed]) expect(Object.keys(json.data.attributes)).toEqual(Object.keys(destination))
    },
  ],
  [
    '2.1 credentials are never returned in any response',
    async ({ acme }) => {
      const canary = 'canary-of-credentials'
      const created = await acme.call('POST', '/destinations', { ...acme.webhook(), credentials: { bearer_token: canary } })
      const path = `/destinations/${created.json.data.id}`
      const answers = [
        created,
        await acme.call('GET', path),
        await acme.call('GET', '/destinations?per_page=100'),
        await acme.call('PATCH', path, { credentials: { username: 'ada', password: canary } }),
        await acme.call('POST', `${path}/test`),
        await acme.call('GET', '/audit-logs'),
        await acme.call('PATCH', path, { credentials: { bearer_token: canary, unknown: canary } }),
      ]
      for (const answer of answers) {
        expect(answer.text).not.toContain(canary)
        expect(answer.text).not.toMatch(/"credentials":|"bearer_token":/)
      }
    },
  ],
  ...connectorTypes.map(isFilter),
  ...connectorTypes.map(isConnectorType),
  [
    '2.1 config and credentials of objstore have the keys shown',
    async ({ acme }) => {
      const { status, json } = await acme.call('POST', '/destinations', {
        name: 'A',
        connector_type: 'objstore',
        config: { bucket: 'archive', region: 'eu-central-1', prefix: 'in/' },
        credentials: { access_key_id: 'AKIA', secret_access_key: 'secret' },
      })
      expect({ status, config: json.data.attributes.config }).toEqual({
        status: 201,
        config: { bucket: 'archive', region: 'eu-central-1', prefix: 'in/' },
      })
    },
  ],
  [
    '2.1 config of teamsite has the keys shown',
    async ({ acme }) => {
      const config = { site_url: 'https://example.sharepoint.com/sites/finance', document_library: 'Documents' }
      const { status, json } = await acme.call('POST', '/destinations', {
        name: 'A',
        connector_type: 'teamsite',
        config,
        credentials: { tenant_id: '00000000-0000-0000-0000-000000000000', client_id: 'b', client_secret: 'c' },
      })
      expect({ status, config: json.data?.attributes.config }).toEqual({ status: 201, config })
    },
  ],
]

const repository = {
  repo_id: text,
  name: expect.stringMatching(/^Repository R/),
  status: 'active',
  signature_verification: false,
  document_count: count,
  // Not part of the specification.
  signed_parameter_order: 'fixed',
  accepts_mcreate: true,
  code_page: 'windows-1252',
  home_destination_id: null,
  home_after_days: 30,
  upstream: null,
  active_certificates: count,
  last_request_at: time,
  warnings: expect.any(Array),
  created_at: time,
  updated_at: time,
}
const certificate = { id: ulid, subject: text, valid_from: time, valid_to: time, status: 'active' }
const repositoryConnection = { id: ulid, name: text, destination_name: 'To accepting', status: 'active' }

const repositories: Row[] = [
  ...fields('2.2 a repository in a list', repository, listed.repository),
  ...fields(
    '2.2 a single repository',
    { ...repository, certificates: [certificate], connections: [repositoryConnection] },
    attributesAt(single.repository),
  ),
  [
    '2.2 repo_id matches the source system: documents arrive under it',
    async ({ acme }) => {
      const { repoId } = await acme.wire(['accepting'])
      expect((await acme.sendCreate(repoId, 'D1')).status).toBe(201)
    },
  ],
  [
    '2.2 repo_id is immutable after creation',
    async ({ acme, specimen }) => {
      expect(await acme.statusOf('PATCH', `/repositories/${specimen.repositoryId}`, { repo_id: 'Z9' })).toBe(400)
      expect((await acme.attributesOf(`/repositories/${specimen.repositoryId}`)).repo_id).toBe(specimen.repoId)
    },
  ],
  [
    '2.2 document_count counts the documents received',
    async ({ acme }) => {
      const { repoId, repositoryId } = await acme.wire(['accepting'])
      expect((await acme.attributesOf(`/repositories/${repositoryId}`)).document_count).toBe(0)
      await acme.sendCreate(repoId, 'D1')
      await acme.sendCreate(repoId, 'D2')
      expect((await acme.attributesOf(`/repositories/${repositoryId}`)).document_count).toBe(2)
    },
  ],
]

const connection = {
  id: ulid,
  name: 'A',
  is_active: true,
  repositories: [{ id: ulid, repo_id: text, description: text }],
  destinations: [{ id: ulid, type: 'webhook', name: 'To accepting' }],
  settings: {},
  // Not part of the specification.
  held_deliveries: count,
  created_at: time,
  updated_at: time,
}

const connections: Row[] = [
  ...fields('2.3 a connection is flat', connection, async (world) => (await itemAt(single.connection)(world)).data),
  [
    '2.3 a connection is the same in the list',
    async (world) => {
      const { data } = await itemAt(() => '/connections')(world)
      const one = await itemAt(single.connection)(world)
      expect(data.find(({ id }: Json) => id === world.specimen.connectionId)).toEqual(one.data)
    },
  ],
  [
    '2.3 the delivery status is tracked for each destination, in deliveries',
    async ({ acme }) => {
      const { repoId, destinations: ids } = await acme.wire(['accepting', 'refusing'])
      const id = await acme.sendDocument(repoId, 'failed')
      const { deliveries } = await acme.untilStatus(id, 'failed')
      const statuses = new Map(deliveries.map((delivery: Json) => [delivery.destination_id, delivery.status]))
      expect(ids.map((destinationId) => statuses.get(destinationId))).toEqual(['delivered', 'failed'])
    },
  ],
]

export const wiringResourceRows: Row[] = [...preamble, ...destinations, ...repositories, ...connections]
