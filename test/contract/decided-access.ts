import { newId } from '../../src/base/ids.ts'
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
    'keys: POST /api-keys answers 201 with the key, relay_<id>_<256 bits>; no later response contains it',
    async ({ acme, db }) => {
      const { status, json } = await acme.call('POST', '/api-keys', { name: 'Nightly', level: 'viewer' })
      const { id, attributes } = json.data
      expect({ status, data: json.data }).toEqual({
        status: 201,
        data: { id: ulid, type: 'api_key', attributes: { ...key, key: expect.stringMatching(/^relay_[0-9A-Z]{26}_[\w-]{43}$/) } },
      })
      expect(attributes.key).toContain(`relay_${id}_`)
      const listed = await acme.call('GET', '/api-keys?per_page=100')
      expect(listed.json.data.find((row: Json) => row.id === id)).toEqual({ id, type: 'api_key', attributes: key })
      const row = await db('api_keys').where({ id }).first()
      expect(row.secret_sha256).toHaveLength(32)
      expect(await acme.statusOf('GET', '/documents', undefined, attributes.key)).toBe(200)
      const used = (await acme.call('GET', '/api-keys?per_page=100')).json.data.find((one: Json) => one.id === id)
      expect(used.attributes.last_used_at).toEqual(time)
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
    'keys: expires_at and user_id are optional and validated',
    async ({ acme }) => {
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
      const { status, json } = await acme.call('POST', '/api-keys', { name: 'A', level: 'member', expires_at: expiresAt })
      expect({ status, expiresAt: json.data.attributes.expires_at }).toEqual({ status: 201, expiresAt })
      for (const wrong of [{ expires_at: '2020-01-01T00:00:00Z' }, { user_id: newId() }, { level: 'king' }]) {
        expect(await acme.statusOf('POST', '/api-keys', { name: 'A', level: 'viewer', ...wrong })).toBe(422)
      }
    },
  ],
]

const settings: Row[] = [
  [
    'settings: a new workspace has the default settings',
    async ({ other, tenant }) => {
      const { call, id } = await tenant('acme/untouched')
      const { status, json } = await call('GET', '/settings')
      expect({ status, data: json.data }).toEqual({
        status: 200,
        data: {
          id,
          type: 'settings',
          attributes: {
            max_retries: 10,
            retry_ttl_seconds: 86_400,
            retry_initial_interval_seconds: 10,
            retry_max_interval_seconds: 3_600,
            captured_requests_days: 30,
            captured_bodies_days: 7,
            audit_days: 365,
            content_days: null,
            receiver_allowed_cidrs: [],
            receiver_max_bytes: null,
            receiver_max_requests_per_minute: null,
            rfc: null,
            tier: 'standard',
          },
        },
      })
      expect(other.id).not.toBe(id)
    },
  ],
  [
    'settings: PATCH changes only the settings in the body; invalid values are 422, unknown keys 400',
    async ({ tenant }) => {
      const { call } = await tenant('acme/changing')
      const { status, json } = await call('PATCH', '/settings', { content_days: 30, max_retries: 0 })
      expect({ status, attributes: json.data.attributes }).toMatchObject({ status: 200, attributes: { content_days: 30, max_retries: 0 } })
      expect((await call('PATCH', '/settings', { max_retries: -1 })).status).toBe(422)
      expect((await call('PATCH', '/settings', { receiver_allowed_cidrs: ['everywhere'] })).status).toBe(422)
      expect((await call('PATCH', '/settings', { colour: 'red' })).status).toBe(400)
      expect((await call('PATCH', '/settings', { max_retries: '5' })).status).toBe(400)
      expect((await call('GET', '/settings')).json.data.attributes).toEqual(json.data.attributes)
    },
  ],
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
    'settings: credentials of rfc are write-only',
    async ({ acme }) => {
      const { text, json } = await acme.call('GET', '/settings')
      expect(text).not.toContain('canary-rfc')
      expect(Object.keys(json.data.attributes.rfc).toSorted()).toEqual(['allowed_functions', 'client', 'url'])
    },
  ],
]

const answersOpenly = ([path, type]: readonly [path: string, type: string]): Row => [
  `probes: GET ${path} answers 200 without an API key`,
  async ({ baseUrl }) => {
    const response = await fetch(baseUrl + path)
    expect({ status: response.status, type: response.headers.get('content-type')?.split(';')[0] }).toEqual({ status: 200, type })
  },
]

const surfaces: Row[] = [
  ...(
    [
      ['/healthz', 'application/json'],
      ['/readyz', 'application/json'],
      ['/metrics', 'text/plain'],
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
