import { ulid } from 'ulid'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { foldAll } from '../support/counters.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { wire } from './objstore.ts'

const hourMs = 3_600_000
const hourStart = new Date(Math.floor(Date.now() / hourMs) * hourMs)
const hoursAgo = (hours: number) => new Date(hourStart.getTime() - hours * hourMs)

const scene = share(await startScene())
const [z1, z2] = [await wire(scene.acme, 'Z1'), await wire(scene.acme, 'Z2')]

type Status = 'pending' | 'retrying' | 'delivered' | 'failed' | 'held'

const insert = async (route: typeof z1, repoId: string, hours: number, status: Status, statusHours = hours) => {
  const { db } = scene.database
  const delivery = { destinationId: route.destinationId, connectionId: route.connectionId, status }
  const id = await insertDocument(db, {
    workspaceId: scene.acme.id,
    repositoryId: route.repositoryId,
    repoId,
    status: status === 'held' ? 'pending' : status,
    receivedAt: hoursAgo(hours),
    deliveries: [delivery],
  })
  await db('deliveries')
    .where({ document_id: id })
    .update({ status_since: hoursAgo(statusHours) })
  return id
}

const noLatency = { p50_ms: null, p95_ms: null, p99_ms: null }
/** Returns the percentiles of deliveries in one bucket, by its upper bound. */
const evenly = (boundMs: number) => ({
  p50_ms: boundMs * 0.75,
  p95_ms: Math.round(boundMs * 0.975),
  p99_ms: Math.round(boundMs * 0.995),
})

const attempt = async (documentId: string, route: typeof z1, hours: number, outcome: string, errorCode: string | null = null) => {
  const startedAt = hoursAgo(hours)
  await ensurePartitions(scene.database.db, startedAt)
  await scene.database.db('delivery_attempts').insert({
    id: ulid(startedAt.getTime()),
    workspace_id: scene.acme.id,
    document_id: documentId,
    destination_id: route.destinationId,
    number: 1,
    started_at: startedAt,
    duration_ms: 1,
    outcome,
    error_code: errorCode,
  })
}

const get = (query = '', tenant = scene.acme) => tenant.call('GET', `/stats${query}`, undefined, { key: tenant.keys.viewer })
const range = `date_from=${hoursAgo(3).toISOString()}&date_to=${new Date(hourStart.getTime() - 1).toISOString()}`

const repaired = await insert(z1, 'Z1', 3, 'delivered', 2)
await attempt(repaired, z1, 3, 'retryable', 'http_503')
await attempt(repaired, z1, 2, 'delivered')
const failed = await insert(z1, 'Z1', 2, 'failed', 1)
await attempt(failed, z1, 2, 'retryable', 'http_503')
await attempt(failed, z1, 1, 'permanent', 'auth_failed')
await foldAll(scene.database.db)
const atOnce = await insert(z2, 'Z2', 1, 'delivered', 1)
await attempt(atOnce, z2, 1, 'delivered')
// Out of the range.
await insert(z2, 'Z2', 4, 'delivered', 4)
await insert(z2, 'Z2', 0, 'delivered', 0)
await insert(z1, 'Z1', 90, 'held')
const oldestId = await insert(z1, 'Z1', 80, 'retrying')
await insert(z1, 'Z1', 70, 'pending')

describe('GET /stats', () => {
  test('counts by status and by hour what happened in the range, folded or not', async () => {
    for (const fold of [false, true]) {
      if (fold) await foldAll(scene.database.db)
      const { status, json } = await get(`?${range}`)
      expect(status).toBe(200)
      expect(json.data).toEqual({
        id: scene.acme.id,
        type: 'stats',
        attributes: {
          date_from: hoursAgo(3).toISOString(),
          date_to: hourStart.toISOString(),
          documents: { pending: 0, delivered: 2, retrying: 0, failed: 1, discarded: 0 },
          deliveries: { pending: 0, held: 0, retrying: 0, delivered: 2, failed: 1, cancelled: 0 },
          attempts: { delivered: 2, superseded: 0, retryable: 2, permanent: 1, interrupted: 0 },
          interval: 'hour',
          series: [
            { start: hoursAgo(3).toISOString(), received: 1, delivered: 0, failed: 1, latency: noLatency },
            // Received an hour before: the bucket ends at 2 ** 22 ms.
            { start: hoursAgo(2).toISOString(), received: 1, delivered: 1, failed: 1, latency: evenly(2 ** 22) },
            // The attempt took 1 ms.
            { start: hoursAgo(1).toISOString(), received: 1, delivered: 1, failed: 1, latency: evenly(32) },
          ],
          oldest_deliveries: [
            {
              destination_id: z1.destinationId,
              destination_name: 'Bucket of Z1',
              connector_type: 'objstore',
              document_id: oldestId,
              status: 'retrying',
              received_at: hoursAgo(80).toISOString(),
            },
          ],
          errors: [
            { code: 'http_503', attempts: 2 },
            { code: 'auth_failed', attempts: 1 },
          ],
          latency: { p50_ms: 32, p95_ms: Math.round(2 ** 21 * 1.9), p99_ms: Math.round(2 ** 21 * 1.98) },
          present: {
            unacknowledged_failures: 1,
            unacknowledged_discards: 0,
            pending: 1,
            held: 1,
            retrying: 1,
            stored_bytes: expect.any(Number),
            max_bytes: 2 ** 40,
          },
        },
      })
    }
  })

  test('filters by repository, destination and connector', async () => {
    const attributesOf = async (query: string) => (await get(`?${range}&${query}`)).json.data.attributes
    expect(await attributesOf('repo_id=Z1')).toMatchObject({
      documents: { delivered: 1, failed: 1 },
      deliveries: { delivered: 1 },
      attempts: { delivered: 1, permanent: 1 },
      oldest_deliveries: null,
      present: { unacknowledged_failures: 1, unacknowledged_discards: 0, pending: 1, held: 1, retrying: 1 },
    })
    expect(await attributesOf(`destination_id=${z2.destinationId}`)).toMatchObject({
      documents: null,
      deliveries: { delivered: 1, failed: 0 },
      attempts: { delivered: 1, permanent: 0 },
      series: [
        { received: null, delivered: 0 },
        { received: null, delivered: 0 },
        { received: null, delivered: 1 },
      ],
      errors: [],
      oldest_deliveries: [],
      present: { unacknowledged_failures: null, unacknowledged_discards: null, pending: 0, held: 0, retrying: 0 },
    })
    expect(await attributesOf('connector_type=objstore')).toMatchObject({ documents: null, deliveries: { delivered: 2 } })
    expect(await attributesOf('connector_type=sftp')).toMatchObject({ deliveries: { delivered: 0 }, attempts: { delivered: 0 } })
    expect(await attributesOf('repo_id=unknown')).toMatchObject({ documents: { delivered: 0 }, deliveries: { delivered: 0 } })
  })

  test('the range is the last 24 hours by default, and is rounded to whole hours', async () => {
    const { attributes } = (await get()).json.data
    expect([24, 25, 26]).toContain(attributes.series.length)
    expect(Date.now() - Date.parse(attributes.date_to)).toBeLessThan(hourMs)
    const inner = `?date_from=${new Date(hoursAgo(2).getTime() + 60_000).toISOString()}&date_to=${new Date(hoursAgo(1).getTime() + 1).toISOString()}`
    expect((await get(inner)).json.data.attributes).toMatchObject({
      date_from: hoursAgo(2).toISOString(),
      date_to: hourStart.toISOString(),
    })
  })

  test.each([
    ['date_from=yesterday', 'date_from'],
    ['date_from=2026-11-02&date_to=2026-11-01', 'date_from'],
    ['date_from=2999-01-01', 'date_from'],
    ['date_from=2026-01-01&date_to=2026-04-03', 'date_from'],
    ['connector_type=pigeon', 'connector_type'],
    ['status=failed', 'status'],
  ])('%s is refused', async (query, path) => {
    const { status, json } = await get(`?${query}`)
    expect({ status, code: json.error.code }).toEqual({ status: 400, code: 'invalid_request' })
    expect(json.error.details).toMatchObject([{ path, message: expect.stringMatching(/\w/) }])
  })

  test('a range that ends with the year 9999 is answered with the last time that has four digits of a year', async () => {
    const { attributes } = (await get('?date_from=9999-12-01&date_to=9999-12-31')).json.data
    expect(attributes).toMatchObject({ date_from: '9999-12-01T00:00:00.000Z', date_to: '9999-12-31T23:59:59.999Z' })
  })

  test('a range of more than 7 days is counted by day, up to 92 days', async () => {
    const hourly = (await get('?date_from=2026-01-01&date_to=2026-01-07')).json.data.attributes
    expect({ interval: hourly.interval, length: hourly.series.length }).toEqual({ interval: 'hour', length: 7 * 24 })
    const daily = (await get('?date_from=2026-01-01&date_to=2026-04-02')).json.data.attributes
    expect({ interval: daily.interval, length: daily.series.length }).toEqual({ interval: 'day', length: 92 })

    // Before the range of the other tests.
    await insert(z1, 'Z1', 5, 'delivered')
    const { db } = scene.database
    const received = async (since: Date) =>
      (await db('documents').where({ workspace_id: scene.acme.id }).where('received_at', '>=', since).count({ count: '*' }))[0]!['count']
    const { attributes } = (await get(`?date_from=${hoursAgo(10 * 24).toISOString()}`)).json.data
    const byDay: { received: number }[] = attributes.series
    expect(byDay.reduce((sum, day) => sum + day.received, 0)).toBe(await received(new Date(attributes.date_from)))
    expect(attributes).toMatchObject({ interval: 'day', date_from: expect.stringMatching(/T00:00:00.000Z$/) })
  })

  test('does not count what belongs to other workspaces', async () => {
    const { attributes } = (await get(`?${range}&destination_id=${z1.destinationId}`, scene.other)).json.data
    expect(attributes).toMatchObject({ deliveries: { delivered: 0, failed: 0 }, errors: [], oldest_deliveries: [] })
    expect((await get(`?${range}`, scene.other)).json.data.attributes).toMatchObject({ documents: { delivered: 0, failed: 0 } })
  })
})

describe('GET /stats/destinations', () => {
  const list = async (query: string, tenant = scene.acme) => {
    const { status, json } = await tenant.call('GET', `/stats/destinations?${query}`, undefined, { key: tenant.keys.viewer })
    expect(status).toBe(200)
    return json
  }

  test('counts for each destination what the statistics of the workspace count with its id, folded or not', async () => {
    for (const fold of [false, true]) {
      if (fold) await foldAll(scene.database.db)
      const { data, meta } = await list(range)
      expect(meta).toEqual({ current_page: 1, per_page: 25, total: 2 })
      expect(data.map(({ id }: { id: string }) => id)).toEqual([z1.destinationId, z2.destinationId])
      for (const { id, type, attributes } of data) {
        const expected = (await get(`?${range}&destination_id=${id}`)).json.data.attributes
        expect(type).toBe('destination_stats')
        expect(expected.series).toHaveLength(attributes.series.length)
        expect(expected.series).toMatchObject(attributes.series)
        const [oldest] = expected.oldest_deliveries
        expect(attributes.oldest_delivery?.document_id).toBe(oldest?.document_id)
        const { rows } = await scene.database.db.raw('select status, count(*) from deliveries where destination_id = ? group by status', [
          id,
        ])
        const none = { pending: 0, held: 0, retrying: 0, delivered: 0, failed: 0, cancelled: 0 }
        const present = rows.map(({ status, count }: { status: string; count: number }) => [status, count])
        expect(attributes.current_deliveries).toEqual({ ...none, ...Object.fromEntries(present) })
      }
      expect(data[0].attributes).toMatchObject({ destination_name: 'Bucket of Z1', oldest_delivery: { status: 'retrying' } })
      expect(data[0].attributes.series).toContainEqual({ start: hoursAgo(2).toISOString(), delivered: 1, failed: 1 })
      expect(data[1].attributes.oldest_delivery).toBeNull()
    }
  })

  test('has pages, and can be asked for one destination', async () => {
    expect((await list('per_page=1&page=2')).data).toMatchObject([{ id: z2.destinationId }])
    expect((await list(`destination_id=${z2.destinationId}`)).data).toMatchObject([{ id: z2.destinationId }])
    expect((await list('date_from=2026-01-01&date_to=2026-04-02')).data[0].attributes.series).toHaveLength(92)
    expect(await list('page=9')).toMatchObject({ data: [], meta: { total: 2 } })
  })

  test('does not show destinations of other workspaces', async () => {
    expect((await list(`destination_id=${z1.destinationId}`, scene.other)).data).toEqual([])
    expect((await list('', scene.other)).data).toEqual([])
  })
})
