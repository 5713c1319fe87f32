import { createMembers } from '../../src/access/members.ts'
import { newId } from '../../src/base/ids.ts'
import { systemActor } from '../../src/db/audit.ts'
import { apiKeyParts } from '../support/api-key.ts'
import { objstore } from './decided-errors.ts'
import { time, ulid, type Json, type Row } from './world.ts'

// Behaviour that the specification leaves open: keys and levels, settings, probes, conventions.

const unknown = '00000000000000000000000000'
const levels = ['viewer', 'member', 'admin'] as const
type LevelOperations = [level: (typeof levels)[number], what: string, calls: [method: string, path: string][]]
const operations: LevelOperations[] = [
  [
    'viewer',
    'reads everything except API keys',
    [
      '/destinations',
      '/repositories',
      '/connections',
      '/documents',
      '/requests',
      '/audit-logs',
      '/audit-logs.csv',
      '/settings',
      `/destinations/${unknown}`,
      `/repositories/${unknown}`,
      `/connections/${unknown}`,
      `/documents/${unknown}`,
      `/documents/${unknown}/content`,
      `/documents/${unknown}/attempts`,
      `/requests/${unknown}`,
      `/requests/${unknown}/body/request`,
    ].map((path): [string, string] => ['GET', path]),
  ],
  [
    'member',
    'creates and changes destinations, repositories and connections',
    ['destinations', 'repositories', 'connections'].flatMap((path): [string, string][] => [
      ['POST', `/${path}`],
      ['PATCH', `/${path}/${unknown}`],
    ]),
  ],
  [
    'member',
    'tests destinations and retries documents',
    [
      ['POST', '/destinations/test'],
      ['POST', `/destinations/${unknown}/test`],
      ['POST', `/destinations/${unknown}/test-change`],
      ['POST', `/documents/${unknown}/retry`],
      ['POST', '/documents/retry'],
      ['POST', '/documents/deliver'],
    ],
  ],
  ['admin', 'deletes', ['destinations', 'repositories', 'connections'].map((path): [string, string] => ['DELETE', `/${path}/${unknown}`])],
  ['admin', 'replays', [['POST', `/requests/${unknown}/replay`]]],
  [
    'admin',
    'manages certificates',
    [
      ['POST', `/repositories/${unknown}/certificates`],
      ['PATCH', `/repositories/${unknown}/certificates/${unknown}`],
      ['DELETE', `/repositories/${unknown}/certificates/${unknown}`],
    ],
  ],
  [
    'admin',
    'manages API keys',
    [
      ['GET', '/api-keys'],
      ['POST', '/api-keys'],
      ['DELETE', `/api-keys/${unknown}`],
    ],
  ],
  ['admin', 'changes workspace settings', [['PATCH', '/settings']]],
]

const key = {
  name: 'Nightly',
  level: 'viewer',
  user_id: null,
  expires_at: null,
  last_used_at: null,
  created_at: time,
}

const isForLevel = ([level, what, calls]: LevelOperations): Row => [
  `levels: ${level} ${what}, and lower levels do not`,
  async ({ acme }) => {
    for (const [method, path] of calls) {
      const body = ['POST', 'PATCH'].includes(method) ? { colour: 'red' } : undefined
      for (const keyLevel of levels) {
        const isRefused = (await acme.statusOf(method, path, body, acme.keys[keyLevel])) === 403
        expect({ method, path, keyLevel, isRefused }).toEqual({
          method,
          path,
          keyLevel,
          isRefused: levels.indexOf(keyLevel) < levels.indexOf(level),
        })
      }
    }
  },
]

const keys: Row[] = [
  ...operations.map(isForLevel),
  [
    'keys: POST /api-keys answers 201 with the key, relay_<id>_<256 bits>; no later response and no row contains it',
    async ({ acme, db }) => {
      const userId = await createMembers(db).ensure(acme.id, 'ada@example.org', systemActor)
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
      const ofMember = { name: 'CI', level: 'member', expires_at: expiresAt, user_id: userId }
      for (const body of [{ name: 'Nightly', level: 'viewer' }, ofMember]) {
        const { status, json } = await acme.call('POST', '/api-keys', body)
        const { id, attributes } = json.data
        const expected = { ...key, ...body }
        expect({ status, data: json.data }).toEqual({
          status: 201,
          data: { id: ulid, type: 'api_key', attributes: { ...expected, key: expect.stringMatching(/^relay_[0-9A-Z]{26}_[\w-]{43}$/) } },
        })
        expect(attributes.key).toContain(`relay_${id}_`)
        const listed = await acme.call('GET', '/api-keys?per_page=100')
        expect(listed.json.data.find((row: Json) => row.id === id)).toEqual({ id, type: 'api_key', attributes: expected })
        expect((await db('api_keys').where({ id }).first()).secret_sha256).toHaveLength(32)
        expect(await acme.statusOf('GET', '/documents', undefined, attributes.key)).toBe(200)
        const used = await acme.call('GET', '/api-keys?per_page=100')
        expect(used.json.data.find((one: Json) => one.id === id).attributes.last_used_at).toEqual(time)
        const { secret } = apiKeyParts(attributes.key)
        for (const text of [listed.text, used.text, JSON.stringify(await db('api_keys'))]) expect(text).not.toContain(secret)
      }
    },
  ],
  [
    'keys: DELETE /api-keys/:id answers 204 and revokes the key from the next request on',
    async ({ acme }) => {
      const { json } = await acme.call('POST', '/api-keys', { name: 'A', level: 'viewer' })
      expect(await acme.statusOf('DELETE', `/api-keys/${json.data.id}`)).toBe(204)
      expect(await acme.statusOf('GET', '/documents', undefined, json.data.attributes.key)).toBe(401)
      expect(await acme.statusOf('DELETE', `/api-keys/${json.data.id}`)).toBe(404)
      expect((await acme.call('GET', '/api-keys?per_page=100')).text).not.toContain(json.data.id)
    },
  ],
  [
    'keys: an unknown level, a wrong expiry and a member of no or another workspace are 422; a missing level is 400',
    async ({ acme, other, db }) => {
      const foreignMember = await createMembers(db).ensure(other.id, 'eve@example.org', systemActor)
      for (const wrong of [
        { expires_at: '2020-01-01T00:00:00Z' },
        { expires_at: 'soon' },
        { user_id: newId() },
        { user_id: foreignMember },
        { level: 'king' },
      ]) {
        const { status, json } = await acme.call('POST', '/api-keys', { name: 'A', level: 'viewer', ...wrong })
        expect({ status, path: json.error.details[0].path }).toEqual({ status: 422, path: Object.keys(wrong)[0] })
      }
      expect(await acme.statusOf('POST', '/api-keys', { name: 'A' })).toBe(400)
    },
  ],
]

const defaultSettings = {
  max_retries: 10,
  retry_ttl_seconds: 86_400,
  retry_initial_interval_seconds: 10,
  retry_max_interval_seconds: 3_600,
  captured_requests_days: 30,
  captured_bodies_days: 7,
  audit_days: 365,
  content_days: null,
  events_days: 7,
  receiver_allowed_cidrs: [],
  receiver_max_bytes: null,
  receiver_max_requests_per_minute: null,
  rfc: null,
  tier: 'standard',
}

const isInvalidSetting = ([body, status]: readonly [body: object, status: number]): Row => [
  `settings: PATCH ${JSON.stringify(body)} is ${status} and changes nothing`,
  async ({ other }) => {
    const before = (await other.call('GET', '/settings')).json
    expect(await other.statusOf('PATCH', '/settings', body)).toBe(status)
    expect((await other.call('GET', '/settings')).json).toEqual(before)
  },
]

const settings: Row[] = [
  [
    'settings: a new workspace has the default settings',
    async ({ tenant }) => {
      const { call, id } = await tenant('acme/untouched')
      const { status, json } = await call('GET', '/settings')
      expect({ status, data: json.data }).toEqual({ status: 200, data: { id, type: 'settings', attributes: defaultSettings } })
    },
  ],
  [
    'settings: PATCH changes only the settings in the body, of this workspace, and only differences are stored',
    async ({ tenant, db }) => {
      const [{ call, id }, beside] = [await tenant('acme/changing'), await tenant('acme/beside')]
      const changed = await call('PATCH', '/settings', { max_retries: 0, content_days: 30 })
      const expected = { ...defaultSettings, max_retries: 0, content_days: 30 }
      expect({ status: changed.status, attributes: changed.json.data.attributes }).toEqual({ status: 200, attributes: expected })
      const cidrs = ['10.0.0.0/8', 'fd00::/8']
      const { json } = await call('PATCH', '/settings', { receiver_allowed_cidrs: cidrs, content_days: null })
      expect(json.data.attributes).toEqual({ ...expected, receiver_allowed_cidrs: cidrs, content_days: null })
      expect((await db('workspaces').where({ id }).first()).settings).toEqual({ max_retries: 0, receiver_allowed_cidrs: cidrs })
      expect((await beside.call('GET', '/settings')).json.data.attributes).toEqual(defaultSettings)
    },
  ],
  ...(
    [
      [{ max_retries: 101 }, 422],
      [{ max_retries: -1 }, 422],
      [{ captured_requests_days: 91 }, 422],
      [{ captured_bodies_days: 31 }, 422],
      [{ receiver_allowed_cidrs: ['10.0.0.0'] }, 422],
      [{ retry_initial_interval_seconds: 100, retry_max_interval_seconds: 10 }, 422],
      [{ max_retries: 1, retry_initial_interval_seconds: 10, retry_ttl_seconds: 9 }, 422],
      [{ audit_days: null }, 422],
      [{ audit_days: 364 }, 422],
      [{ audit_days: 3_651 }, 422],
      [{ tier: 'compliance' }, 400],
      [{ max_retries: '5' }, 400],
      [{ max_retries: 1.5 }, 400],
      [{ receiver_allowed_cidrs: [5] }, 400],
      [{ colour: 'red' }, 400],
    ] as const
  ).map(isInvalidSetting),
  [
    'settings: receiver_allowed_cidrs refuses other addresses',
    async ({ tenant }) => {
      const { call, send } = await tenant('acme/fenced')
      expect((await send('GET', 'serverInfo')).status).toBe(200)
      await call('PATCH', '/settings', { receiver_allowed_cidrs: ['192.0.2.0/24'] })
      expect((await send('GET', 'serverInfo')).status).toBe(403)
    },
  ],
  [
    'settings: credentials of rfc are write-only, stay with a change that leaves the system alone, and go with it',
    async ({ tenant, db }) => {
      const { call, id } = await tenant('acme/calling')
      const rowOf = () => db('workspaces').where({ id }).first()
      const rfc = { url: 'https://erp.example:44300', client: '100' }
      const created = await call('PATCH', '/settings', { rfc: { ...rfc, credentials: { user: 'RELAY', password: 'canary-rfc' } } })
      expect(created.json.data.attributes.rfc).toEqual({ ...rfc, allowed_functions: [] })
      const row = await rowOf()
      expect(JSON.stringify(row.settings) + row.rfc_credentials_sealed.toString('latin1')).not.toContain('canary')

      const allowed = ['RFC_PING', '/ACME/PING']
      const changed = await call('PATCH', '/settings', { rfc: { allowed_functions: allowed } })
      expect(changed.json.data.attributes.rfc).toEqual({ ...rfc, allowed_functions: allowed })
      const read = await call('GET', '/settings')
      expect(read.json.data.attributes.rfc).toEqual({ ...rfc, allowed_functions: allowed })
      const changes = [{ url: 'https://elsewhere.example' }, { client: '200' }, { ca_certificate: 'PEM' }]
      const moved = await Promise.all(changes.map((change) => call('PATCH', '/settings', { rfc: change })))
      for (const { status, json } of moved) {
        expect({ status, path: json.error.details[0].path }).toEqual({ status: 422, path: 'rfc.credentials' })
      }

      const removed = await call('PATCH', '/settings', { rfc: null })
      expect(removed.json.data.attributes.rfc).toBeNull()
      expect((await rowOf()).rfc_credentials_sealed).toBeNull()
      for (const { text } of [created, changed, read, ...moved, removed]) expect(text).not.toContain('canary')
    },
  ],
]

const answersOpenly = ([path, type]: readonly [path: string, type: string]): Row => [
  `open pages: GET ${path} answers 200 without an API key`,
  async ({ baseUrl }) => {
    const response = await fetch(baseUrl + path)
    expect({ status: response.status, type: response.headers.get('content-type')?.split(';')[0] }).toEqual({ status: 200, type })
  },
]

const surfaces: Row[] = [
  ...(
    [
      ['/healthz', 'application/json'],
      ['/openapi.json', 'application/json'],
      ['/docs', 'text/html'],
    ] as const
  ).map(answersOpenly),
  [
    'conventions: HEAD has the headers of GET and no body',
    async ({ acme, specimen }) => {
      for (const path of [
        '/documents',
        `/documents/${specimen.documentId}`,
        `/documents/${specimen.documentId}/content`,
        '/audit-logs.csv',
      ]) {
        const [head, whole] = [await acme.call('HEAD', path), await acme.call('GET', path)]
        const facts = ({ status, headers }: typeof head) => ({ status, type: headers.get('content-type') })
        expect({ ...facts(head), text: head.text }).toEqual({ ...facts(whole), text: '' })
      }
    },
  ],
  [
    'conventions: a name can contain any text of up to 200 characters',
    async ({ acme }) => {
      for (const name of ['Ωmega ☃ 文書 👩‍🚀', '<b>"\'&', 'x'.repeat(200)]) {
        const { status, json } = await acme.call('POST', '/destinations', { ...objstore, name })
        expect({ status, name: json.data.attributes.name }).toEqual({ status: 201, name })
      }
      for (const name of ['', '   ', 'x'.repeat(201)]) expect(await acme.statusOf('POST', '/destinations', { ...objstore, name })).toBe(422)
    },
  ],
  [
    'conventions: of ten concurrent creates of the same repo_id one succeeds, and so does that of another workspace',
    async ({ acme, other }) => {
      const body = { repo_id: newId(), name: 'A' }
      const [elsewhere, ...statuses] = await Promise.all(
        [other, ...Array.from({ length: 10 }, () => acme)].map((workspace) => workspace.statusOf('POST', '/repositories', body)),
      )
      expect(elsewhere).toBe(201)
      expect(statuses.toSorted((one, two) => one - two)).toEqual([201, ...Array.from({ length: 9 }, () => 409)])
    },
  ],
]

export const decidedAccessRows: Row[] = [...keys, ...settings, ...surfaces]
