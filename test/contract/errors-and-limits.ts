import { newId } from '../../src/base/ids.ts'
import { until } from '../support/until.ts'
import { ulid, type Json, type Row, type World } from './world.ts'

// Sections 7 and 8 of the specification: errors and limits.

const errors: Row[] = [
  [
    '7 connections: 400 for an invalid body or missing required fields',
    async ({ acme, specimen }) => {
      const whole = { name: 'A', repository_ids: [specimen.repositoryId], destination_ids: [specimen.destinationId] }
      const wrong = ['{', '[]', '', {}, { ...whole, name: 5 }, { ...whole, repository_ids: 'x' }, { ...whole, colour: 'red' }]
      for (const body of wrong) expect(await acme.statusOf('POST', '/connections', body)).toBe(400)
      expect(await acme.statusOf('PATCH', `/connections/${specimen.connectionId}`, { is_active: 'no' })).toBe(400)
    },
  ],
  [
    '7 connections: 404 if the connection does not exist or belongs to another workspace',
    async ({ acme, other, specimen }) => {
      for (const method of ['GET', 'PATCH', 'DELETE']) {
        const body = method === 'PATCH' ? { is_active: false } : undefined
        expect(await acme.statusOf(method, `/connections/${newId()}`, body)).toBe(404)
        expect(await other.statusOf(method, `/connections/${specimen.connectionId}`, body)).toBe(404)
      }
      expect((await acme.call('GET', `/connections/${specimen.connectionId}`)).json.data.is_active).toBe(true)
    },
  ],
  [
    '7 connections: 422 for unknown repository or destination identifiers, including those of other workspaces',
    async ({ acme, other, specimen }) => {
      const whole = { name: 'A', repository_ids: [specimen.repositoryId], destination_ids: [specimen.destinationId] }
      const foreign = await other.destination()
      const wrong = [{ repository_ids: [newId()] }, { destination_ids: ['x'] }, { destination_ids: [specimen.destinationId, foreign] }]
      for (const change of wrong) {
        const { status, json } = await acme.call('POST', '/connections', { ...whole, ...change })
        expect({ status, code: json.error.code }).toEqual({ status: 422, code: 'validation_failed' })
        expect(await acme.statusOf('PATCH', `/connections/${specimen.connectionId}`, change)).toBe(422)
      }
    },
  ],
  [
    '7 404 for the download of a body that was truncated at capture time',
    async ({ acme, specimen }) => {
      const sent = await acme.sendCreate(specimen.repoId, 'TRUNCATED7', 'x'.repeat(100_001), 'text/xml')
      await acme.capturedRequest(sent)
      expect(await acme.statusOf('GET', `/requests/${sent.requestId}/body/request`)).toBe(404)
    },
  ],
  [
    '7 an error has the shape { error: { code, message } }',
    async ({ acme }) => {
      const { json } = await acme.call('GET', `/documents/${newId()}`)
      expect(json).toEqual({
        error: { code: 'not_found', message: expect.stringMatching(/\S/), request_id: ulid, doc_url: expect.any(String) },
      })
    },
  ],
  [
    '7 a destination test that fails is reported in the body',
    async ({ acme }) => {
      const id = await acme.destination('refusing')
      const { status, json } = await acme.call('POST', `/destinations/${id}/test`)
      expect({ status, json }).toEqual({
        status: 200,
        json: { data: { status: 'failed', message: expect.stringMatching(/\S/), error_code: 'http_400' } },
      })
    },
  ],
]

const kibibytes64 = 64 * 1024
/** Sends a body of this size and waits until it is stored: a large body is stored after the response. */
const previewOf = async ({ acme, specimen }: World, sizeBytes: number): Promise<Json> => {
  const sent = await acme.sendCreate(specimen.repoId, newId(), 'x'.repeat(sizeBytes), 'application/xml')
  await until(
    'the captured body',
    () => acme.statusOf('GET', `/requests/${sent.requestId}/body/request`),
    (status) => status === 200,
  )
  return (await acme.capturedRequest(sent)).request_body_preview
}

const isBounded = ([name, initially, highest]: readonly [name: string, initially: number, highest: number]): Row => [
  `8.2 ${name} is ${initially} by default, up to ${highest}, for each workspace`,
  async ({ acme, other }) => {
    expect((await acme.attributesOf('/settings'))[name]).toBe(initially)
    const { status, json } = await acme.call('PATCH', '/settings', { [name]: highest })
    expect({ status, days: json.data.attributes[name] }).toEqual({ status: 200, days: highest })
    for (const wrong of [highest + 1, 0]) expect(await acme.statusOf('PATCH', '/settings', { [name]: wrong })).toBe(422)
    expect((await other.attributesOf('/settings'))[name]).toBe(initially)
    await acme.call('PATCH', '/settings', { [name]: initially })
  },
]

const redactsHeader = (name: string): Row => [
  `8.3 the header ${name} is stored as [REDACTED]`,
  async ({ acme }) => {
    const captured = await acme.capturedRequest(await acme.send('GET', 'serverInfo', undefined, { [name]: 'canary' }))
    expect(captured.request_headers[name.toLowerCase()]).toBe('[REDACTED]')
    expect(JSON.stringify(captured)).not.toContain('canary')
  },
]

const redactsKey = (name: string): Row => [
  `8.3 the JSON key ${name} is stored as [REDACTED], at any depth`,
  async ({ acme, specimen }) => {
    const body = JSON.stringify({ safe: 'kept', inner: [{ [name]: { deep: 'canary' } }, { [name]: 'canary' }] })
    const sent = await acme.sendCreate(specimen.repoId, newId(), body, 'application/json')
    const { request_body_preview: preview } = await acme.capturedRequest(sent)
    expect(JSON.parse(preview)).toEqual({ safe: 'kept', inner: [{ [name]: '[REDACTED]' }, { [name]: '[REDACTED]' }] })
  },
]

const limits: Row[] = [
  [
    '8.1 per_page is 25 by default and 100 at most',
    async ({ acme }) => {
      expect((await acme.call('GET', '/documents')).json.meta.per_page).toBe(25)
      expect((await acme.call('GET', '/documents?per_page=100')).json.meta.per_page).toBe(100)
      expect(await acme.statusOf('GET', '/documents?per_page=101')).toBe(400)
    },
  ],
  ['8.1 preview for a body under 64 KiB', async (world) => expect(await previewOf(world, kibibytes64 - 1)).toHaveLength(kibibytes64 - 1)],
  ['8.1 no preview for 64 KiB', async (world) => expect(await previewOf(world, kibibytes64)).toBeNull()],
  ...(
    [
      ['captured_requests_days', 30, 90],
      ['captured_bodies_days', 7, 30],
    ] as const
  ).map(isBounded),
  [
    '8.2 the audit log is kept for 365 days by default, and indefinitely only in compliance-tier workspaces',
    async ({ db, tenant }) => {
      const regulated = await tenant('acme/regulated')
      const days = async () => (await regulated.call('GET', '/settings')).json.data.attributes.audit_days
      const statusOfSetting = async (value: number | null) => (await regulated.call('PATCH', '/settings', { audit_days: value })).status
      expect(await days()).toBe(365)
      for (const value of [null, 1, 364, 3_651]) expect({ value, status: await statusOfSetting(value) }).toEqual({ value, status: 422 })
      expect(await statusOfSetting(3_650)).toBe(200)
      expect(await days()).toBe(3_650)
      await db('workspaces').where({ id: regulated.id }).update({ compliance_tier: true })
      expect(await days()).toBeNull()
      for (const value of [null, 365]) {
        const { status, json } = await regulated.call('PATCH', '/settings', { audit_days: value })
        expect({ value, status, path: json.error.details[0].path }).toEqual({ value, status: 422, path: 'audit_days' })
      }
      const { json } = await regulated.call('PATCH', '/settings', { max_retries: 5 })
      expect(json.data.attributes).toMatchObject({ tier: 'compliance', max_retries: 5, audit_days: null })
    },
  ],
  [
    '8.2 request records stay queryable after their payload is gone',
    async ({ acme, specimen, db }) => {
      const sent = await acme.sendCreate(specimen.repoId, 'BODILESS', '<a/>', 'text/xml')
      await acme.capturedRequest(sent)
      await db('captured_bodies').where({ request_id: sent.requestId }).delete()
      expect(await acme.idsOf('/requests?doc_id=BODILESS')).toEqual([sent.requestId])
      expect(await acme.capturedRequest(sent)).toMatchObject({ request_body_preview: null, request_body_truncated: false })
      expect(await acme.statusOf('GET', `/requests/${sent.requestId}/body/request`)).toBe(404)
      expect(await acme.statusOf('POST', `/requests/${sent.requestId}/replay`)).toBe(409)
    },
  ],
  ...['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'X-My-Token', 'client-SECRET', 'PassWord', 'x-api-key'].map(
    redactsHeader,
  ),
  ...['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'MyToken', 'client_SECRET', 'PassWord', 'x-Api-Key'].map(redactsKey),
  [
    '8.3 redaction affects only what is stored: the document is delivered unchanged',
    async ({ acme, specimen, target }) => {
      const body = '{"password": "canary"}'
      const sent = await acme.sendCreate(specimen.repoId, 'REDACTED', body, 'application/json')
      expect(JSON.stringify(await acme.capturedRequest(sent))).not.toContain('canary')
      await until(
        'the delivery',
        async () => target.arrivals.map((arrival) => String(arrival.body)),
        (bodies) => bodies.includes(body),
      )
    },
  ],
  [
    '8.4 maximum retries and time-to-live are configured for each workspace',
    async ({ acme, other }) => {
      const change = { max_retries: 3, retry_ttl_seconds: 600 }
      expect((await other.call('PATCH', '/settings', change)).json.data.attributes).toMatchObject(change)
      expect(await acme.attributesOf('/settings')).toMatchObject({ max_retries: 10, retry_ttl_seconds: 86_400 })
    },
  ],
  [
    '8.4 retries follow max_retries and end with retry_ttl_seconds',
    async ({ other }) => {
      await other.call('PATCH', '/settings', { max_retries: 100, retry_ttl_seconds: 6, retry_initial_interval_seconds: 1 })
      const { repoId } = await other.wire(['down'])
      const { deliveries } = await other.untilStatus(await other.sendDocument(repoId, 'failed'), 'failed')
      expect(deliveries[0].attempts).toBeGreaterThan(1)
      expect(deliveries[0].attempts).toBeLessThan(5)
    },
  ],
]

export const errorAndLimitRows: Row[] = [...errors, ...limits]
